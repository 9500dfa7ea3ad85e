// An exchanger as in the elimination back-off stack: a push and a pop that meet cancel each other.
// verdict: true
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
enum { EMPTY, OFFERED, TAKEN };
atomic_int slot;
int offer, received = -1, withdrawn;
void *pusher(void *arg) {
  int expected = EMPTY;
  offer = 7;
  if (atomic_compare_exchange_strong(&slot, &expected, OFFERED)) {
    expected = OFFERED;
    if (atomic_compare_exchange_strong(&slot, &expected, EMPTY))
      withdrawn = 1;
  }
  return 0;
}
void *popper(void *arg) {
  int expected = OFFERED;
  if (atomic_compare_exchange_strong(&slot, &expected, TAKEN))
    received = offer;
  return 0;
}
int main(void) {
  pthread_t s, t;
  pthread_create(&s, 0, pusher, 0);
  pthread_create(&t, 0, popper, 0);
  pthread_join(s, 0);
  pthread_join(t, 0);
  assert(withdrawn ? received == -1 : received == 7);
  return 0;
}
