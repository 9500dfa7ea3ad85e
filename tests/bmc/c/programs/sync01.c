// A producer and a consumer with two condition variables.
// verdict: true
#include <assert.h>
#include <pthread.h>
int num;
pthread_mutex_t m;
pthread_cond_t empty, full;
void *producer(void *arg) {
  pthread_mutex_lock(&m);
  while (num > 0)
    pthread_cond_wait(&empty, &m);
  num++;
  pthread_mutex_unlock(&m);
  pthread_cond_signal(&full);
  return 0;
}
void *consumer(void *arg) {
  pthread_mutex_lock(&m);
  while (num == 0)
    pthread_cond_wait(&full, &m);
  num--;
  pthread_mutex_unlock(&m);
  pthread_cond_signal(&empty);
  return 0;
}
int main(void) {
  pthread_t a, b;
  num = 1;
  pthread_mutex_init(&m, 0);
  pthread_cond_init(&empty, 0);
  pthread_cond_init(&full, 0);
  pthread_create(&a, 0, producer, 0);
  pthread_create(&b, 0, consumer, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(num == 1);
  return 0;
}
