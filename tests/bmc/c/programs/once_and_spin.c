// pthread_once runs a function once; a spin lock and trylock protect a counter.
// verdict: true
#include <assert.h>
#include <errno.h>
#include <pthread.h>
pthread_once_t once = PTHREAD_ONCE_INIT;
pthread_spinlock_t spin;
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
int initialised, counter, got;
static void init(void) { initialised++; }
void *worker(void *arg) {
  pthread_once(&once, init);
  assert(initialised == 1);
  pthread_spin_lock(&spin);
  counter++;
  pthread_spin_unlock(&spin);
  int r = pthread_mutex_trylock(&m);
  assert(r == 0 || r == EBUSY);
  if (r == 0) {
    got = 1;
    pthread_mutex_unlock(&m);
  }
  return 0;
}
int main(void) {
  pthread_t a, b;
  pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
  pthread_create(&a, 0, worker, 0);
  pthread_create(&b, 0, worker, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(counter == 2 && got);
  return 0;
}
