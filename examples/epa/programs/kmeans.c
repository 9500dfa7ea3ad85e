/* k-means clustering (Lloyd). The first centres are chosen far from each other (k-means++ with a fixed seed). In each
 * round, new threads assign their share of the points to the nearest centre and add the points up; main joins them, adds
 * their sums, and moves the centres. A cluster that lost its last point gets the point that is farthest from its centre.
 * The program ends when no point changed its cluster, or after ROUNDS rounds.
 *
 * Usage: kmeans generate FILE POINTS [DIMENSIONS [GROUPS [SEED]]]
 *        kmeans THREADS FILE [CLUSTERS [ROUNDS]]
 *
 * The output has, by cluster, its size, its centre, its radius and its sum of squares; and the simplified silhouette, a
 * measure between -1 and 1 of how far the clusters are apart. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

#define SEED 17

typedef struct {
    int64_t n;
    int dimensions, clusters;
    const double *points;  /* n rows */
    double *centres;       /* a row for each cluster */
    int *cluster;          /* of each point; -1 at first */
    double *distance;      /* of each point to its centre, squared */
} clustering;

/* What one thread finds in one round. */
typedef struct {
    clustering *all;
    int64_t from, to;
    double *sums;      /* a row for each cluster */
    int64_t *sizes;    /* of each cluster */
    int64_t moved;
    double squares;    /* the sum of squared distances */
    double silhouette; /* the sum over the points */
} share;

static double squared_distance(const double *a, const double *b, int dimensions) {
    double sum = 0;
    for (int d = 0; d < dimensions; d++) {
        double difference = a[d] - b[d];
        sum += difference * difference;
    }
    return sum;
}

static const double *point(const clustering *all, int64_t i) { return all->points + i * all->dimensions; }

static double *centre(const clustering *all, int c) { return all->centres + (int64_t)c * all->dimensions; }

static int nearest(const clustering *all, int64_t i, double *least) {
    int best = 0;
    *least = squared_distance(point(all, i), centre(all, 0), all->dimensions);
    for (int c = 1; c < all->clusters; c++) {
        double d = squared_distance(point(all, i), centre(all, c), all->dimensions);
        if (d < *least) {
            *least = d;
            best = c;
        }
    }
    return best;
}

/* k-means++: each new centre is a point, chosen with a probability proportional to its squared distance. */
static void choose_centres(clustering *all) {
    uint64_t state = SEED;
    size_t row = (size_t)all->dimensions * sizeof(double);
    int64_t first = (int64_t)(next_random(&state) % (uint64_t)all->n);
    memcpy(centre(all, 0), point(all, first), row);
    for (int64_t i = 0; i < all->n; i++)
        all->distance[i] = squared_distance(point(all, i), centre(all, 0), all->dimensions);
    for (int c = 1; c < all->clusters; c++) {
        double total = 0;
        for (int64_t i = 0; i < all->n; i++) total += all->distance[i];
        double left = next_uniform(&state) * total;
        int64_t chosen = 0;
        for (; chosen < all->n - 1; chosen++) {
            left -= all->distance[chosen];
            if (left < 0) break;
        }
        memcpy(centre(all, c), point(all, chosen), row);
        for (int64_t i = 0; i < all->n; i++) {
            double d = squared_distance(point(all, i), centre(all, c), all->dimensions);
            if (d < all->distance[i]) all->distance[i] = d;
        }
    }
}

static void *assign(void *given) {
    share *s = given;
    clustering *all = s->all;
    for (int64_t i = s->from; i < s->to; i++) {
        double least;
        int best = nearest(all, i, &least);
        if (all->cluster[i] != best) {
            all->cluster[i] = best;
            s->moved++;
        }
        all->distance[i] = least;
        s->squares += least;
        s->sizes[best]++;
        double *sum = s->sums + (int64_t)best * all->dimensions;
        for (int d = 0; d < all->dimensions; d++) sum[d] += point(all, i)[d];
    }
    return NULL;
}

