// A thread reads a cell beyond the array after another one has changed the index.
// verdict: true
// violated: bounds
#include <pthread.h>
int a[3], i, sink;
void *mover(void *arg) {
  i = 3;
  i = 0;
  return 0;
}
void *reader(void *arg) {
  sink = a[i];
  return 0;
}
int main(void) {
  pthread_t s, t;
  pthread_create(&s, 0, mover, 0);
  pthread_create(&t, 0, reader, 0);
  pthread_join(s, 0);
  pthread_join(t, 0);
  return 0;
}
