// Three philosophers, each with a fork from an array of mutexes; all take the left one first.
// verdict: true
// violated: deadlock
#include <pthread.h>
#define N 3
pthread_mutex_t fork[N];
void *philosopher(void *arg) {
  long me = (long)arg;
  pthread_mutex_lock(&fork[me]);
  pthread_mutex_lock(&fork[(me + 1) % N]);
  pthread_mutex_unlock(&fork[(me + 1) % N]);
  pthread_mutex_unlock(&fork[me]);
  return 0;
}
int main(void) {
  pthread_t t[N];
  for (int i = 0; i < N; i++)
    pthread_mutex_init(&fork[i], 0);
  for (long i = 0; i < N; i++)
    pthread_create(&t[i], 0, philosopher, (void *)i);
  for (int i = 0; i < N; i++)
    pthread_join(t[i], 0);
  return 0;
}