/* The silhouette of a point: how much nearer its own centre is than the next one. */
static void *compare_centres(void *given) {
    share *s = given;
    const clustering *all = s->all;
    for (int64_t i = s->from; i < s->to; i++) {
        double next = -1;
        for (int c = 0; c < all->clusters; c++) {
            if (c == all->cluster[i]) continue;
            double d = squared_distance(point(all, i), centre(all, c), all->dimensions);
            if (next < 0 || d < next) next = d;
        }
        double own = sqrt(all->distance[i]), other = sqrt(next < 0 ? 0 : next);
        double larger = own > other ? own : other;
        if (larger > 0) s->silhouette += (other - own) / larger;
    }
    return NULL;
}

static share *make_shares(clustering *all, int threads) {
    share *shares = allocate_zeroed((size_t)threads, sizeof *shares);
    for (int t = 0; t < threads; t++) {
        shares[t].all = all;
        shares[t].from = part_begin(all->n, threads, t);
        shares[t].to = part_begin(all->n, threads, t + 1);
        shares[t].sums = allocate((size_t)(all->clusters * all->dimensions), sizeof(double));
        shares[t].sizes = allocate((size_t)all->clusters, sizeof(int64_t));
    }
    return shares;
}

static void clear_share(share *s) {
    memset(s->sums, 0, (size_t)(s->all->clusters * s->all->dimensions) * sizeof(double));
    memset(s->sizes, 0, (size_t)s->all->clusters * sizeof(int64_t));
    s->moved = 0;
    s->squares = s->silhouette = 0;
}

static void free_shares(share *shares, int threads) {
    for (int t = 0; t < threads; t++) {
        free(shares[t].sums);
        free(shares[t].sizes);
    }
    free(shares);
}

/* Gives an empty cluster the point that is farthest from its centre, if that point is not alone. */
static void refill(clustering *all, int empty, int64_t *sizes) {
    int64_t farthest = -1;
    for (int64_t i = 0; i < all->n; i++)
        if (sizes[all->cluster[i]] > 1 && (farthest < 0 || all->distance[i] > all->distance[farthest])) farthest = i;
    if (farthest < 0) return;
    sizes[all->cluster[farthest]]--;
    sizes[empty] = 1;
    all->cluster[farthest] = empty;
    all->distance[farthest] = 0;
    memcpy(centre(all, empty), point(all, farthest), (size_t)all->dimensions * sizeof(double));
}

static void move_centres(clustering *all, const share *shares, int threads) {
    int64_t *sizes = allocate_zeroed((size_t)all->clusters, sizeof *sizes);
    for (int c = 0; c < all->clusters; c++) {
        for (int t = 0; t < threads; t++) sizes[c] += shares[t].sizes[c];
        if (sizes[c] == 0) continue;
        for (int d = 0; d < all->dimensions; d++) {
            double sum = 0;
            for (int t = 0; t < threads; t++) sum += shares[t].sums[(int64_t)c * all->dimensions + d];
            centre(all, c)[d] = sum / (double)sizes[c];
        }
    }
    for (int c = 0; c < all->clusters; c++)
        if (sizes[c] == 0) refill(all, c, sizes);
    free(sizes);
}

/* The rounds that were needed. */
static int cluster_points(clustering *all, int threads, int most, double *squares) {
    share *shares = make_shares(all, threads);
    int rounds = 0;
    int64_t moved = 1;
    while (moved && rounds < most) {
        moved = 0;
        *squares = 0;
        rounds++;
        for (int t = 0; t < threads; t++) clear_share(&shares[t]);
        in_parallel(threads, assign, shares, sizeof *shares);
        for (int t = 0; t < threads; t++) {
            moved += shares[t].moved;
            *squares += shares[t].squares;
        }
        if (moved) move_centres(all, shares, threads);
    }
    free_shares(shares, threads);
    return rounds;
}

static double silhouette(clustering *all, int threads) {
    share *shares = make_shares(all, threads);
    for (int t = 0; t < threads; t++) clear_share(&shares[t]);
    in_parallel(threads, compare_centres, shares, sizeof *shares);
    double sum = 0;
    for (int t = 0; t < threads; t++) sum += shares[t].silhouette;
    free_shares(shares, threads);
    return sum / (double)all->n;
}

