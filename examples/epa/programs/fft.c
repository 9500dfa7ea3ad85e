/* Fast Fourier transform, radix 2 (Cooley and Tukey). The threads live for the whole run. They permute their share of the
 * signal by reversed bits, then do the stages; a barrier separates stages. The program transforms the signal, finds the
 * strongest frequencies, removes those above a limit, transforms back, and compares with the signal.
 *
 * Usage: fft generate FILE LENGTH [SEED]           (LENGTH is a power of two)
 *        fft THREADS FILE [LIMIT [PEAKS]]
 *
 * The output has the energy in both domains (Parseval), the PEAKS strongest frequencies, the error of the way back, and
 * the first values of the smoothed signal. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

#define PI 3.14159265358979323846
#define SHOWN 8

typedef struct {
    double re, im;
} complex_number;

typedef struct {
    int64_t n;
    int bits, threads;
    const double *signal;
    complex_number *roots;              /* exp(-2 pi i k / n) for k < n/2 */
    complex_number *spectrum, *back, *smooth;
    int64_t limit;                      /* the highest frequency that is kept */
    pthread_barrier_t barrier;
} transform;

typedef struct {
    transform *all;
    int me;
    double energy_in, energy_out, worst;
} task;

static void wait_for_all(transform *f) {
    if (f->threads > 1) pthread_barrier_wait(&f->barrier);
}

static int64_t reversed(int64_t i, int bits) {
    int64_t found = 0;
    for (int b = 0; b < bits; b++) {
        found = found << 1 | (i & 1);
        i >>= 1;
    }
    return found;
}

