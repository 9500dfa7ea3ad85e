// The expected value of a compare-and-exchange is read, too.
// verdict: false
#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
_Atomic unsigned char n = 0;
int main(void) {
  unsigned char expected;
  atomic_compare_exchange_strong(&n, &expected, 1);
  assert(n == 1);
  return 0;
}
