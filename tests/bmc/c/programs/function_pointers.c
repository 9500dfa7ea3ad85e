// Calls through pointers to functions: from a table, a field and a parameter, with and without `*`.
// verdict: true
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
typedef int (*operation)(int, int);
static int add(int a, int b) { return a + b; }
static int sub(int a, int b) { return a - b; }
static operation table[] = {add, sub};
struct job {
  operation run;
  int argument;
} job = {add, 5};
static int apply(operation f, int x) { return f(x, 1); }
int choice;
void *chooser(void *arg) {
  choice = 1;
  job.run = &sub;
  return NULL;
}
int main(void) {
  pthread_t t;
  pthread_create(&t, NULL, &chooser, NULL);
  int i = choice;
  int r = table[i](7, 3);
  assert(i ? r == 4 : r == 10);
  r = job.run(job.argument, 2);
  assert(r == 7 || r == 3);
  pthread_join(t, NULL);
  assert(job.run == sub && apply(job.run, 4) == 3 && apply(add, 4) == 5);
  operation f = &add, *p = &f;
  assert((*f)(1, 2) == 3 && (**f)(1, 2) == 3 && (*job.run)(3, 1) == 2 && (&sub)(3, 1) == 2 && (**p)(1, 2) == 3);
  assert(&*f == add && *f == add && *p == add);
  return 0;
}
