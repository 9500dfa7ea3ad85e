// Variables and types of the same name, declared by one macro: they have the same place.
// verdict: true
#include <assert.h>
int x;
#define ADD do { { int t = 1; x += t; } { int t = 2; x += t; } } while (0)
#define MAX(a, b) ({ int _a = (a), _b = (b); _a > _b ? _a : _b; })
#define SUM(k) ({ int r; struct T { int a; } s = {k}; { struct T { int b, c; } s = {k, 2}; r = s.b + s.c; } r + s.a; })
#define NEXT(n) static int v = n; x += v++
int main(void) {
  ADD;
  assert(x == 3);
  assert(MAX(3, MAX(1, 9)) == 9 && MAX(MAX(4, 2), 3) == 4);
  assert(SUM(3) == 8);
  for (int i = 0; i < 2; i++) { { NEXT(1); } { NEXT(5); } }
  assert(x == 3 + 1 + 5 + 2 + 6);
  return 0;
}
