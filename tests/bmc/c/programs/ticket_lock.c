// A ticket lock: fetch and add for the ticket, then wait for the turn.
// verdict: true
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
typedef struct {
  atomic_uint next, serving;
} ticket_lock;
ticket_lock l;
int x;
static void lock(ticket_lock *t) {
  unsigned my = atomic_fetch_add(&t->next, 1);
  while (atomic_load(&t->serving) != my)
    ;
}
static void unlock(ticket_lock *t) { atomic_fetch_add(&t->serving, 1); }
void *worker(void *arg) {
  lock(&l);
  x = x + 1;
  unlock(&l);
  return 0;
}
int main(void) {
  pthread_t t[3];
  for (int i = 0; i < 3; i++)
    pthread_create(&t[i], 0, worker, 0);
  for (int i = 0; i < 3; i++)
    pthread_join(t[i], 0);
  assert(x == 3);
  return 0;
}
