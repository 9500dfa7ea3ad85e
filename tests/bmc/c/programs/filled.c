// Arrays that loops fill before they are read, also with handles of threads.
// verdict: true
#include <assert.h>
#include <pthread.h>
enum { N = 3 };
int sum;
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
void *add(void *arg) {
  pthread_mutex_lock(&m);
  sum += *(int *)arg;
  pthread_mutex_unlock(&m);
  return NULL;
}
int main(void) {
  pthread_t threads[N];
  int values[N], i;
  for (i = 0; i < N; i++)
    values[i] = i + 1;
  for (unsigned n = 0; n < N; n++)
    pthread_create(&threads[n], NULL, add, &values[n]);
  for (i = 0; i != N; ++i)
    pthread_join(threads[i], NULL);
  assert(sum == 6);
  return 0;
}
