// Values from outside, restricted by assumptions.
// verdict: true
#include <assert.h>
extern unsigned char __VERIFIER_nondet_uchar(void);
extern _Bool __VERIFIER_nondet_bool(void);
extern void __VERIFIER_assume(int);
int main(void) {
  unsigned char a = __VERIFIER_nondet_uchar();
  signed char b = __VERIFIER_nondet_bool() ? -1 : 1;
  __VERIFIER_assume(a > 200);
  unsigned char sum = a + b;
  assert(sum >= 200 || (a == 255 && b == 1 && sum == 0));
  return 0;
}
