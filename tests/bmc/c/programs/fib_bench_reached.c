// Two threads race along the Fibonacci sequence; the largest possible value is fib(8).
// verdict: false
#include <pthread.h>
extern void reach_error(void);
int i = 1, j = 1;
#define ROUNDS 3
void *first(void *unused) {
  for (int k = 0; k < ROUNDS; k++)
    i += j;
  pthread_exit(0);
}
void *second(void *unused) {
  for (int k = 0; k < ROUNDS; k++)
    j += i;
  pthread_exit(0);
}
int main(int argc, char **argv) {
  pthread_t a, b;
  pthread_create(&a, 0, first, 0);
  pthread_create(&b, 0, second, 0);
  if (i >= 21 || j >= 21) {
    reach_error();
  }
  return 0;
}
