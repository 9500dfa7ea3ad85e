// A function that ends without a return: its result can be anything.
// verdict: false
#include <assert.h>
unsigned char found(int c) {
  if (c > 5)
    return 3;
}
int main(void) {
  assert(found(6) == 3);
  found(1);
  unsigned char small = found(2);
  assert(small == 0);
  return 0;
}
