// A counter that should be shared is thread-local: the thread counts its own.
// verdict: false
#include <assert.h>
#include <pthread.h>

__thread int done;

void *worker(void *arg) {
  done = 1;
  return 0;
}

int main(void) {
  pthread_t t;
  pthread_create(&t, 0, worker, 0);
  pthread_join(t, 0);
  assert(done == 1);
  return 0;
}
