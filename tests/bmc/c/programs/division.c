// The divisor becomes 0 between the test and the division.
// verdict: true
// violated: division
#include <pthread.h>
int d = 2, q;
void *zero(void *arg) {
  d = 0;
  return 0;
}
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, zero, 0);
  if (d)
    q = 10 / d;
  pthread_join(t, 0);
  return 0;
}
