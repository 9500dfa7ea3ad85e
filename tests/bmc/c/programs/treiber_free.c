// Treiber's stack: two threads push and pop with compare and swap; a node is freed while another thread may still read it.
// verdict: true
// violated: memory
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
struct node {
  int value;
  struct node *next;
};
_Atomic(struct node *) top;
void push(int value) {
  struct node *n = malloc(sizeof *n);
  n->value = value;
  n->next = atomic_load(&top);
  while (!atomic_compare_exchange_weak(&top, &n->next, n)) {
  }
}
int pop(void) {
  struct node *n = atomic_load(&top);
  while (n && !atomic_compare_exchange_weak(&top, &n, n->next)) {
  }
  if (!n)
    return 0;
  int value = n->value;
  free(n);
  return value;
}
int got[2];
void *worker(void *arg) {
  long me = (long)arg;
  push(1 << me);
  got[me] = pop();
  return 0;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, worker, (void *)0L);
  pthread_create(&b, 0, worker, (void *)1L);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert((got[0] | got[1]) == 3);
  return 0;
}
