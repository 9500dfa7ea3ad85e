// Each of THREADS threads transfers between two accounts under both locks, always in the same order.
// verdict: true
#include <assert.h>
#include <pthread.h>

#ifndef THREADS
#define THREADS 3
#endif

pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t second = PTHREAD_MUTEX_INITIALIZER;
int a = 10, b = 10;

void *transfer(void *unused) {
    pthread_mutex_lock(&first);
    pthread_mutex_lock(&second);
    a = a - 1;
    b = b + 1;
    pthread_mutex_unlock(&second);
    pthread_mutex_unlock(&first);
    return 0;
}

int main(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], 0, transfer, 0);
    pthread_mutex_lock(&first);
    pthread_mutex_lock(&second);
    assert(a + b == 20);
    pthread_mutex_unlock(&second);
    pthread_mutex_unlock(&first);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
    assert(a == 10 - THREADS);
    return 0;
}
