// The same with a recursive mutex, and the counter of another thread.
// verdict: true
#include <assert.h>
#include <pthread.h>
pthread_mutex_t m;
int x;
static void add(int n) {
  pthread_mutex_lock(&m);
  if (n > 0) {
    x++;
    add(n - 1);
  }
  pthread_mutex_unlock(&m);
}
void *worker(void *arg) {
  pthread_mutex_lock(&m);
  int before = x;
  add(2);
  assert(x == before + 2);
  pthread_mutex_unlock(&m);
  return 0;
}
int main(void) {
  pthread_t s, t;
  pthread_mutexattr_t attr;
  pthread_mutexattr_init(&attr);
  pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&m, &attr);
  pthread_create(&s, 0, worker, 0);
  pthread_create(&t, 0, worker, 0);
  pthread_join(s, 0);
  pthread_join(t, 0);
  assert(x == 4);
  return 0;
}
