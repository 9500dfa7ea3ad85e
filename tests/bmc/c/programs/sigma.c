// Each thread writes one cell of an array; the sum is read before all have been joined.
// verdict: false
// violated: memory
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
enum { SIZE = 4 };
int *values;
int next = -1;
void *worker(void *arg) {
  values[next] = 1;
  return 0;
}
int main(void) {
  pthread_t *ids = (pthread_t *)malloc(sizeof(pthread_t) * SIZE);
  int sum = 0;
  values = (int *)malloc(sizeof(int) * SIZE);
  for (int i = 0; i < SIZE; i++) {
    next++;
    pthread_create(&ids[i], 0, &worker, 0);
  }
  for (int i = 0; i < SIZE; i++)
    pthread_join(ids[i], 0);
  for (int i = 0; i < SIZE; i++)
    sum += values[i];
  assert(sum == SIZE);
  return 0;
}
