// verdict: true
// violated: locks
// Arguments that have no meaning for the model have effects nevertheless. The last statement is reached: it is wrong.
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>

int n, number;
_Atomic int cell;
atomic_flag flag;
pthread_mutex_t m;
pthread_cond_t c[2];
pthread_barrier_t b;
pthread_rwlock_t rw;
sem_t s[2];

void *run(void *argument) { return argument; }

int expected(int count) {
  if (n != count) return 0;
  n = 0;
  return 1;
}

int main(void) {
  struct timespec t[2];
  int old = 0;
  pthread_t thread;
  __atomic_store_n(&number, 1, n++);
  __atomic_load_n(&number, n++);
  __atomic_fetch_add(&number, 1, n++);
  __atomic_thread_fence(n++);
  assert(expected(4));
  atomic_store_explicit(&cell, 0, n++);
  atomic_compare_exchange_strong_explicit(&cell, &old, 1, n++, (n += 2));
  atomic_flag_test_and_set_explicit(&flag, n++);
  atomic_thread_fence(n++);
  assert(expected(6));
  pthread_mutex_init(&m, (n++, (pthread_mutexattr_t *)0));
  pthread_cond_init(&c[n++], (n++, (pthread_condattr_t *)0));
  pthread_barrier_init(&b, (n++, (pthread_barrierattr_t *)0), 1);
  pthread_rwlock_init(&rw, (n++, (pthread_rwlockattr_t *)0));
  assert(expected(5));
  sem_init(&s[0], n++, 0);
  sem_init(&s[1], n++, 1);
  pthread_create(&thread, (n++, (pthread_attr_t *)0), run, 0);
  pthread_mutex_timedlock(&m, &t[n++ > 5]);
  assert(expected(4));
  sem_timedwait(&s[n++], &t[n++ > 5]);
  if (__builtin_expect(1, n++)) assert(expected(3));
  void **nowhere = 0;
  pthread_join(thread, nowhere);
  if (number == 7) exit(n++);
  pthread_rwlock_unlock(&rw);
  return 0;
}