static void describe(const clustering *all, int rounds, double squares, double apart) {
    char line[200];
    text out = {NULL, 0, 0};
    snprintf(line, sizeof line, "points %ld rounds %d sum of squares %.6f silhouette %.6f\n", (long)all->n, rounds,
             squares, apart);
    append(&out, line);
    for (int c = 0; c < all->clusters; c++) {
        int64_t size = 0;
        double sum = 0, radius = 0;
        for (int64_t i = 0; i < all->n; i++) {
            if (all->cluster[i] != c) continue;
            double d = squared_distance(point(all, i), centre(all, c), all->dimensions);
            size++;
            sum += d;
            if (d > radius) radius = d;
        }
        snprintf(line, sizeof line, "cluster %d: %ld points, radius %.6f, squares %.6f, centre", c, (long)size,
                 sqrt(radius), sum);
        append(&out, line);
        for (int d = 0; d < all->dimensions; d++) {
            snprintf(line, sizeof line, " %.6f", centre(all, c)[d]);
            append(&out, line);
        }
        append(&out, "\n");
    }
    append(&out, "clusters of the points:");
    for (int64_t i = 0; i < all->n; i++) {
        snprintf(line, sizeof line, " %d", all->cluster[i]);
        append(&out, line);
    }
    append(&out, "\n");
    print_text(&out);
}

/* Points around the centres of groups. */
static void generate(int argc, char **argv) {
    if (argc < 4) fail("needs a file and a number of points", "generate");
    int64_t n = whole_number(argv[3], "POINTS", 1, 1 << 24);
    int64_t dimensions = argc > 4 ? whole_number(argv[4], "DIMENSIONS", 1, 100) : 2;
    int64_t groups = argc > 5 ? whole_number(argv[5], "GROUPS", 1, 1000) : 3;
    uint64_t state = argc > 6 ? (uint64_t)whole_number(argv[6], "SEED", 0, 1L << 40) : 1;
    double *middles = allocate((size_t)(groups * dimensions), sizeof *middles);
    for (int64_t i = 0; i < groups * dimensions; i++) middles[i] = 100.0 * next_uniform(&state);
    table data = {n, dimensions, NULL};
    double *values = allocate((size_t)(n * dimensions), sizeof *values);
    for (int64_t i = 0; i < n; i++) {
        int64_t group = (int64_t)(next_random(&state) % (uint64_t)groups);
        for (int64_t d = 0; d < dimensions; d++)
            values[i * dimensions + d] = middles[group * dimensions + d] + 12.0 * next_normal(&state);
    }
    data.values = values;
    write_table(argv[2], &data, sizeof *values);
    free(values);
    free(middles);
}

int main(int argc, char **argv) {
    if (argc < 3) fail("usage: kmeans generate FILE POINTS [DIMENSIONS [GROUPS [SEED]]] | THREADS FILE [CLUSTERS [ROUNDS]]",
                       "kmeans");
    if (strcmp(argv[1], "generate") == 0) {
        generate(argc, argv);
        return 0;
    }
    int threads = (int)whole_number(argv[1], "THREADS", 1, 1000);
    table data = read_table(argv[2], sizeof(double));
    clustering all = {data.rows, (int)data.columns, 0, data.values, NULL, NULL, NULL};
    all.clusters = argc > 3 ? (int)whole_number(argv[3], "CLUSTERS", 1, 1000) : 3;
    int most = argc > 4 ? (int)whole_number(argv[4], "ROUNDS", 1, 1000) : 8;
    if (all.clusters > all.n) fail("there are fewer points than clusters", argv[2]);
    all.centres = allocate((size_t)(all.clusters * all.dimensions), sizeof *all.centres);
    all.cluster = allocate((size_t)all.n, sizeof *all.cluster);
    all.distance = allocate((size_t)all.n, sizeof *all.distance);
    for (int64_t i = 0; i < all.n; i++) all.cluster[i] = -1;
    choose_centres(&all);
    double squares = 0;
    int rounds = cluster_points(&all, threads, most, &squares);
    describe(&all, rounds, squares, silhouette(&all, threads));
    free(all.distance);
    free(all.cluster);
    free(all.centres);
    free(data.values);
    return 0;
}
