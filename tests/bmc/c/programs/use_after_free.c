// A reader uses an object that its owner frees; with a lock it would be fine.
// verdict: true
// violated: memory
#include <pthread.h>
#include <stdlib.h>
struct item {
  int key, value;
} *shared;
void *reader(void *arg) {
  struct item *mine = shared;
  if (mine != NULL)
    return (void *)(long)mine->value;
  return NULL;
}
int main(void) {
  pthread_t t;
  void *result;
  shared = (struct item *)calloc(1, sizeof(struct item));
  shared->value = 9;
  pthread_create(&t, NULL, reader, NULL);
  struct item *mine = shared;
  shared = NULL;
  free(mine);
  pthread_join(t, &result);
  return 0;
}
