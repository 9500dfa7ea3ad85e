/* Principal component analysis. Threads compute the means of the columns, then the covariance matrix, then the projections
 * of the rows; between these phases, main joins them. Main diagonalises the matrix with Jacobi rotations.
 *
 * Usage: pca generate FILE ROWS [COLUMNS [SEED]]
 *        pca THREADS FILE [COMPONENTS]
 *
 * The output has the means, the eigenvalues with the share of the variance that they explain, the components, and the
 * projections of the first rows. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

#define SWEEPS 50
#define SHOWN 4 /* projections in the output */

typedef struct {
    int64_t rows;
    int columns, components;
    const double *values;
    double *means;
    double *covariance;  /* columns x columns */
    double *vectors;     /* columns x columns; eigenvectors are columns */
    double *eigenvalues; /* in decreasing order */
    double *projections; /* rows x components */
} analysis;

typedef struct {
    analysis *all;
    int me, threads;
    double error; /* the sum of squares that the components do not explain */
} task;

static double value(const analysis *a, int64_t row, int column) { return a->values[row * a->columns + column]; }

static void *find_means(void *given) {
    task *t = given;
    analysis *a = t->all;
    for (int c = t->me; c < a->columns; c += t->threads) {
        double sum = 0;
        for (int64_t r = 0; r < a->rows; r++) sum += value(a, r, c);
        a->means[c] = sum / (double)a->rows;
    }
    return NULL;
}

/* Rows of the upper triangle. The first rows are longer, so they are dealt out to the threads one by one. */
static void *find_covariance(void *given) {
    task *t = given;
    analysis *a = t->all;
    for (int i = t->me; i < a->columns; i += t->threads)
        for (int j = i; j < a->columns; j++) {
            double sum = 0;
            for (int64_t r = 0; r < a->rows; r++) sum += (value(a, r, i) - a->means[i]) * (value(a, r, j) - a->means[j]);
            sum /= (double)(a->rows - 1);
            a->covariance[i * a->columns + j] = sum;
            a->covariance[j * a->columns + i] = sum;
        }
    return NULL;
}

static void *project_rows(void *given) {
    task *t = given;
    analysis *a = t->all;
    int n = a->columns;
    for (int64_t r = part_begin(a->rows, t->threads, t->me); r < part_begin(a->rows, t->threads, t->me + 1); r++) {
        double length = 0, explained = 0;
        for (int c = 0; c < n; c++) length += (value(a, r, c) - a->means[c]) * (value(a, r, c) - a->means[c]);
        for (int k = 0; k < a->components; k++) {
            double sum = 0;
            for (int c = 0; c < n; c++) sum += (value(a, r, c) - a->means[c]) * a->vectors[c * n + k];
            a->projections[r * a->components + k] = sum;
            explained += sum * sum;
        }
        t->error += length - explained;
    }
    return NULL;
}

/* The largest element off the diagonal. */
static double largest_off_diagonal(const double *m, int n) {
    double largest = 0;
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++)
            if (fabs(m[i * n + j]) > largest) largest = fabs(m[i * n + j]);
    return largest;
}

/* Rotates the plane of the axes p and q so that m[p][q] becomes 0. */
static void rotate(double *m, double *vectors, int n, int p, int q) {
    double theta = (m[q * n + q] - m[p * n + p]) / (2.0 * m[p * n + q]);
    double t = (theta < 0 ? -1.0 : 1.0) / (fabs(theta) + sqrt(theta * theta + 1.0));
    double c = 1.0 / sqrt(t * t + 1.0), s = t * c;
    for (int k = 0; k < n; k++) {
        double kp = m[k * n + p], kq = m[k * n + q];
        m[k * n + p] = c * kp - s * kq;
        m[k * n + q] = s * kp + c * kq;
    }
    for (int k = 0; k < n; k++) {
        double pk = m[p * n + k], qk = m[q * n + k];
        m[p * n + k] = c * pk - s * qk;
        m[q * n + k] = s * pk + c * qk;
    }
    for (int k = 0; k < n; k++) {
        double kp = vectors[k * n + p], kq = vectors[k * n + q];
        vectors[k * n + p] = c * kp - s * kq;
        vectors[k * n + q] = s * kp + c * kq;
    }
}

/* Jacobi's method: sweeps over all pairs of axes until the matrix is diagonal. Returns the number of sweeps. */
static int diagonalise(double *m, double *vectors, int n) {
    double scale = 0;
    for (int i = 0; i < n; i++) {
        scale += fabs(m[i * n + i]);
        for (int j = 0; j < n; j++) vectors[i * n + j] = i == j;
    }
    int sweeps = 0;
    while (sweeps < SWEEPS && largest_off_diagonal(m, n) > 1e-12 * scale) {
        for (int p = 0; p < n; p++)
            for (int q = p + 1; q < n; q++)
                if (fabs(m[p * n + q]) > 1e-15 * scale) rotate(m, vectors, n, p, q);
        sweeps++;
    }
    return sweeps;
}

static void swap_columns(double *m, int n, int a, int b) {
    for (int k = 0; k < n; k++) {
        double t = m[k * n + a];
        m[k * n + a] = m[k * n + b];
        m[k * n + b] = t;
    }
}

