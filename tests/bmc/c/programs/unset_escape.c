// A thread gets the address of a variable that main sets too late.
// verdict: true
// violated: memory
#include <pthread.h>
int sum;
void *reader(void *arg) {
  sum = *(int *)arg;
  return NULL;
}
int main(void) {
  pthread_t t;
  int value;
  pthread_create(&t, NULL, reader, &value);
  value = 7;
  pthread_join(t, NULL);
  return 0;
}
