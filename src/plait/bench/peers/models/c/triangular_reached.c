// As triangular.c, with a limit that the longest alternation reaches.
// verdict: false
#include <assert.h>
#include <pthread.h>

#ifndef THREADS
#define THREADS 3
#endif
#define LIMIT (2 * THREADS + 5)

int i = 3, j = 6;

void *odd(void *unused) {
    for (int k = 0; k < THREADS; k++) i = j + 1;
    return 0;
}

void *even(void *unused) {
    for (int k = 0; k < THREADS; k++) j = i + 1;
    return 0;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, odd, 0);
    pthread_create(&b, 0, even, 0);
    assert(i <= LIMIT && j <= LIMIT);
    pthread_join(a, 0);
    pthread_join(b, 0);
    assert(i <= LIMIT && j <= LIMIT);
    return 0;
}
