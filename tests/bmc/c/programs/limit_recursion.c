// The depth of the recursion is a shared number that the other thread may set: more than the bound.
// verdict: true
// violated: limits
// options: unwind=3
#include <pthread.h>
int depth = 1;
static int down(int n) { return n <= 0 ? 0 : 1 + down(n - 1); }
void *more(void *arg) {
  depth = 9;
  return 0;
}
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, more, 0);
  down(depth);
  pthread_join(t, 0);
  return 0;
}
