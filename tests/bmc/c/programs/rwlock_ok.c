// A pair of values under a read-write lock.
// verdict: true
#include <assert.h>
#include <pthread.h>
pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
int x, y;
void *writer(void *arg) {
  pthread_rwlock_wrlock(&l);
  x++;
  y++;
  pthread_rwlock_unlock(&l);
  return 0;
}
void *reader(void *arg) {
  pthread_rwlock_rdlock(&l);
  assert(x == y);
  pthread_rwlock_unlock(&l);
  return 0;
}
int main(void) {
  pthread_t a, b, c;
  pthread_create(&a, 0, writer, 0);
  pthread_create(&b, 0, writer, 0);
  pthread_create(&c, 0, reader, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  pthread_join(c, 0);
  assert(x == 2 && y == 2);
  return 0;
}
