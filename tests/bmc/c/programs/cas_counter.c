// A counter with compare and swap, by GCC's builtins and by C11.
// verdict: true
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
atomic_int c11;
volatile int gcc;
void *worker(void *arg) {
  int old = atomic_load(&c11);
  while (!atomic_compare_exchange_weak(&c11, &old, old + 1))
    ;
  int seen;
  do
    seen = gcc;
  while (!__sync_bool_compare_and_swap(&gcc, seen, seen + 1));
  return 0;
}
int main(void) {
  pthread_t t[3];
  for (int i = 0; i < 3; i++)
    pthread_create(&t[i], 0, worker, 0);
  for (int i = 0; i < 3; i++)
    pthread_join(t[i], 0);
  assert(c11 == 3);
  assert(gcc == 3);
  return 0;
}
