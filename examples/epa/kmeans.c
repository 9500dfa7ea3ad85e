/* k-means clustering. In each round, threads assign their share of the points to the nearest centre, then main joins them and
 * moves the centres. Usage: kmeans [THREADS] [POINTS] */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define CLUSTERS 3
#define DIMENSIONS 2

typedef struct {
    int from, to;
    int moved;
} share;

static int n;
static int *points, *nearest;
static int centres[CLUSTERS][DIMENSIONS];

static int distance(const int *a, const int *b) {
    int sum = 0;
    for (int i = 0; i < DIMENSIONS; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

static void *assign(void *given) {
    share *s = given;
    for (int i = s->from; i < s->to; i++) {
        int best = 0, least = distance(&points[i * DIMENSIONS], centres[0]);
        for (int c = 1; c < CLUSTERS; c++) {
            int d = distance(&points[i * DIMENSIONS], centres[c]);
            if (d < least) {
                least = d;
                best = c;
            }
        }
        if (nearest[i] != best) {
            nearest[i] = best;
            s->moved++;
        }
    }
    return NULL;
}

static void move_centres(void) {
    for (int c = 0; c < CLUSTERS; c++) {
        int sum[DIMENSIONS] = {0}, count = 0;
        for (int i = 0; i < n; i++) {
            if (nearest[i] != c) continue;
            count++;
            for (int d = 0; d < DIMENSIONS; d++) sum[d] += points[i * DIMENSIONS + d];
        }
        for (int d = 0; d < DIMENSIONS && count; d++) centres[c][d] = sum[d] / count;
    }
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 4;
    n = argc > 2 ? atoi(argv[2]) : 60;
    points = malloc(n * DIMENSIONS * sizeof *points);
    nearest = malloc(n * sizeof *nearest);
    unsigned seed = 7;
    for (int i = 0; i < n * DIMENSIONS; i++) {
        seed = seed * 1664525u + 1013904223u;
        points[i] = (int)(seed >> 20) % 1000;
    }
    for (int i = 0; i < n; i++) nearest[i] = -1;
    for (int c = 0; c < CLUSTERS; c++)
        for (int d = 0; d < DIMENSIONS; d++) centres[c][d] = points[c * DIMENSIONS + d];
    pthread_t *ids = malloc(threads * sizeof *ids);
    share *shares = malloc(threads * sizeof *shares);
    int rounds = 0, moved = 1;
    while (moved && rounds < 8) {
        moved = 0;
        rounds++;
        for (int t = 0; t < threads; t++) {
            shares[t].from = n * t / threads;
            shares[t].to = n * (t + 1) / threads;
            shares[t].moved = 0;
            pthread_create(&ids[t], NULL, assign, &shares[t]);
        }
        for (int t = 0; t < threads; t++) {
            pthread_join(ids[t], NULL);
            moved += shares[t].moved;
        }
        move_centres();
    }
    printf("rounds %d\n", rounds);
    for (int c = 0; c < CLUSTERS; c++) printf("centre %d: %d %d\n", c, centres[c][0], centres[c][1]);
    free(shares);
    free(ids);
    free(nearest);
    free(points);
    return 0;
}
