// verdict: true
// violated: limits
// The second element, by an offset in bytes.
#include <assert.h>
#include <stddef.h>

int main(void) {
  int a[4] = {1, 2, 3, 4};
  char *c = (char *)a;
  int *p = (int *)(c + 4);
  assert(*p == 2);
  return 0;
}
