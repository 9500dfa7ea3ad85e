// A sequence lock: the reader repeats until the counter is even and has not changed.
// verdict: true
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
atomic_int seq;
atomic_int a, b;
void *writer(void *arg) {
  for (int i = 0; i < 2; i++) {
    atomic_fetch_add(&seq, 1);
    a++;
    b++;
    atomic_fetch_add(&seq, 1);
  }
  return 0;
}
void *reader(void *arg) {
  int before, after, x, y;
  do {
    before = seq;
    x = a;
    y = b;
    after = seq;
  } while (before != after || before % 2);
  assert(x == y);
  return 0;
}
int main(void) {
  pthread_t s, t;
  pthread_create(&s, 0, writer, 0);
  pthread_create(&t, 0, reader, 0);
  pthread_join(s, 0);
  pthread_join(t, 0);
  return 0;
}
