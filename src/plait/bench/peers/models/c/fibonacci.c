// Two threads add each other's number THREADS times. The largest result is a Fibonacci number.
// verdict: true
#include <assert.h>
#include <pthread.h>

#ifndef THREADS
#define THREADS 3
#endif

int i = 1, j = 1;
int fibonacci[12] = {1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144};

void *odd(void *unused) {
    for (int k = 0; k < THREADS; k++) i = i + j;
    return 0;
}

void *even(void *unused) {
    for (int k = 0; k < THREADS; k++) j = j + i;
    return 0;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, odd, 0);
    pthread_create(&b, 0, even, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    assert(i <= fibonacci[2 * THREADS + 1] && j <= fibonacci[2 * THREADS + 1]);
    return 0;
}
