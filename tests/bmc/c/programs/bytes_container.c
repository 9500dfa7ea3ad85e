// verdict: true
// violated: limits
// From a member to its struct.
#include <assert.h>
#include <stddef.h>

struct s {
  char a;
  int b;
} s;

int main(void) {
  int *p = &s.b;
  struct s *q = (struct s *)((char *)p - offsetof(struct s, b));
  q->b = 5;
  assert(s.b == 5);
  return 0;
}
