// One thread allocates a buffer, the other one fills it.
// verdict: false
// violated: memory
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
char *v;
void *allocate(void *arg) {
  v = malloc(sizeof(char) * 8);
  return 0;
}
void *fill(void *arg) {
  if (v) {
    v[0] = 'B';
    v[1] = 'i';
    v[2] = 'g';
    v[3] = 0;
  }
  return 0;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, allocate, 0);
  pthread_create(&b, 0, fill, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(v[0] == 'B');
  return 0;
}
