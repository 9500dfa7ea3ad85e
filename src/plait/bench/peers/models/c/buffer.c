// A bounded buffer of two places with condition variables: THREADS producers of one item each, one consumer.
// verdict: true
#include <assert.h>
#include <pthread.h>

#ifndef THREADS
#define THREADS 2
#endif
#define SIZE 2

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t not_full = PTHREAD_COND_INITIALIZER;
pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
int items[SIZE];
int used = 0, head = 0, sum = 0;

void *produce(void *unused) {
    pthread_mutex_lock(&mutex);
    while (used == SIZE) pthread_cond_wait(&not_full, &mutex);
    items[(head + used) % SIZE] = 1;
    used = used + 1;
    assert(used <= SIZE);
    pthread_cond_signal(&not_empty);
    pthread_mutex_unlock(&mutex);
    return 0;
}

void *consume(void *unused) {
    for (int i = 0; i < THREADS; i++) {
        pthread_mutex_lock(&mutex);
        while (used == 0) pthread_cond_wait(&not_empty, &mutex);
        sum = sum + items[head];
        head = (head + 1) % SIZE;
        used = used - 1;
        assert(used >= 0);
        pthread_cond_signal(&not_full);
        pthread_mutex_unlock(&mutex);
    }
    return 0;
}

int main(void) {
    pthread_t threads[THREADS], consumer;
    pthread_create(&consumer, 0, consume, 0);
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], 0, produce, 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
    pthread_join(consumer, 0);
    assert(sum == THREADS);
    return 0;
}
