// A linked list in a loop with malloc: 3 elements.
// verdict: true
// options: objects=3
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
typedef struct element {
  struct element *next;
  int value;
} element;
int count = 3;
void *worker(void *arg) {
  element *head = NULL;
  int sum = 0;
  for (int i = 1; i <= count; i++) {
    element *e = (element *)malloc(sizeof(element));
    e->value = i;
    e->next = head;
    head = e;
  }
  for (element *e = head; e != NULL; e = e->next)
    sum += e->value;
  while (head) {
    element *next = head->next;
    free(head);
    head = next;
  }
  assert(sum == count * (count + 1) / 2);
  return (void *)(long)sum;
}
int main(void) {
  pthread_t t[2];
  void *result[2];
  for (int i = 0; i < 2; i++)
    pthread_create(&t[i], NULL, worker, NULL);
  for (int i = 0; i < 2; i++)
    pthread_join(t[i], &result[i]);
  assert((long)result[0] + (long)result[1] == 12);
  return 0;
}
