// Structs that are set in part go through a queue, with locks in local structs; only what is set is read.
// verdict: true
#include <assert.h>
#include <pthread.h>
#include <string.h>
struct job {
  int kind, size;
};
struct guarded {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct job last;
};
struct job queue[2];
int count;
void push(struct job j) { queue[count++] = j; }
void *worker(void *arg) {
  struct guarded *g = arg;
  pthread_mutex_lock(&g->lock);
  assert(g->last.kind == 7);
  g->last.kind = 8;
  pthread_mutex_unlock(&g->lock);
  return NULL;
}
int main(void) {
  struct guarded g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, {7, 0}}, h;
  struct job one, two;
  pthread_t t;
  memset(&h, 0, sizeof h);
  assert(h.last.size == 0);
  one.kind = 1;
  two.kind = 2;
  two.size = 5;
  push(one);
  push(two);
  assert(queue[0].kind == 1 && queue[1].size == 5);
  pthread_create(&t, NULL, worker, &g);
  pthread_join(t, NULL);
  assert(g.last.kind == 8);
  return 0;
}
