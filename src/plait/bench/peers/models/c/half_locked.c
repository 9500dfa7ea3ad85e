// THREADS threads count under a lock, and main counts without it.
// verdict: false
#include <assert.h>
#include <pthread.h>

#ifndef THREADS
#define THREADS 3
#endif

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
int count = 0;

void *add(void *unused) {
    pthread_mutex_lock(&mutex);
    int seen = count;
    count = seen + 1;
    pthread_mutex_unlock(&mutex);
    return 0;
}

int main(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], 0, add, 0);
    int seen = count;
    count = seen + 1;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
    assert(count == THREADS + 1);
    return 0;
}
