/* Monte Carlo prices of a portfolio of swaptions, divided among threads. Each swaption has its own random numbers, with
 * its place in the portfolio as the seed, so a price does not depend on the thread that computes it.
 *
 * Usage: swaptions generate FILE SWAPTIONS [SEED]
 *        swaptions THREADS FILE [TRIALS [STEPS PER YEAR]]
 *
 * The output has, by swaption, its price with standard error, with and without the control variate, and the share of the
 * paths on which it is used; then the sum. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "swaptions.h"

typedef struct {
    const swaption *swaptions;
    estimate *estimates;
    int64_t from, to;
    long trials;
    int steps_per_year;
} task;

static void *work(void *given) {
    task *t = given;
    for (int64_t i = t->from; i < t->to; i++)
        t->estimates[i] = price_swaption(&t->swaptions[i], t->trials, t->steps_per_year, 1000u + (uint64_t)i);
    return NULL;
}

static int whole(double value) { return fabs(value - floor(value + 0.5)) < 1e-9; }

static swaption swaption_of(const double *row, int steps_per_year, const char *file) {
    swaption s = {row[0], row[1], row[2], row[3], row[4], row[5], row[6]};
    if (!(s.expiry > 0 && s.tenor > 0 && s.interval > 0 && s.volatility >= 0 && s.expiry + s.tenor < 60))
        fail("has a wrong swaption", file);
    if (!whole(s.expiry * steps_per_year) || !whole(s.interval * steps_per_year) || !whole(s.tenor / s.interval))
        fail("its times do not fit to the steps", file);
    return s;
}

static void describe(const swaption *swaptions, const estimate *estimates, int64_t n) {
    char line[240];
    text out = {NULL, 0, 0};
    double sum = 0, variance = 0;
    for (int64_t i = 0; i < n; i++) {
        const estimate *e = &estimates[i];
        snprintf(line, sizeof line, "swaption %ld: strike %.4f expiry %.2f tenor %.2f price %.8f error %.8f plain %.8f error %.8f\n",
                 (long)i, swaptions[i].strike, swaptions[i].expiry, swaptions[i].tenor, e->price, e->error, e->plain,
                 e->plain_error);
        append(&out, line);
        snprintf(line, sizeof line, "  bond %.8f coefficient %.4f used on %ld of %ld paths\n", e->forward_bond,
                 e->coefficient, e->exercised, e->trials);
        append(&out, line);
        sum += e->price;
        variance += e->error * e->error;
    }
    snprintf(line, sizeof line, "sum %.8f error %.8f\n", sum, sqrt(variance));
    append(&out, line);
    print_text(&out);
}

static void generate(int argc, char **argv) {
    if (argc < 4) fail("needs a file and a number of swaptions", "generate");
    int64_t n = whole_number(argv[3], "SWAPTIONS", 1, 1 << 20);
    uint64_t state = argc > 4 ? (uint64_t)whole_number(argv[4], "SEED", 0, 1L << 40) : 1;
    double *values = allocate((size_t)(n * COLUMNS), sizeof *values);
    for (int64_t i = 0; i < n; i++) {
        double *row = values + i * COLUMNS;
        row[0] = 0.03 + 0.04 * next_uniform(&state);
        row[1] = 1.0 + (double)(next_random(&state) % 2);
        row[2] = 2.0 + (double)(next_random(&state) % 2);
        row[3] = next_random(&state) & 1 ? 0.5 : 1.0;
        row[4] = 0.04 + 0.02 * next_uniform(&state);
        row[5] = 0.002 * next_uniform(&state);
        row[6] = 0.005 + 0.01 * next_uniform(&state);
    }
    table data = {n, COLUMNS, values};
    write_table(argv[2], &data, sizeof *values);
    free(values);
}

int main(int argc, char **argv) {
    if (argc < 3) fail("usage: swaptions generate FILE SWAPTIONS [SEED] | THREADS FILE [TRIALS [STEPS PER YEAR]]", "swaptions");
    if (strcmp(argv[1], "generate") == 0) {
        generate(argc, argv);
        return 0;
    }
    int threads = (int)whole_number(argv[1], "THREADS", 1, 1000);
    table data = read_table(argv[2], sizeof(double));
    if (data.columns != COLUMNS) fail("is not a portfolio of swaptions", argv[2]);
    long trials = argc > 3 ? whole_number(argv[3], "TRIALS", 1, 1L << 30) : 16;
    int steps = argc > 4 ? (int)whole_number(argv[4], "STEPS PER YEAR", 1, 365) : 2;
    int64_t n = data.rows;
    swaption *swaptions = allocate((size_t)n, sizeof *swaptions);
    estimate *estimates = allocate_zeroed((size_t)n, sizeof *estimates);
    for (int64_t i = 0; i < n; i++)
        swaptions[i] = swaption_of((const double *)data.values + i * COLUMNS, steps, argv[2]);
    free(data.values);
    task *tasks = allocate_zeroed((size_t)threads, sizeof *tasks);
    for (int t = 0; t < threads; t++) {
        tasks[t].swaptions = swaptions;
        tasks[t].estimates = estimates;
        tasks[t].from = part_begin(n, threads, t);
        tasks[t].to = part_begin(n, threads, t + 1);
        tasks[t].trials = trials;
        tasks[t].steps_per_year = steps;
    }
    in_parallel(threads, work, tasks, sizeof *tasks);
    describe(swaptions, estimates, n);
    free(tasks);
    free(estimates);
    free(swaptions);
    return 0;
}
