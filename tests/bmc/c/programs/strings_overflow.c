// The buffer has no place for the zero at the end.
// verdict: true
// violated: bounds
#include <string.h>

int main(void) {
  char text[3];
  strcpy(text, "abc");
  return 0;
}
