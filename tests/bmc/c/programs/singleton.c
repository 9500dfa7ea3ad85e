// Threads that write to an object that another thread allocates first.
// verdict: false
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
char *v;
void *allocate(void *arg) {
  v = malloc(sizeof(char));
  return 0;
}
void *put_x(void *arg) {
  v[0] = 'X';
  return 0;
}
void *put_y(void *arg) {
  v[0] = 'Y';
  return 0;
}
void *parent(void *arg) {
  pthread_t t1, t2, t3, t4, t5;
  pthread_create(&t1, 0, allocate, 0);
  pthread_join(t1, 0);
  pthread_create(&t2, 0, put_x, 0);
  pthread_create(&t3, 0, put_y, 0);
  pthread_create(&t4, 0, put_y, 0);
  pthread_create(&t5, 0, put_y, 0);
  pthread_join(t2, 0);
  pthread_join(t3, 0);
  pthread_join(t4, 0);
  pthread_join(t5, 0);
  return 0;
}
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, parent, 0);
  pthread_join(t, 0);
  assert(v[0] == 'X');
  return 0;
}
