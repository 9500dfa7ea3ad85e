// From the paper of Flanagan, Freund and Qadeer on thread-modular verification: a counter with too little room.
// verdict: false
#include <assert.h>
#include <pthread.h>
int i = 0;
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
void *thr1(void *arg) {
  pthread_mutex_lock(&m);
  assert(i < 3);
  pthread_mutex_unlock(&m);
  return 0;
}
void *thr2(void *arg) {
  pthread_mutex_lock(&m);
  i++;
  pthread_mutex_unlock(&m);
  return 0;
}
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, thr1, 0);
  for (int k = 0; k < 3; k++)
    pthread_create(&t, 0, thr2, 0);
  return 0;
}
