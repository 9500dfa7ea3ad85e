// A ticket lock: THREADS threads take a number atomically and wait until it is served.
// verdict: true
#include <assert.h>
#include <pthread.h>

#ifndef THREADS
#define THREADS 3
#endif

int next = 0, served = 0, inside = 0;

int __VERIFIER_atomic_take(void) {
    int mine = next;
    next = mine + 1;
    return mine;
}

void *customer(void *unused) {
    int mine = __VERIFIER_atomic_take();
    while (served != mine) {
    }
    inside = inside + 1;
    assert(inside == 1);
    inside = inside - 1;
    served = mine + 1;
    return 0;
}

int main(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], 0, customer, 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
    return 0;
}
