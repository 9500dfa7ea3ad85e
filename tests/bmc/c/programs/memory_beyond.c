// memcpy writes behind the end of an array.
// verdict: true
// violated: bounds
#include <string.h>

int from[4], to[3];

int main(void) {
  memcpy(to, from, sizeof from);
  return 0;
}
