// A thread is started in each round of a loop that another thread ends.
// verdict: true
// violated: limits
// options: threads=2
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
atomic_int stop, running;
void *ender(void *arg) {
  stop = 1;
  return 0;
}
void *worker(void *arg) {
  running++;
  return 0;
}
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, ender, 0);
  while (!stop)
    pthread_create(&t, 0, worker, 0);
  assert(running <= 2);
  return 0;
}
