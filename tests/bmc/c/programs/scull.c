// A device driver in the style of scull: a semaphore protects the size, open and write use it.
// verdict: true
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
struct device {
  int size, quantum;
  int data[2];
  sem_t sem;
};
static struct device dev = {.quantum = 2};
static int trim(struct device *d) {
  for (int i = 0; i < d->quantum; i++)
    d->data[i] = 0;
  d->size = 0;
  return 0;
}
static int write_all(struct device *d, int value) {
  if (sem_wait(&d->sem))
    return -1;
  for (int i = 0; i < d->quantum; i++)
    d->data[i] = value;
  d->size = d->quantum;
  sem_post(&d->sem);
  return d->quantum;
}
static int check(struct device *d) {
  int ok;
  sem_wait(&d->sem);
  ok = d->data[0] == d->data[1];
  sem_post(&d->sem);
  return ok;
}
void *writer(void *arg) {
  write_all(&dev, *(int *)arg);
  return 0;
}
void *reader(void *arg) {
  assert(check(&dev));
  return 0;
}
int main(void) {
  pthread_t a, b, c;
  int one = 1, two = 2;
  sem_init(&dev.sem, 0, 1);
  trim(&dev);
  pthread_create(&a, 0, writer, &one);
  pthread_create(&b, 0, writer, &two);
  pthread_create(&c, 0, reader, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  pthread_join(c, 0);
  return 0;
}
