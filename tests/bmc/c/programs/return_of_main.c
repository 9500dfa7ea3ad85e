// main returns while a thread waits: the program ends, so this is no deadlock.
// verdict: true
#include <pthread.h>
#include <semaphore.h>
sem_t s;
void *waiter(void *arg) {
  sem_wait(&s);
  return 0;
}
int main(void) {
  pthread_t t;
  sem_init(&s, 0, 0);
  pthread_create(&t, 0, waiter, 0);
  return 0;
}
