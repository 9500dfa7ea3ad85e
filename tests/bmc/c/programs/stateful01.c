// Two values, each under a lock of its own, changed by two threads in the order of the locks.
// verdict: false
#include <assert.h>
#include <pthread.h>
pthread_mutex_t ma, mb;
int data1, data2;
void *one(void *arg) {
  pthread_mutex_lock(&ma);
  data1++;
  pthread_mutex_unlock(&ma);
  pthread_mutex_lock(&ma);
  data2++;
  pthread_mutex_unlock(&ma);
  return 0;
}
void *two(void *arg) {
  pthread_mutex_lock(&ma);
  data1 += 5;
  pthread_mutex_unlock(&ma);
  pthread_mutex_lock(&ma);
  data2 -= 6;
  pthread_mutex_unlock(&ma);
  return 0;
}
int main(void) {
  pthread_t a, b;
  pthread_mutex_init(&ma, 0);
  pthread_mutex_init(&mb, 0);
  data1 = 10;
  data2 = 10;
  pthread_create(&a, 0, one, 0);
  pthread_create(&b, 0, two, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(data1 != 16 || data2 != 5);
  return 0;
}
