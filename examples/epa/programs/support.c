/* See support.h. */
#include "support.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 4096
#define MOST_VALUES (1L << 28)

static const char MAGIC[8] = "EPADATA";

typedef struct {
    char magic[8];
    int64_t rows, columns, width;
} header;

void fail(const char *what, const char *about) {
    fprintf(stderr, "error: %s: %s\n", about, what);
    exit(2);
}

long whole_number(const char *given, const char *what, long least, long most) {
    char *end = NULL;
    long value = strtol(given, &end, 10);
    if (end == given || *end != 0) fail("is not a whole number", what);
    if (value < least || value > most) fail("is out of range", what);
    return value;
}

void *allocate(size_t count, size_t size) {
    void *memory = malloc(count * size);
    if (memory == NULL && count > 0) fail("no memory is left", "malloc");
    return memory;
}

void *allocate_zeroed(size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (memory == NULL && count > 0) fail("no memory is left", "calloc");
    return memory;
}

uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

double next_uniform(uint64_t *state) { return ((double)(next_random(state) >> 11) + 0.5) / 9007199254740992.0; }

/* Box and Muller. The second value of the pair is not used, so that the state is the seed alone. */
double next_normal(uint64_t *state) {
    double radius = sqrt(-2.0 * log(next_uniform(state)));
    return radius * cos(6.283185307179586 * next_uniform(state));
}

void write_table(const char *file, const table *data, size_t width) {
    header head;
    memcpy(head.magic, MAGIC, sizeof head.magic);
    head.rows = data->rows;
    head.columns = data->columns;
    head.width = (int64_t)width;
    FILE *out = fopen(file, "wb");
    if (out == NULL) fail("cannot be written", file);
    size_t count = (size_t)(data->rows * data->columns);
    if (fwrite(&head, sizeof head, 1, out) != 1) fail("cannot be written", file);
    if (fwrite(data->values, width, count, out) != count) fail("cannot be written", file);
    if (fclose(out) != 0) fail("cannot be written", file);
}

table read_table(const char *file, size_t width) {
    header head;
    FILE *in = fopen(file, "rb");
    if (in == NULL) fail("cannot be read", file);
    if (fread(&head, sizeof head, 1, in) != 1) fail("is too short", file);
    if (memcmp(head.magic, MAGIC, sizeof head.magic) != 0) fail("is not a data file", file);
    if (head.width != (int64_t)width) fail("has values of another type", file);
    if (head.rows < 1 || head.columns < 1 || head.rows > MOST_VALUES / head.columns) fail("has a wrong size", file);
    table data = {head.rows, head.columns, allocate((size_t)(head.rows * head.columns), width)};
    size_t count = (size_t)(head.rows * head.columns);
    if (fread(data.values, width, count, in) != count) fail("is too short", file);
    fclose(in);
    return data;
}

/* Makes place for `more` bytes and a final 0. */
static void reserve(text *out, size_t more) {
    size_t needed = out->length + more + 1;
    if (needed <= out->capacity) return;
    size_t capacity = out->capacity ? out->capacity : 64;
    while (capacity < needed) capacity *= 2;
    char *bytes = allocate(capacity, 1);
    if (out->length) memcpy(bytes, out->bytes, out->length);
    free(out->bytes);
    out->bytes = bytes;
    out->capacity = capacity;
}

text read_text(const char *file) {
    text found = {NULL, 0, 0};
    FILE *in = fopen(file, "rb");
    if (in == NULL) fail("cannot be read", file);
    for (;;) {
        reserve(&found, BLOCK);
        size_t got = fread(found.bytes + found.length, 1, BLOCK, in);
        found.length += got;
        if (got < BLOCK) break;
    }
    fclose(in);
    found.bytes[found.length] = 0;
    return found;
}

void append(text *out, const char *line) {
    size_t length = strlen(line);
    reserve(out, length);
    memcpy(out->bytes + out->length, line, length);
    out->length += length;
}

void print_text(text *out) {
    if (fwrite(out->bytes, 1, out->length, stdout) != out->length) fail("cannot be written", "stdout");
    free(out->bytes);
    out->bytes = NULL;
    out->length = out->capacity = 0;
}

void in_parallel(int threads, void *(*work)(void *), void *tasks, size_t size) {
    if (threads <= 1) {
        work(tasks);
        return;
    }
    pthread_t *ids = allocate((size_t)threads, sizeof *ids);
    for (int t = 0; t < threads; t++)
        if (pthread_create(&ids[t], NULL, work, (char *)tasks + (size_t)t * size) != 0)
            fail("no thread can be created", "pthread_create");
    for (int t = 0; t < threads; t++) pthread_join(ids[t], NULL);
    free(ids);
}

int64_t part_begin(int64_t count, int threads, int me) { return count * me / threads; }
