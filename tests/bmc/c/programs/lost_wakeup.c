// The waiting thread does not look at the condition under the lock: the signal may come too early.
// verdict: true
// violated: deadlock
#include <pthread.h>
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t c = PTHREAD_COND_INITIALIZER;
int ready;
void *waiter(void *arg) {
  if (!ready) {
    pthread_mutex_lock(&m);
    pthread_cond_wait(&c, &m);
    pthread_mutex_unlock(&m);
  }
  return 0;
}
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, waiter, 0);
  ready = 1;
  pthread_cond_signal(&c);
  pthread_join(t, 0);
  return 0;
}
