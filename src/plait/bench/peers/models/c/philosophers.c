// THREADS philosophers, one of them left-handed. Neighbours never eat at the same time.
// verdict: true
#include <assert.h>
#include <pthread.h>

#ifndef THREADS
#define THREADS 3
#endif

pthread_mutex_t forks[THREADS];
int eating[THREADS];
int number = 0;
pthread_mutex_t numbering = PTHREAD_MUTEX_INITIALIZER;

void *philosopher(void *unused) {
    pthread_mutex_lock(&numbering);
    int i = number;
    number = i + 1;
    pthread_mutex_unlock(&numbering);
    int left = i, right = (i + 1) % THREADS;
    int low = left < right ? left : right, high = left < right ? right : left;
    pthread_mutex_lock(&forks[low]);
    pthread_mutex_lock(&forks[high]);
    eating[i] = 1;
    assert(eating[right] == 0);
    eating[i] = 0;
    pthread_mutex_unlock(&forks[high]);
    pthread_mutex_unlock(&forks[low]);
    return 0;
}

int main(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_mutex_init(&forks[i], 0);
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], 0, philosopher, 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
    return 0;
}