static complex_number times(complex_number a, complex_number b) {
    complex_number c = {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
    return c;
}

/* One butterfly: a, b become a + w b, a - w b. */
static void butterfly(complex_number *a, complex_number *b, complex_number w) {
    complex_number t = times(w, *b);
    b->re = a->re - t.re;
    b->im = a->im - t.im;
    a->re += t.re;
    a->im += t.im;
}

/* The stages. `data` is already permuted. In each stage, n/2 butterflies are divided among the threads. */
static void stages(task *t, complex_number *data, int inverse) {
    transform *f = t->all;
    int64_t from = part_begin(f->n / 2, f->threads, t->me), to = part_begin(f->n / 2, f->threads, t->me + 1);
    for (int64_t half = 1; half < f->n; half *= 2) {
        int64_t step = f->n / (2 * half);
        for (int64_t i = from; i < to; i++) {
            int64_t group = i / half, k = i % half;
            complex_number w = f->roots[k * step];
            if (inverse) w.im = -w.im;
            butterfly(&data[2 * half * group + k], &data[2 * half * group + k + half], w);
        }
        wait_for_all(f);
    }
}

static void permute(task *t, complex_number *to, const complex_number *from, int64_t keep) {
    transform *f = t->all;
    complex_number zero = {0, 0};
    int64_t last = part_begin(f->n, f->threads, t->me + 1);
    for (int64_t i = part_begin(f->n, f->threads, t->me); i < last; i++) {
        int64_t source = reversed(i, f->bits), frequency = source <= f->n / 2 ? source : f->n - source;
        to[i] = frequency <= keep ? from[source] : zero;
    }
}

static void *work(void *given) {
    task *t = given;
    transform *f = t->all;
    int64_t from = part_begin(f->n, f->threads, t->me), to = part_begin(f->n, f->threads, t->me + 1);
    for (int64_t i = from; i < to; i++) {
        f->spectrum[i].re = f->signal[reversed(i, f->bits)];
        f->spectrum[i].im = 0;
        t->energy_in += f->signal[i] * f->signal[i];
    }
    wait_for_all(f);
    stages(t, f->spectrum, 0);
    for (int64_t i = from; i < to; i++)
        t->energy_out += f->spectrum[i].re * f->spectrum[i].re + f->spectrum[i].im * f->spectrum[i].im;
    permute(t, f->back, f->spectrum, f->n);
    permute(t, f->smooth, f->spectrum, f->limit);
    wait_for_all(f);
    stages(t, f->back, 1);
    stages(t, f->smooth, 1);
    for (int64_t i = from; i < to; i++) {
        f->smooth[i].re /= (double)f->n;
        double error = fabs(f->back[i].re / (double)f->n - f->signal[i]);
        if (error > t->worst) t->worst = error;
    }
    return NULL;
}

/* The strongest frequency up to n/2 that is not marked; it is marked then. */
static int64_t next_peak(const transform *f, char *marked, double *power) {
    int64_t best = -1;
    for (int64_t i = 0; i <= f->n / 2; i++) {
        double p = f->spectrum[i].re * f->spectrum[i].re + f->spectrum[i].im * f->spectrum[i].im;
        if (marked[i] || (best >= 0 && p <= *power)) continue;
        best = i;
        *power = p;
    }
    if (best >= 0) marked[best] = 1;
    return best;
}

static void describe(const transform *f, const task *tasks, long peaks) {
    char line[200];
    text out = {NULL, 0, 0};
    double in = 0, spectrum = 0, worst = 0;
    for (int t = 0; t < f->threads; t++) {
        in += tasks[t].energy_in;
        spectrum += tasks[t].energy_out;
        if (tasks[t].worst > worst) worst = tasks[t].worst;
    }
    snprintf(line, sizeof line, "length %ld energy %.6f of the spectrum %.6f\n", (long)f->n, in, spectrum / (double)f->n);
    append(&out, line);
    char *marked = allocate_zeroed((size_t)(f->n / 2 + 1), 1);
    for (long i = 0; i < peaks && i <= f->n / 2; i++) {
        double power = 0;
        int64_t at = next_peak(f, marked, &power);
        snprintf(line, sizeof line, "frequency %ld: %.6f %.6f power %.6f\n", (long)at, f->spectrum[at].re,
                 f->spectrum[at].im, power);
        append(&out, line);
    }
    free(marked);
    snprintf(line, sizeof line, "way back: %s\n", worst < 1e-9 * (1 + sqrt(in)) ? "exact" : "wrong");
    append(&out, line);
    append(&out, "smoothed:");
    for (int64_t i = 0; i < SHOWN && i < f->n; i++) {
        snprintf(line, sizeof line, " %.6f", f->smooth[i].re);
        append(&out, line);
    }
    append(&out, "\n");
    print_text(&out);
}

/* Three sines and noise. */
static void generate(int argc, char **argv) {
    if (argc < 4) fail("needs a file and a length", "generate");
    int64_t n = whole_number(argv[3], "LENGTH", 2, 1 << 24);
    uint64_t state = argc > 4 ? (uint64_t)whole_number(argv[4], "SEED", 0, 1L << 40) : 1;
    double *values = allocate((size_t)n, sizeof *values);
    for (int64_t i = 0; i < n; i++) values[i] = 0.5 * next_normal(&state);
    for (int sine = 1; sine <= 3; sine++) {
        int64_t frequency = (int64_t)(next_random(&state) % (uint64_t)(n / 2));
        for (int64_t i = 0; i < n; i++)
            values[i] += 4.0 / sine * sin(2.0 * PI * (double)(frequency * i % n) / (double)n);
    }
    table data = {n, 1, values};
    write_table(argv[2], &data, sizeof *values);
    free(values);
}

int main(int argc, char **argv) {
    if (argc < 3) fail("usage: fft generate FILE LENGTH [SEED] | THREADS FILE [LIMIT [PEAKS]]", "fft");
    if (strcmp(argv[1], "generate") == 0) {
        generate(argc, argv);
        return 0;
    }
    transform f;
    memset(&f, 0, sizeof f);
    f.threads = (int)whole_number(argv[1], "THREADS", 1, 1000);
    table data = read_table(argv[2], sizeof(double));
    f.n = data.rows * data.columns;
    while (((int64_t)1 << f.bits) < f.n) f.bits++;
    if ((int64_t)1 << f.bits != f.n || f.n < 2) fail("the length is no power of two", argv[2]);
    f.limit = argc > 3 ? whole_number(argv[3], "LIMIT", 0, f.n / 2) : f.n / 8;
    f.signal = data.values;
    f.roots = allocate((size_t)(f.n / 2), sizeof *f.roots);
    f.spectrum = allocate((size_t)f.n, sizeof *f.spectrum);
    f.back = allocate((size_t)f.n, sizeof *f.back);
    f.smooth = allocate((size_t)f.n, sizeof *f.smooth);
    for (int64_t k = 0; k < f.n / 2; k++) {
        f.roots[k].re = cos(2.0 * PI * (double)k / (double)f.n);
        f.roots[k].im = -sin(2.0 * PI * (double)k / (double)f.n);
    }
    task *tasks = allocate_zeroed((size_t)f.threads, sizeof *tasks);
    for (int t = 0; t < f.threads; t++) {
        tasks[t].all = &f;
        tasks[t].me = t;
    }
    pthread_barrier_init(&f.barrier, NULL, (unsigned)f.threads);
    in_parallel(f.threads, work, tasks, sizeof *tasks);
    pthread_barrier_destroy(&f.barrier);
    describe(&f, tasks, argc > 4 ? whole_number(argv[4], "PEAKS", 0, 1000) : 3);
    free(tasks);
    free(f.smooth);
    free(f.back);
    free(f.spectrum);
    free(f.roots);
    free(data.values);
    return 0;
}
