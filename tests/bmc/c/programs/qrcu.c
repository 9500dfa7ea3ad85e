// Quick read-copy update: two readers, one updater that waits for the counters of readers.
// verdict: true
#include <assert.h>
#include <pthread.h>
extern void abort(void);
extern int __VERIFIER_nondet_bool(void);
int idx = 0, ctr1 = 1, ctr2 = 0, progress1 = 0, progress2 = 0;
pthread_mutex_t mutex;
void __VERIFIER_atomic_use1(int i) {
  if (!(i <= 0 && ctr1 > 0))
    abort();
  ctr1++;
}
void __VERIFIER_atomic_use2(int i) {
  if (!(i >= 1 && ctr2 > 0))
    abort();
  ctr2++;
}
void __VERIFIER_atomic_use_done(int i) {
  if (i <= 0)
    ctr1--;
  else
    ctr2--;
}
void __VERIFIER_atomic_flip(void) {
  if (idx <= 0) {
    ctr2++;
    idx = 1;
    ctr1--;
  } else {
    ctr1++;
    idx = 0;
    ctr2--;
  }
}
void __VERIFIER_atomic_wait(int i) {
  if (!(i <= 0 ? ctr1 == 0 : ctr2 == 0))
    abort();
}
void *reader1(void *arg) {
  int my = idx;
  if (__VERIFIER_nondet_bool())
    __VERIFIER_atomic_use1(my);
  else
    __VERIFIER_atomic_use2(my);
  progress1 = 1;
  progress1 = 0;
  __VERIFIER_atomic_use_done(my);
  return 0;
}
void *updater(void *arg) {
  int saw = progress1, my;
  pthread_mutex_lock(&mutex);
  my = idx;
  __VERIFIER_atomic_flip();
  __VERIFIER_atomic_wait(my);
  pthread_mutex_unlock(&mutex);
  if (saw)
    assert(progress1 == 0);
  return 0;
}
int main(void) {
  pthread_t t1, t2;
  pthread_mutex_init(&mutex, 0);
  pthread_create(&t1, 0, reader1, 0);
  pthread_create(&t2, 0, updater, 0);
  pthread_join(t1, 0);
  pthread_join(t2, 0);
  return 0;
}
