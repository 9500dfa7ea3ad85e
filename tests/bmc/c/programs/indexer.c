// Threads insert messages in a hash table with compare and swap; with few threads, no two meet.
// verdict: true
#include <assert.h>
#include <pthread.h>
#define SIZE 8
#define MAX 2
#define NUM_THREADS 3
int table[SIZE];
pthread_mutex_t cas_mutex[SIZE];
pthread_t tids[NUM_THREADS];
int cas(int *tab, int h, int val, int new_val) {
  int ret_val = 0;
  pthread_mutex_lock(&cas_mutex[h]);
  if (tab[h] == val) {
    tab[h] = new_val;
    ret_val = 1;
  }
  pthread_mutex_unlock(&cas_mutex[h]);
  return ret_val;
}
void *thread_routine(void *arg) {
  int tid = *((int *)arg);
  int m = 0, w, h;
  while (1) {
    if (m < MAX) {
      w = (++m) * 11 + tid;
    } else {
      pthread_exit(0);
    }
    h = (w * 7) % SIZE;
    assert(h >= 0);
    while (cas(table, h, 0, w) == 0)
      h = (h + 1) % SIZE;
  }
}
int main(void) {
  int i, arg[NUM_THREADS];
  for (i = 0; i < SIZE; i++)
    pthread_mutex_init(&cas_mutex[i], 0);
  for (i = 0; i < NUM_THREADS; i++) {
    arg[i] = i;
    pthread_create(&tids[i], 0, thread_routine, &arg[i]);
  }
  for (i = 0; i < NUM_THREADS; i++)
    pthread_join(tids[i], 0);
  for (i = 0; i < SIZE; i++)
    pthread_mutex_destroy(&cas_mutex[i]);
  return 0;
}
