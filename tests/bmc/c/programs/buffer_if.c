// A bounded buffer with condition variables, two producers and two consumers: the consumer does not test again after it has been woken.
// verdict: false
#include <assert.h>
#include <pthread.h>
#define SIZE 1
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER, not_full = PTHREAD_COND_INITIALIZER;
int count, taken;
void *producer(void *arg) {
  pthread_mutex_lock(&m);
  while (count == SIZE)
    pthread_cond_wait(&not_full, &m);
  count++;
  pthread_cond_signal(&not_empty);
  pthread_mutex_unlock(&m);
  return 0;
}
void *consumer(void *arg) {
  pthread_mutex_lock(&m);
  if (count == 0)
    pthread_cond_wait(&not_empty, &m);
  assert(count > 0);
  count--;
  taken++;
  pthread_cond_signal(&not_full);
  pthread_mutex_unlock(&m);
  return 0;
}
int main(void) {
  pthread_t p[2], c[2];
  for (int i = 0; i < 2; i++) {
    pthread_create(&p[i], 0, producer, 0);
    pthread_create(&c[i], 0, consumer, 0);
  }
  for (int i = 0; i < 2; i++) {
    pthread_join(p[i], 0);
    pthread_join(c[i], 0);
  }
  assert(taken == 2 && count == 0);
  return 0;
}
