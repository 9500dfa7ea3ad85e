// A read-write lock that turns away who cannot enter: THREADS readers and one writer.
// verdict: true
#include <assert.h>
#include <pthread.h>

#ifndef THREADS
#define THREADS 2
#endif

pthread_mutex_t entry = PTHREAD_MUTEX_INITIALIZER;
int readers = 0, writing = 0;
int x = 0, y = 0;

void *read_both(void *unused) {
    int admitted = 0;
    pthread_mutex_lock(&entry);
    if (writing == 0) {
        readers = readers + 1;
        admitted = 1;
    }
    pthread_mutex_unlock(&entry);
    if (admitted) {
        int a = x, b = y;
        assert(a == b);
        pthread_mutex_lock(&entry);
        readers = readers - 1;
        pthread_mutex_unlock(&entry);
    }
    return 0;
}

void *write_both(void *unused) {
    int admitted = 0;
    pthread_mutex_lock(&entry);
    if (readers == 0) {
        writing = 1;
        admitted = 1;
    }
    pthread_mutex_unlock(&entry);
    if (admitted) {
        x = 1;
        y = 1;
        pthread_mutex_lock(&entry);
        writing = 0;
        pthread_mutex_unlock(&entry);
    }
    return 0;
}

int main(void) {
    pthread_t threads[THREADS], writer;
    pthread_create(&writer, 0, write_both, 0);
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], 0, read_both, 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
    pthread_join(writer, 0);
    return 0;
}
