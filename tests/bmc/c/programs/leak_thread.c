// A thread that is neither joined nor detached.
// verdict: true
// violated: leaks
// options: leaks=true
#include <pthread.h>
int x;
void *worker(void *arg) {
  x = 1;
  return 0;
}
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, worker, 0);
  x = 2;
  return 0;
}
