// Two phases, separated by a barrier; exactly one thread is the serial one.
// verdict: true
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#define N 3
pthread_barrier_t b;
int first[N];
_Atomic int serial;
void *worker(void *arg) {
  int me = (int)(long)arg;
  first[me] = me + 1;
  if (pthread_barrier_wait(&b) == PTHREAD_BARRIER_SERIAL_THREAD)
    serial++;
  assert(first[(me + 1) % N] == (me + 1) % N + 1);
  return 0;
}
int main(void) {
  pthread_t t[N];
  pthread_barrier_init(&b, NULL, N);
  for (long i = 0; i < N; i++)
    pthread_create(&t[i], NULL, worker, (void *)i);
  for (int i = 0; i < N; i++)
    pthread_join(t[i], NULL);
  assert(serial == 1);
  pthread_barrier_destroy(&b);
  return 0;
}
