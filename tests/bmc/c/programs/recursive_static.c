// A recursive mutex by its initialiser, and an error-checking one: the second lock and a foreign unlock are errors.
// verdict: true
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
pthread_mutex_t r = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
pthread_mutex_t e = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
void *other(void *arg) {
  assert(pthread_mutex_unlock(&e) == EPERM);
  assert(pthread_mutex_trylock(&r) == EBUSY);
  return 0;
}
int main(void) {
  pthread_t t;
  assert(pthread_mutex_lock(&r) == 0);
  assert(pthread_mutex_trylock(&r) == 0);
  assert(pthread_mutex_lock(&e) == 0);
  assert(pthread_mutex_lock(&e) == EDEADLK);
  pthread_create(&t, 0, other, 0);
  pthread_join(t, 0);
  pthread_mutex_unlock(&e);
  pthread_mutex_unlock(&r);
  pthread_mutex_unlock(&r);
  return 0;
}
