// A queue in a ring buffer under one lock; a flag tells the reader when there is something.
// verdict: true
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#define SIZE 3
#define EMPTY (-1)
#define FULL (-2)
extern void reach_error(void);
typedef struct {
  int element[SIZE];
  int head, tail, amount;
} Queue;
pthread_mutex_t m;
int last;
_Bool enqueue_flag, dequeue_flag;
Queue queue;
void init(Queue *q) {
  q->head = 0;
  q->tail = 0;
  q->amount = 0;
}
int enqueue(Queue *q, int x) {
  q->element[q->tail] = x;
  q->amount++;
  if (q->tail == SIZE - 1)
    q->tail = 0;
  else
    q->tail++;
  return 0;
}
int dequeue(Queue *q) {
  int x = q->element[q->head];
  q->amount--;
  if (q->head == SIZE - 1)
    q->head = 0;
  else
    q->head++;
  return x;
}
void *writer(void *arg) {
  for (int i = 0; i < SIZE; i++) {
    pthread_mutex_lock(&m);
    if (enqueue_flag) {
      int value = i + 5;
      enqueue(&queue, value);
      last = value;
      enqueue_flag = false;
      dequeue_flag = true;
    }
    pthread_mutex_unlock(&m);
  }
  return 0;
}
void *reader(void *arg) {
  for (int i = 0; i < SIZE; i++) {
    pthread_mutex_lock(&m);
    if (dequeue_flag) {
      if (dequeue(&queue) != last) {
      ERROR: {
        reach_error();
        abort();
      }
      }
      dequeue_flag = false;
      enqueue_flag = true;
    }
    pthread_mutex_unlock(&m);
  }
  return 0;
}
int main(void) {
  pthread_t a, b;
  enqueue_flag = true;
  dequeue_flag = false;
  init(&queue);
  pthread_mutex_init(&m, 0);
  pthread_create(&a, 0, writer, &queue);
  pthread_create(&b, 0, reader, &queue);
  pthread_join(a, 0);
  pthread_join(b, 0);
  pthread_mutex_destroy(&m);
  return 0;
}
