// A local variable that is read before it is set has any value.
// verdict: false
#include <assert.h>
#include <stdbool.h>
int main(void) {
  unsigned char c;
  bool set = false;
  int later;
  if (set)
    c = 1;
  later = 3;
  assert(later == 3);
  assert(c != 77);
  return 0;
}
