/* Parallel quicksort. A part of the array is split in three around a pivot: smaller, equal, larger. The smaller elements
 * are sorted by a new thread while the current thread sorts the larger ones. The number of threads is a budget that is
 * divided between both sides in proportion to their sizes, so the tree of threads depends on the input alone.
 *
 * Usage: quicksort generate FILE ELEMENTS [SEED [DISTINCT]]
 *        quicksort THREADS FILE [SORTED]
 *
 * The output has the extremes, the quartiles, the most frequent element and a checksum of the sorted array, and how much work
 * was needed. SORTED is a file that gets the sorted array. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

#define SMALL 12   /* parts up to this size are sorted by insertion */
#define MEDIUM 40  /* up to this size the pivot is a median of three elements, above it a median of three medians */
#define LEAST 8    /* a part below this size gets no thread */

typedef struct {
    long comparisons, moves, partitions, insertions;
    int threads, depth;
} work;

typedef struct {
    int32_t *values;
    int64_t low, high; /* the part is low <= i < high */
    int budget;        /* threads that may be created for this part */
    int depth;
    work done;
} task;

static void sort_part(task *t);

static void add_work(work *sum, const work *more) {
    sum->comparisons += more->comparisons;
    sum->moves += more->moves;
    sum->partitions += more->partitions;
    sum->insertions += more->insertions;
    sum->threads += more->threads;
    if (more->depth > sum->depth) sum->depth = more->depth;
}

static void *run(void *given) {
    sort_part(given);
    return NULL;
}

static void swap(int32_t *a, int32_t *b) {
    int32_t t = *a;
    *a = *b;
    *b = t;
}

static void insertion_sort(task *t) {
    int32_t *v = t->values;
    for (int64_t i = t->low + 1; i < t->high; i++) {
        int32_t value = v[i];
        int64_t j = i;
        while (j > t->low) {
            t->done.comparisons++;
            if (v[j - 1] <= value) break;
            v[j] = v[j - 1];
            t->done.moves++;
            j--;
        }
        v[j] = value;
    }
    t->done.insertions++;
}

static int32_t median(int32_t a, int32_t b, int32_t c) {
    if (a > b) swap(&a, &b);
    if (b > c) b = c;
    return a > b ? a : b;
}

static int32_t choose_pivot(task *t) {
    const int32_t *v = t->values + t->low;
    int64_t n = t->high - t->low;
    t->done.comparisons += 3;
    if (n <= MEDIUM) return median(v[0], v[n / 2], v[n - 1]);
    int64_t step = n / 8;
    int32_t low = median(v[0], v[step], v[2 * step]);
    int32_t middle = median(v[n / 2 - step], v[n / 2], v[n / 2 + step]);
    int32_t high = median(v[n - 1 - 2 * step], v[n - 1 - step], v[n - 1]);
    t->done.comparisons += 9;
    return median(low, middle, high);
}

/* Dutch national flag: after it, [low, *smaller) < pivot, [*smaller, *larger) = pivot, [*larger, high) > pivot. */
static void partition(task *t, int32_t pivot, int64_t *smaller, int64_t *larger) {
    int32_t *v = t->values;
    int64_t low = t->low, at = t->low, high = t->high;
    while (at < high) {
        t->done.comparisons++;
        if (v[at] < pivot) {
            if (low != at) {
                swap(&v[low], &v[at]);
                t->done.moves += 2;
            }
            low++;
            at++;
        } else if (v[at] > pivot) {
            high--;
            swap(&v[at], &v[high]);
            t->done.moves += 2;
        } else {
            at++;
        }
    }
    t->done.partitions++;
    *smaller = low;
    *larger = high;
}

static task part(const task *parent, int64_t low, int64_t high, int budget) {
    task t;
    memset(&t, 0, sizeof t);
    t.values = parent->values;
    t.low = low;
    t.high = high;
    t.budget = budget;
    t.depth = parent->depth + 1;
    return t;
}

