// Two threads add to a number that is close to the largest one; unsigned numbers may wrap around.
// verdict: true
// violated: overflow
// options: overflow=true
#include <limits.h>
#include <pthread.h>
int x = INT_MAX - 1;
unsigned u = UINT_MAX;
void *add(void *arg) {
  x = x + 1;
  u = u + 1;
  return 0;
}
int main(void) {
  pthread_t s, t;
  pthread_create(&s, 0, add, 0);
  pthread_create(&t, 0, add, 0);
  pthread_join(s, 0);
  pthread_join(t, 0);
  return 0;
}
