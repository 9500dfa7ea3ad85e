// Each thread has a thread-local variable of its own, with its initial value; its address can go to another thread.
// verdict: true
#include <assert.h>
#include <pthread.h>

static __thread int calls = 10;
_Thread_local struct { int last; } seen;
int *from_main;

int next(void) {
  static __thread int number;
  calls++;
  seen.last = ++number;
  return number;
}

void *worker(void *arg) {
  assert(calls == 10);
  next();
  assert(next() == 2 && calls == 12 && seen.last == 2);
  if (arg) *from_main = 5;
  return 0;
}

int main(void) {
  pthread_t a, b;
  next();
  from_main = &calls;
  pthread_create(&a, 0, worker, 0);
  pthread_create(&b, 0, worker, &a);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(calls == 5 && seen.last == 1);
  return 0;
}