static void sort_part(task *t) {
    int64_t n = t->high - t->low;
    t->done.depth = t->depth;
    if (n <= SMALL && (t->budget == 0 || n < LEAST)) {
        insertion_sort(t);
        return;
    }
    int64_t smaller, larger;
    partition(t, choose_pivot(t), &smaller, &larger);
    int64_t left = smaller - t->low, right = t->high - larger;
    if (t->budget == 0 || left == 0) {
        task first = part(t, t->low, smaller, 0), second = part(t, larger, t->high, t->budget);
        sort_part(&first);
        sort_part(&second);
        add_work(&t->done, &first.done);
        add_work(&t->done, &second.done);
        return;
    }
    /* One thread for the left part; the others are divided by size. */
    int rest = t->budget - 1;
    int for_left = (int)(rest * left / (left + right));
    task *first = allocate(1, sizeof *first);
    *first = part(t, t->low, smaller, for_left);
    task second = part(t, larger, t->high, rest - for_left);
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, first) != 0) fail("no thread can be created", "pthread_create");
    sort_part(&second);
    pthread_join(thread, NULL);
    first->done.threads++;
    add_work(&t->done, &first->done);
    add_work(&t->done, &second.done);
    free(first);
}

static void check_sorted(const int32_t *v, int64_t n) {
    for (int64_t i = 1; i < n; i++)
        if (v[i - 1] > v[i]) fail("the result is not sorted", "quicksort");
}

static void describe(const int32_t *v, int64_t n, const work *done) {
    char line[200];
    text out = {NULL, 0, 0};
    int64_t distinct = 1, most = 1, run_length = 1;
    int32_t mode = v[0];
    uint64_t checksum = (uint64_t)(uint32_t)v[0];
    for (int64_t i = 1; i < n; i++) {
        checksum = checksum * 31 + (uint64_t)(uint32_t)v[i];
        run_length = v[i] == v[i - 1] ? run_length + 1 : 1;
        distinct += run_length == 1;
        if (run_length > most) {
            most = run_length;
            mode = v[i];
        }
    }
    snprintf(line, sizeof line, "elements %ld distinct %ld\n", (long)n, (long)distinct);
    append(&out, line);
    snprintf(line, sizeof line, "minimum %d quartiles %d %d %d maximum %d\n", v[0], v[n / 4], v[n / 2], v[3 * n / 4],
             v[n - 1]);
    append(&out, line);
    snprintf(line, sizeof line, "mode %d, %ld times\n", mode, (long)most);
    append(&out, line);
    snprintf(line, sizeof line, "checksum %016lx\n", (unsigned long)checksum);
    append(&out, line);
    snprintf(line, sizeof line, "comparisons %ld moves %ld partitions %ld insertion sorts %ld\n", done->comparisons,
             done->moves, done->partitions, done->insertions);
    append(&out, line);
    snprintf(line, sizeof line, "threads %d depth %d\n", done->threads, done->depth);
    append(&out, line);
    print_text(&out);
}

static void generate(int argc, char **argv) {
    if (argc < 4) fail("needs a file and a number of elements", "generate");
    table data = {whole_number(argv[3], "ELEMENTS", 1, 1 << 26), 1, NULL};
    uint64_t state = argc > 4 ? (uint64_t)whole_number(argv[4], "SEED", 0, 1L << 40) : 1;
    uint64_t distinct = argc > 5 ? (uint64_t)whole_number(argv[5], "DISTINCT", 1, 1 << 30) : 1000;
    int32_t *values = allocate((size_t)data.rows, sizeof *values);
    for (int64_t i = 0; i < data.rows; i++) values[i] = (int32_t)(next_random(&state) % distinct) - (int32_t)distinct / 2;
    data.values = values;
    write_table(argv[2], &data, sizeof *values);
    free(values);
}

int main(int argc, char **argv) {
    if (argc < 3) fail("usage: quicksort generate FILE ELEMENTS [SEED [DISTINCT]] | THREADS FILE [SORTED]", "quicksort");
    if (strcmp(argv[1], "generate") == 0) {
        generate(argc, argv);
        return 0;
    }
    int threads = (int)whole_number(argv[1], "THREADS", 1, 1000);
    table data = read_table(argv[2], sizeof(int32_t));
    task whole;
    memset(&whole, 0, sizeof whole);
    whole.values = data.values;
    whole.high = data.rows * data.columns;
    whole.budget = threads > 1 ? threads : 0;
    sort_part(&whole);
    check_sorted(data.values, whole.high);
    describe(data.values, whole.high, &whole.done);
    if (argc > 3) write_table(argv[3], &data, sizeof(int32_t));
    free(data.values);
    return 0;
}
