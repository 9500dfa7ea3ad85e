// verdict: true
// violated: limits
// The first byte of an int in a struct that has a char, too.
#include <assert.h>

struct s {
  char a;
  int b;
} s = {0, 258};

int main(void) {
  char *c = (char *)&s.b;
  assert(*c == 2);
  return 0;
}
