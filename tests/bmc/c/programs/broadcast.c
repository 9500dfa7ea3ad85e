// A gate: a broadcast wakes all threads; a wait with a timeout may give up.
// verdict: false
#include <assert.h>
#include <errno.h>
#include <pthread.h>
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t gate = PTHREAD_COND_INITIALIZER;
int open, passed;
void *guest(void *arg) {
  pthread_mutex_lock(&m);
  while (!open)
    pthread_cond_wait(&gate, &m);
  passed++;
  pthread_mutex_unlock(&m);
  return 0;
}
void *impatient(void *arg) {
  struct timespec t = {1, 0};
  int r = 0;
  pthread_mutex_lock(&m);
  while (!open && r != ETIMEDOUT)
    r = pthread_cond_timedwait(&gate, &m, &t);
  assert(open);
  pthread_mutex_unlock(&m);
  return 0;
}
int main(void) {
  pthread_t a, b, c;
  pthread_create(&a, 0, guest, 0);
  pthread_create(&b, 0, guest, 0);
  pthread_create(&c, 0, impatient, 0);
  pthread_mutex_lock(&m);
  open = 1;
  pthread_cond_broadcast(&gate);
  pthread_mutex_unlock(&m);
  pthread_join(a, 0);
  pthread_join(b, 0);
  pthread_join(c, 0);
  assert(passed == 2);
  return 0;
}
