// Lamport's bakery algorithm, THREADS customers that enter once.
// verdict: true
#include <assert.h>
#include <pthread.h>

#ifndef THREADS
#define THREADS 2
#endif

int choosing[THREADS], ticket[THREADS];
int inside = 0;

void enter(int me) {
    int highest = 0;
    choosing[me] = 1;
    for (int i = 0; i < THREADS; i++) {
        int seen = ticket[i];
        if (seen > highest) highest = seen;
    }
    ticket[me] = highest + 1;
    choosing[me] = 0;
    for (int i = 0; i < THREADS; i++) {
        if (i == me) continue;
        while (choosing[i] == 1) {
        }
        int other = ticket[i];
        while (other != 0 && (other < highest + 1 || (other == highest + 1 && i < me))) other = ticket[i];
    }
    inside = inside + 1;
    assert(inside == 1);
    inside = inside - 1;
    ticket[me] = 0;
}

void *customer(void *argument) {
    enter(*(int *)argument);
    return 0;
}

int main(void) {
    pthread_t threads[THREADS];
    int numbers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], 0, customer, &numbers[i]);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
    return 0;
}
