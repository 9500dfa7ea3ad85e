// A stack with 8 elements under a lock: a pop sees an empty stack never.
// verdict: true
#include <pthread.h>
#include <stdlib.h>
#define SIZE 8
extern void reach_error(void);
void fail(void) {
ERROR:
  reach_error();
  abort();
}
static int top = 0;
static unsigned int arr[SIZE];
pthread_mutex_t m;
_Bool flag = 0;
int push(unsigned int *stack, int x) {
  if (top == SIZE)
    return -1;
  stack[top] = x;
  top++;
  return 0;
}
int pop(unsigned int *stack) {
  if (top == 0)
    return -2;
  top--;
  return stack[top];
}
void *pusher(void *arg) {
  for (int i = 0; i < SIZE; i++) {
    pthread_mutex_lock(&m);
    if (push(arr, i % 3) == -1)
      fail();
    flag = 1;
    pthread_mutex_unlock(&m);
  }
  return 0;
}
void *popper(void *arg) {
  for (int i = 0; i < SIZE; i++) {
    pthread_mutex_lock(&m);
    if (top > 0)
      if (pop(arr) == -2)
        fail();
    pthread_mutex_unlock(&m);
  }
  return 0;
}
int main(void) {
  pthread_t a, b;
  pthread_mutex_init(&m, 0);
  pthread_create(&a, 0, pusher, 0);
  pthread_create(&b, 0, popper, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  return 0;
}
