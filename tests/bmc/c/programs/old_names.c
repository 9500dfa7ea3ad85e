// Names of CBMC, of ESBMC and of old tasks of SV-COMP.
// verdict: true
#include <pthread.h>

unsigned char nondet_uchar();
int x, y;

void *worker(void *arg) {
  __CPROVER_atomic_begin();
  x = nondet_uchar();
  y = x;
  __CPROVER_atomic_end();
  return 0;
}

int main(void) {
  pthread_t t;
  pthread_create(&t, 0, worker, 0);
  __ESBMC_atomic_begin();
  int a = x, b = y;
  __ESBMC_atomic_end();
  __CPROVER_assert(a == b, "both or none");
  __ESBMC_assert(a >= 0 && b < 256, "a byte");
  pthread_join(t, 0);
  return 0;
}
