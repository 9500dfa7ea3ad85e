// A lock from test and set; the holder writes twice.
// verdict: true
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
static atomic_flag busy = ATOMIC_FLAG_INIT;
static int x;
void *worker(void *arg) {
  int *mine = arg;
  while (atomic_flag_test_and_set(&busy)) {
  }
  x = *mine;
  assert(x == *mine);
  atomic_flag_clear(&busy);
  return 0;
}
int main(void) {
  pthread_t s, t;
  int one = 1, two = 2;
  pthread_create(&s, 0, worker, &one);
  pthread_create(&t, 0, worker, &two);
  pthread_join(s, 0);
  pthread_join(t, 0);
  return 0;
}
