// Two threads free the same object.
// verdict: true
// violated: memory
#include <pthread.h>
#include <stdlib.h>
int *p;
void *drop(void *arg) {
  int *mine = p;
  if (mine) {
    p = NULL;
    free(mine);
  }
  return 0;
}
int main(void) {
  pthread_t s, t;
  p = malloc(sizeof(int));
  *p = 3;
  pthread_create(&s, 0, drop, 0);
  pthread_create(&t, 0, drop, 0);
  pthread_join(s, 0);
  pthread_join(t, 0);
  return 0;
}
