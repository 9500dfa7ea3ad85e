// main ends with pthread_exit: the other threads go on, and one of them waits forever.
// verdict: true
// violated: deadlock
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
  pthread_exit(0);
}
