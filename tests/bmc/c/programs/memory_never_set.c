// memcpy copies only the first element; the second one was never set.
// verdict: true
// violated: memory
#include <string.h>

int main(void) {
  int from[2] = {1, 2}, to[2];
  memcpy(to, from, sizeof(int));
  return to[0] + to[1];
}
