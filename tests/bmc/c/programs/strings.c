// The functions of string.h that look at characters.
// verdict: true
#include <assert.h>
#include <string.h>

int main(void) {
  char text[8];
  strcpy(text, "ab");
  assert(strlen(text) == 2 && strcmp(text, "ab") == 0);
  strcat(text, "c");
  assert(strcmp(text, "abd") < 0 && strcmp(text, "ab") > 0 && strncmp(text, "abx", 2) == 0);
  assert(strchr(text, 'c') == text + 2 && strchr(text, 'x') == 0);
  strncpy(text, "z", 3);
  assert(text[0] == 'z' && text[1] == 0 && text[2] == 0 && text[3] == 0);
  return 0;
}
