// Recursive functions with constant and other arguments.
// verdict: true
// options: unwind=7
#include <assert.h>
#include <pthread.h>
static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static unsigned gcd(unsigned a, unsigned b) { return b == 0 ? a : gcd(b, a % b); }
int n = 2;
void *more(void *arg) {
  n = 4;
  return 0;
}
int main(void) {
  pthread_t t;
  assert(fib(7) == 13);
  pthread_create(&t, 0, more, 0);
  int seen = n;
  assert(gcd(12, seen) == (seen == 2 ? 2 : 4));
  pthread_join(t, 0);
  assert(fib(n) == 3);
  return 0;
}
