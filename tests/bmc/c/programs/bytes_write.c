// verdict: true
// violated: limits
// A write to a byte of an int: addresses count cells, so this cannot be checked.
#include <assert.h>
#include <stddef.h>

int main(void) {
  int x = 0;
  char *c = (char *)&x;
  *(c + 1) = 1;
  assert(x == 0);
  return 0;
}
