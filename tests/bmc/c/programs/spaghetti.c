// Jumps in and out of blocks, a switch that falls through, and loops from labels.
// verdict: true
#include <assert.h>
#include <pthread.h>
int turn, trace;
static int machine(int state) {
  int steps = 0;
again:
  steps++;
  switch (state) {
  case 0:
    state = 2;
    goto again;
  case 1:
    steps += 10;
  case 2:
  case 3:
    if (state == 3)
      goto out;
    state++;
    goto again;
  default:
    goto again;
  }
out:
  return steps;
}
void *one(void *arg) {
wait:
  if (turn != 1)
    goto wait;
  trace = trace * 10 + machine(1);
  turn = 2;
  return 0;
}
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, one, 0);
  trace = machine(0);
  turn = 1;
  while (turn != 2) {
  }
  assert(trace == 3 * 10 + 13);
  return 0;
}
