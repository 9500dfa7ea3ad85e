/* Principal components, first half: row means, a barrier, then the covariance matrix, rows distributed over threads.
 * Usage: pca [THREADS] [ROWS] [COLUMNS] */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int threads, rows, columns;
static int **matrix, *mean, **covariance;
static pthread_barrier_t barrier;

static void *work(void *given) {
    long me = (long)given;
    for (int r = (int)me; r < rows; r += threads) {
        int sum = 0;
        for (int c = 0; c < columns; c++) sum += matrix[r][c];
        mean[r] = sum / columns;
    }
    pthread_barrier_wait(&barrier);
    for (int i = (int)me; i < rows; i += threads)
        for (int j = i; j < rows; j++) {
            int sum = 0;
            for (int c = 0; c < columns; c++) sum += (matrix[i][c] - mean[i]) * (matrix[j][c] - mean[j]);
            covariance[i][j] = covariance[j][i] = sum / (columns - 1);
        }
    return NULL;
}

int main(int argc, char **argv) {
    threads = argc > 1 ? atoi(argv[1]) : 4;
    rows = argc > 2 ? atoi(argv[2]) : 8;
    columns = argc > 3 ? atoi(argv[3]) : 10;
    matrix = malloc(rows * sizeof *matrix);
    covariance = malloc(rows * sizeof *covariance);
    mean = calloc(rows, sizeof *mean);
    unsigned seed = 99;
    for (int r = 0; r < rows; r++) {
        matrix[r] = malloc(columns * sizeof **matrix);
        covariance[r] = calloc(rows, sizeof **covariance);
        for (int c = 0; c < columns; c++) {
            seed = seed * 1103515245u + 12345u;
            matrix[r][c] = (int)(seed >> 16) % 100;
        }
    }
    pthread_barrier_init(&barrier, NULL, threads);
    pthread_t *ids = malloc(threads * sizeof *ids);
    for (long t = 0; t < threads; t++) pthread_create(&ids[t], NULL, work, (void *)t);
    for (int t = 0; t < threads; t++) pthread_join(ids[t], NULL);
    long trace = 0, all = 0;
    for (int i = 0; i < rows; i++) {
        trace += covariance[i][i];
        for (int j = 0; j < rows; j++) all += covariance[i][j] * (i + 2 * j + 1);
    }
    printf("trace %ld checksum %ld\n", trace, all);
    return 0;
}
