// A work-stealing queue in the style of Chase and Lev: the owner takes at one end, a thief steals at the other.
// verdict: true
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#define SIZE 4
atomic_int head, tail;
int items[SIZE], done[SIZE];
static void push(int item) {
  int t = tail;
  items[t % SIZE] = item;
  tail = t + 1;
}
static int take(void) {
  int t = tail - 1;
  tail = t;
  int h = head;
  if (h < t)
    return items[t % SIZE];
  if (h > t) {
    tail = h;
    return -1;
  }
  int item = items[t % SIZE];
  if (!atomic_compare_exchange_strong(&head, &h, h + 1)) {
    tail = h;
    return -1;
  }
  tail = h + 1;
  return item;
}
static int steal(void) {
  int h = head;
  if (h >= tail)
    return -1;
  int item = items[h % SIZE];
  return atomic_compare_exchange_strong(&head, &h, h + 1) ? item : -1;
}
static void finish(int item) {
  if (item >= 0) {
    assert(!done[item]);
    done[item] = 1;
  }
}
void *thief(void *arg) {
  finish(steal());
  return 0;
}
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, thief, 0);
  push(0);
  push(1);
  finish(take());
  finish(take());
  pthread_join(t, 0);
  return 0;
}
