// verdict: true
// violated: limits
// A distance in bytes.
#include <assert.h>
#include <stddef.h>

int a[4];

int main(void) {
  assert((char *)&a[1] - (char *)&a[0] == 4);
  return 0;
}
