// verdict: true
// violated: limits
// The elements of an array as wider numbers.
#include <assert.h>
#include <stddef.h>

char b[8];

int main(void) {
  int *p = (int *)b;
  p++;
  *p = 5;
  assert(b[4] == 5);
  return 0;
}
