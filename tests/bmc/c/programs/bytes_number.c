// verdict: true
// violated: limits
// The second element, by the number of its address.
#include <assert.h>

int a[4] = {1, 2, 3, 4};

int main(void) {
  long number = (long)a;
  int *p = (int *)(number + 4);
  assert(*p == 2);
  return 0;
}
