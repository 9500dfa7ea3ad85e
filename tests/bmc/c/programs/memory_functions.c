// memcpy, memmove and memset, of whole objects, of parts of arrays, with a length that is a variable.
// verdict: true
#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct pair { int x; char name[4]; };
int given[4] = {1, 2, 3, 4}, copied[4];

void fill(int *at, int byte, int count) { memset(at, byte, count * sizeof(int)); }

_Bool nondet_bool();

int main(void) {
  struct pair p = {7, "ab"}, q;
  unsigned short wide[3];
  int length = nondet_bool() ? 2 : 3, *heap = malloc(4 * sizeof(int));
  memcpy(&q, &p, sizeof q);
  assert(q.x == 7 && q.name[1] == 'b' && q.name[2] == 0);
  memcpy(copied + 1, given, 2 * sizeof(int));
  assert(copied[0] == 0 && copied[1] == 1 && copied[2] == 2 && copied[3] == 0);
  memcpy(heap, given, length * sizeof(int));
  assert(heap[1] == 2 && (length == 2 || heap[2] == 3));
  memset(wide, 0x12, sizeof wide);
  assert(wide[2] == 0x1212);
  fill(given + 1, -1, length);
  assert(given[0] == 1 && given[1] == -1 && given[2] == -1 && (given[3] == 4) == (length == 2));
  memset(heap, 0, 4 * sizeof *heap);
  assert(heap[3] == 0);
  free(heap);
  return 0;
}
