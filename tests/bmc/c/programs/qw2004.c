// The Bluetooth driver of Qadeer and Wu (2004): a request starts after the driver has stopped.
// verdict: false
#include <assert.h>
#include <pthread.h>
volatile int stoppingFlag, pendingIo = 1, stoppingEvent, stopped;
extern void __VERIFIER_atomic_begin(void);
extern void __VERIFIER_atomic_end(void);
int inc(void) {
  if (stoppingFlag)
    return -1;
  __VERIFIER_atomic_begin();
  pendingIo = pendingIo + 1;
  __VERIFIER_atomic_end();
  return 0;
}
void dec(void) {
  int pending;
  __VERIFIER_atomic_begin();
  pendingIo = pendingIo - 1;
  pending = pendingIo;
  __VERIFIER_atomic_end();
  if (pending == 0)
    stoppingEvent = 1;
}
void *stop(void *arg) {
  stoppingFlag = 1;
  dec();
  if (stoppingEvent)
    stopped = 1;
  return 0;
}
int main(void) {
  pthread_t t;
  int status;
  pthread_create(&t, 0, stop, 0);
  status = inc();
  if (status == 0)
    assert(!stopped);
  dec();
  pthread_join(t, 0);
  return 0;
}
