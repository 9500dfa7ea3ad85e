// The same without an overflow: the numbers are small enough.
// verdict: true
// options: overflow=true
#include <assert.h>
#include <limits.h>
#include <pthread.h>
int x = INT_MAX - 2;
signed char c = 127;
void *add(void *arg) {
  x = x + 1;
  return 0;
}
int main(void) {
  pthread_t s, t;
  pthread_create(&s, 0, add, 0);
  pthread_create(&t, 0, add, 0);
  pthread_join(s, 0);
  pthread_join(t, 0);
  assert(c + 1 == 128); // promoted to int
  c++;                  // converted back: implementation-defined, not an overflow
  assert(c == -128);
  return 0;
}
