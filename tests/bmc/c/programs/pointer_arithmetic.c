// verdict: true
// Arithmetic on pointers to the type of the object: in arrays, in arrays of structs, through void pointers.
#include <assert.h>
#include <stdlib.h>

struct item {
  char tag;
  int values[3];
} items[2];

int sum(const void *from, int count) {
  const int *p = from;
  int total = 0;
  while (count-- > 0) total += *p++;
  return total;
}

int main(void) {
  struct item *last = items + 1;
  for (int i = 0; i < 3; i++) last->values[i] = i + 1;
  assert(last - items == 1);
  assert(sum(last->values, 3) == 6);
  unsigned *u = (unsigned *)&items[1].values[2];
  assert(*(u - 1) == 2);
  char *text = malloc(4);
  text[0] = 'a';
  text[3] = 'b';
  char *end = text + 3;
  assert(*end-- == 'b' && end - text == 2);
  free(text);
  return 0;
}