/* Sorts eigenvalues in decreasing order. The largest part of each vector becomes positive, so that its sign is fixed. */
static void order(analysis *a) {
    int n = a->columns;
    for (int i = 0; i < n; i++) a->eigenvalues[i] = a->covariance[i * n + i];
    for (int i = 0; i < n; i++) {
        int largest = i, main_part = 0;
        for (int j = i + 1; j < n; j++)
            if (a->eigenvalues[j] > a->eigenvalues[largest]) largest = j;
        double t = a->eigenvalues[i];
        a->eigenvalues[i] = a->eigenvalues[largest];
        a->eigenvalues[largest] = t;
        if (largest != i) swap_columns(a->vectors, n, i, largest);
        for (int k = 1; k < n; k++)
            if (fabs(a->vectors[k * n + i]) > fabs(a->vectors[main_part * n + i])) main_part = k;
        if (a->vectors[main_part * n + i] >= 0) continue;
        for (int k = 0; k < n; k++) a->vectors[k * n + i] = -a->vectors[k * n + i];
    }
}

static void append_row(text *out, const char *name, int number, const double *values, int count, int step) {
    char line[100];
    snprintf(line, sizeof line, "%s %d:", name, number);
    append(out, line);
    for (int i = 0; i < count; i++) {
        snprintf(line, sizeof line, " %.6f", values[i * step]);
        append(out, line);
    }
    append(out, "\n");
}

static void describe(const analysis *a, int sweeps, double error) {
    char line[200];
    text out = {NULL, 0, 0};
    double total = 0, explained = 0;
    for (int i = 0; i < a->columns; i++) total += a->eigenvalues[i];
    snprintf(line, sizeof line, "rows %ld columns %d sweeps %d variance %.6f\n", (long)a->rows, a->columns, sweeps, total);
    append(&out, line);
    append_row(&out, "means", a->columns, a->means, a->columns, 1);
    for (int k = 0; k < a->components; k++) {
        explained += a->eigenvalues[k];
        snprintf(line, sizeof line, "eigenvalue %d: %.6f, together %.4f of the variance\n", k, a->eigenvalues[k],
                 total > 0 ? explained / total : 1.0);
        append(&out, line);
        append_row(&out, "component", k, a->vectors + k, a->columns, a->columns);
    }
    for (int64_t r = 0; r < a->rows && r < SHOWN; r++)
        append_row(&out, "projection", (int)r, a->projections + r * a->components, a->components, 1);
    snprintf(line, sizeof line, "squared error %.6f\n", error);
    append(&out, line);
    print_text(&out);
}

/* Rows that depend on two hidden values, with noise. */
static void generate(int argc, char **argv) {
    if (argc < 4) fail("needs a file and a number of rows", "generate");
    int64_t rows = whole_number(argv[3], "ROWS", 2, 1 << 22);
    int64_t columns = argc > 4 ? whole_number(argv[4], "COLUMNS", 1, 1000) : 4;
    uint64_t state = argc > 5 ? (uint64_t)whole_number(argv[5], "SEED", 0, 1L << 40) : 1;
    double *weights = allocate((size_t)(2 * columns), sizeof *weights);
    for (int64_t i = 0; i < 2 * columns; i++) weights[i] = next_normal(&state);
    table data = {rows, columns, NULL};
    double *values = allocate((size_t)(rows * columns), sizeof *values);
    for (int64_t r = 0; r < rows; r++) {
        double first = 10.0 * next_normal(&state), second = 4.0 * next_normal(&state);
        for (int64_t c = 0; c < columns; c++)
            values[r * columns + c] =
                5.0 + first * weights[c] + second * weights[columns + c] + next_normal(&state);
    }
    data.values = values;
    write_table(argv[2], &data, sizeof *values);
    free(values);
    free(weights);
}

static task *make_tasks(analysis *all, int threads) {
    task *tasks = allocate_zeroed((size_t)threads, sizeof *tasks);
    for (int t = 0; t < threads; t++) {
        tasks[t].all = all;
        tasks[t].me = t;
        tasks[t].threads = threads;
    }
    return tasks;
}

int main(int argc, char **argv) {
    if (argc < 3) fail("usage: pca generate FILE ROWS [COLUMNS [SEED]] | THREADS FILE [COMPONENTS]", "pca");
    if (strcmp(argv[1], "generate") == 0) {
        generate(argc, argv);
        return 0;
    }
    int threads = (int)whole_number(argv[1], "THREADS", 1, 1000);
    table data = read_table(argv[2], sizeof(double));
    if (data.rows < 2 || data.columns > 1000) fail("has a wrong size", argv[2]);
    analysis a = {data.rows, (int)data.columns, 0, data.values, NULL, NULL, NULL, NULL, NULL};
    a.components = argc > 3 ? (int)whole_number(argv[3], "COMPONENTS", 1, a.columns) : (a.columns > 1 ? 2 : 1);
    size_t square = (size_t)a.columns * (size_t)a.columns;
    a.means = allocate((size_t)a.columns, sizeof(double));
    a.eigenvalues = allocate((size_t)a.columns, sizeof(double));
    a.covariance = allocate(square, sizeof(double));
    a.vectors = allocate(square, sizeof(double));
    a.projections = allocate((size_t)(a.rows * a.components), sizeof(double));
    task *tasks = make_tasks(&a, threads);
    in_parallel(threads, find_means, tasks, sizeof *tasks);
    in_parallel(threads, find_covariance, tasks, sizeof *tasks);
    int sweeps = diagonalise(a.covariance, a.vectors, a.columns);
    order(&a);
    in_parallel(threads, project_rows, tasks, sizeof *tasks);
    double error = 0;
    for (int t = 0; t < threads; t++) error += tasks[t].error;
    describe(&a, sweeps, error);
    free(tasks);
    free(a.projections);
    free(a.vectors);
    free(a.covariance);
    free(a.eigenvalues);
    free(a.means);
    free(data.values);
    return 0;
}
