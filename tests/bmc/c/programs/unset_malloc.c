// A consumer reads a field that the producer never sets.
// verdict: true
// violated: memory
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
struct message {
  int kind, size;
};
struct message *_Atomic box;
void *producer(void *arg) {
  struct message *m = malloc(sizeof *m);
  m->kind = 1;
  box = m;
  return NULL;
}
int main(void) {
  pthread_t t;
  pthread_create(&t, NULL, producer, NULL);
  struct message *m = box;
  if (m != NULL) {
    assert(m->kind == 1);
    if (m->size > 10)
      m->size = 10;
  }
  pthread_join(t, NULL);
  return 0;
}
