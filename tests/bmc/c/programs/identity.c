// Threads know who they are; results come back through pthread_join and pthread_exit.
// verdict: true
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
pthread_t ids[2];
static void leave(intptr_t n) { pthread_exit((void *)(n * 10)); }
void *worker(void *arg) {
  intptr_t n = (intptr_t)arg;
  assert(pthread_equal(pthread_self(), ids[n]));
  assert(!pthread_equal(pthread_self(), ids[1 - n]) || ids[1 - n] == 0);
  if (n == 1)
    leave(n + 1);
  return (void *)(n + 7);
}
int main(void) {
  void *result;
  for (intptr_t i = 0; i < 2; i++)
    pthread_create(&ids[i], 0, worker, (void *)i);
  pthread_join(ids[1], &result);
  assert((intptr_t)result == 20);
  pthread_join(ids[0], &result);
  assert((long)result == 7);
  return 0;
}
