// Lamport's bakery algorithm for two threads.
// verdict: true
#include <assert.h>
#include <pthread.h>
int choosing[2], number[2], x;
void lock(int me) {
  int other = 1 - me;
  choosing[me] = 1;
  number[me] = number[other] + 1;
  choosing[me] = 0;
  while (choosing[other]) {
  }
  while (number[other] != 0 && (number[other] < number[me] || (number[other] == number[me] && other < me))) {
  }
}
void *thread(void *arg) {
  int me = (int)(long)arg;
  lock(me);
  x = me;
  assert(x == me);
  number[me] = 0;
  return 0;
}
int main(void) {
  pthread_t t[2];
  for (long i = 0; i < 2; i++)
    pthread_create(&t[i], 0, thread, (void *)i);
  for (int i = 0; i < 2; i++)
    pthread_join(t[i], 0);
  return 0;
}
