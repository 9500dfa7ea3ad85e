// Producer and consumer with two semaphores and a ring of two places.
// verdict: true
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
sem_t empty, full;
int ring[2];
void *producer(void *arg) {
  for (int i = 0; i < 3; i++) {
    sem_wait(&empty);
    ring[i % 2] = i;
    sem_post(&full);
  }
  return 0;
}
int main(void) {
  pthread_t t;
  int value;
  sem_init(&empty, 0, 2);
  sem_init(&full, 0, 0);
  assert(sem_trywait(&full) == -1);
  pthread_create(&t, 0, producer, 0);
  for (int i = 0; i < 3; i++) {
    sem_wait(&full);
    assert(ring[i % 2] == i);
    sem_post(&empty);
  }
  pthread_join(t, 0);
  sem_getvalue(&empty, &value);
  assert(value == 2);
  sem_destroy(&empty);
  return 0;
}
