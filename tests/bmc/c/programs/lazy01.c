// One thread checks what two others have added to a counter under a lock.
// verdict: false
#include <assert.h>
#include <pthread.h>
pthread_mutex_t lock;
int data;
void *add_one(void *p) {
  pthread_mutex_lock(&lock);
  data++;
  pthread_mutex_unlock(&lock);
  return 0;
}
void *add_two(void *p) {
  pthread_mutex_lock(&lock);
  data += 2;
  pthread_mutex_unlock(&lock);
  return 0;
}
void *checker(void *p) {
  pthread_mutex_lock(&lock);
  assert(data < 3);
  pthread_mutex_unlock(&lock);
  return 0;
}
int main(void) {
  pthread_t t1, t2, t3;
  pthread_mutex_init(&lock, 0);
  data = 0;
  pthread_create(&t1, 0, add_one, 0);
  pthread_create(&t2, 0, add_two, 0);
  pthread_create(&t3, 0, checker, 0);
  pthread_join(t1, 0);
  pthread_join(t2, 0);
  pthread_join(t3, 0);
  return 0;
}
