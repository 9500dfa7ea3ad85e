// Memory without a first value that is set before it is read: by a function, in loops, in a copy of a struct.
// verdict: true
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
struct pair {
  int first, second;
};
void fill(int *to, int value) { *to = value; }
struct pair half(int first) {
  struct pair made;
  made.first = first;
  return made;
}
int took(struct pair p) { return p.first; }
void *worker(void *arg) {
  struct pair *mine = arg;
  mine->second = mine->first + 1;
  return NULL;
}
int main(void) {
  pthread_t threads[2];
  struct pair *pairs = malloc(2 * sizeof(struct pair));
  int one, table[3];
  struct timespec now;
  time_t t, same;
  fill(&one, 1);
  for (int i = 0; i < 3; i++)
    table[i] = i;
  for (int i = 0; i < 2; i++) {
    pairs[i].first = table[i + 1];
    pthread_create(&threads[i], NULL, worker, &pairs[i]);
  }
  for (int i = 0; i < 2; i++)
    pthread_join(threads[i], NULL);
  assert(pairs[0].second == 2 && pairs[1].second == 3 && one == 1);
  struct pair copy = half(5), other;
  other = copy;
  assert(took(other) == 5);
  other.second = 6;
  assert(other.first + other.second == 11);
  struct pair *zero = calloc(1, sizeof *zero);
  assert(zero->second == 0);
  clock_gettime(CLOCK_REALTIME, &now);
  now.tv_sec += 5;
  return 0;
}
