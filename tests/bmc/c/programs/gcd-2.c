// Euclid's algorithm by two threads, each of which changes one number under a lock.
// verdict: true
#include <assert.h>
#include <pthread.h>
extern int __VERIFIER_nondet_int(void);
unsigned a = 12, b = 18;
int finished;
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
void *left(void *arg) {
  while (!finished) {
    pthread_mutex_lock(&m);
    if (a > b)
      a = a - b;
    pthread_mutex_unlock(&m);
    if (a == b)
      finished = 1;
  }
  return 0;
}
void *right(void *arg) {
  while (!finished) {
    pthread_mutex_lock(&m);
    if (b > a)
      b = b - a;
    pthread_mutex_unlock(&m);
    if (a == b)
      finished = 1;
  }
  return 0;
}
int main(void) {
  pthread_t s, t;
  pthread_create(&s, 0, left, 0);
  pthread_create(&t, 0, right, 0);
  pthread_join(s, 0);
  pthread_join(t, 0);
  assert(a == 6 && b == 6);
  return 0;
}
