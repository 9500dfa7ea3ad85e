// A queue with one lock. The writer appends 1, 2, 3 and so on; the reader takes them in this order. THREADS items.
// verdict: true
#include <assert.h>
#include <pthread.h>

#ifndef THREADS
#define THREADS 3
#endif

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
int items[THREADS];
int written = 0, taken = 0;

void *write_items(void *unused) {
    for (int i = 1; i <= THREADS; i++) {
        pthread_mutex_lock(&mutex);
        items[written] = i;
        written = written + 1;
        pthread_mutex_unlock(&mutex);
    }
    return 0;
}

void *read_items(void *unused) {
    for (int i = 0; i < THREADS; i++) {
        pthread_mutex_lock(&mutex);
        if (taken < written) {
            int item = items[taken];
            taken = taken + 1;
            assert(item == taken);
        }
        pthread_mutex_unlock(&mutex);
    }
    return 0;
}

int main(void) {
    pthread_t writer, reader;
    pthread_create(&writer, 0, write_items, 0);
    pthread_create(&reader, 0, read_items, 0);
    pthread_join(writer, 0);
    pthread_join(reader, 0);
    assert(taken <= written);
    return 0;
}
