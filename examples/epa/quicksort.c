/* Parallel quicksort: each call sorts its left part in a new thread. The number of threads determines the depth.
 * Usage: quicksort [THREADS] [ELEMENTS] */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    int *data;
    int low, high, depth;
} task;

static void sort(int *data, int low, int high, int depth);

static void *run(void *given) {
    task *t = given;
    sort(t->data, t->low, t->high, t->depth);
    free(t);
    return NULL;
}

static int partition(int *data, int low, int high) {
    int pivot = data[(low + high) / 2], i = low - 1, j = high + 1;
    for (;;) {
        do i++; while (data[i] < pivot);
        do j--; while (data[j] > pivot);
        if (i >= j) return j;
        int t = data[i];
        data[i] = data[j];
        data[j] = t;
    }
}

static void sort(int *data, int low, int high, int depth) {
    if (low >= high) return;
    int middle = partition(data, low, high);
    if (depth > 0) {
        task *left = malloc(sizeof *left);
        left->data = data;
        left->low = low;
        left->high = middle;
        left->depth = depth - 1;
        pthread_t thread;
        pthread_create(&thread, NULL, run, left);
        sort(data, middle + 1, high, depth - 1);
        pthread_join(thread, NULL);
    } else {
        sort(data, low, middle, 0);
        sort(data, middle + 1, high, 0);
    }
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 4, n = argc > 2 ? atoi(argv[2]) : 200, depth = 0;
    while ((1 << depth) < threads) depth++;
    int *data = malloc(n * sizeof *data);
    unsigned seed = 12345;
    for (int i = 0; i < n; i++) {
        seed = seed * 1103515245u + 12345u;
        data[i] = (int)(seed >> 16) % 1000;
    }
    sort(data, 0, n - 1, depth);
    long sum = 0;
    for (int i = 0; i < n; i++) sum += (long)data[i] * (i % 97);
    printf("first %d last %d sum %ld\n", data[0], data[n - 1], sum);
    free(data);
    return 0;
}
