// A thread takes a plain mutex twice.
// verdict: true
// violated: deadlock
#include <pthread.h>
pthread_mutex_t m;
static void inner(void) {
  pthread_mutex_lock(&m);
  pthread_mutex_unlock(&m);
}
int main(void) {
  pthread_mutex_init(&m, 0);
  pthread_mutex_lock(&m);
  inner();
  pthread_mutex_unlock(&m);
  return 0;
}
