// A pointer is used before the other thread has set it.
// verdict: true
// violated: memory
#include <pthread.h>
int target, *p;
void *set(void *arg) {
  p = &target;
  return 0;
}
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, set, 0);
  *p = 1;
  pthread_join(t, 0);
  return 0;
}
