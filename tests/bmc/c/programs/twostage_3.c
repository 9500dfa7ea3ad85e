// A value is set in two stages under two locks; a reader sees the stages in between.
// verdict: false
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
extern void reach_error(void);
static int stages = 2, readers = 1;
static int data1, data2;
pthread_mutex_t *lock1, *lock2;
void lock(pthread_mutex_t *l) {
  int err;
  if (0 != (err = pthread_mutex_lock(l))) {
    fprintf(stderr, "Got error %d from pthread_mutex_lock.\n", err);
    exit(-1);
  }
}
void unlock(pthread_mutex_t *l) {
  int err;
  if (0 != (err = pthread_mutex_unlock(l))) {
    fprintf(stderr, "Got error %d from pthread_mutex_unlock.\n", err);
    exit(-1);
  }
}
void *stage(void *arg) {
  lock(lock1);
  data1 = 1;
  unlock(lock1);
  lock(lock2);
  data2 = data1 + 1;
  unlock(lock2);
  return NULL;
}
void *reader(void *arg) {
  int t1 = -1, t2 = -1;
  lock(lock1);
  if (data1 == 0) {
    unlock(lock1);
    return NULL;
  }
  t1 = data1;
  unlock(lock1);
  lock(lock2);
  t2 = data2;
  unlock(lock2);
  if (t2 != t1 + 1) {
    fprintf(stderr, "Bug found!\n");
    reach_error();
  }
  return NULL;
}
int main(int argc, char *argv[]) {
  pthread_t s[2], r[1];
  int i;
  lock1 = (pthread_mutex_t *)malloc(sizeof(pthread_mutex_t));
  lock2 = (pthread_mutex_t *)malloc(sizeof(pthread_mutex_t));
  pthread_mutex_init(lock1, NULL);
  pthread_mutex_init(lock2, NULL);
  for (i = 0; i < stages; i++)
    pthread_create(&s[i], NULL, &stage, NULL);
  for (i = 0; i < readers; i++)
    pthread_create(&r[i], NULL, &reader, NULL);
  for (i = 0; i < stages; i++)
    pthread_join(s[i], NULL);
  for (i = 0; i < readers; i++)
    pthread_join(r[i], NULL);
  return 0;
}
