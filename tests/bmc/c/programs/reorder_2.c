// 2 threads set a and b, one thread checks that both or none have been set.
// verdict: false
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
extern void reach_error(void);
static int setters = 2, checkers = 1;
static int a = 0, b = 0;
void *set(void *unused) {
  a = 1;
  b = -1;
  return NULL;
}
void *check(void *unused) {
  if (!((a == 0 && b == 0) || (a == 1 && b == -1))) {
    fprintf(stderr, "Bug found!\n");
    reach_error();
  }
  return NULL;
}
int main(int argc, char *argv[]) {
  pthread_t s[setters], c[checkers];
  int i, err;
  for (i = 0; i < setters; i++)
    if (0 != (err = pthread_create(&s[i], NULL, &set, NULL))) {
      fprintf(stderr, "Error [%d] found creating a thread.\n", err);
      exit(-1);
    }
  for (i = 0; i < checkers; i++)
    pthread_create(&c[i], NULL, &check, NULL);
  for (i = 0; i < setters; i++)
    pthread_join(s[i], NULL);
  for (i = 0; i < checkers; i++)
    pthread_join(c[i], NULL);
  return 0;
}
