/* What all programs of this folder share: errors, the command line, random numbers, data files, the output, and threads.
 *
 * Each program makes its own input (`PROGRAM generate FILE …`), reads it with fread, works with threads that only write
 * their own part, and writes its results with fwrite. With one thread, no thread is created. */
#ifndef SUPPORT_H
#define SUPPORT_H

#include <stddef.h>
#include <stdint.h>

/* Errors: one line on stderr, exit code 2. */
void fail(const char *what, const char *about);

/* The command line. */
long whole_number(const char *text, const char *what, long least, long most);

/* Memory; the program ends if there is none. */
void *allocate(size_t count, size_t size);
void *allocate_zeroed(size_t count, size_t size);

/* Random numbers that depend on the seed only (splitmix64). */
uint64_t next_random(uint64_t *state);
double next_uniform(uint64_t *state); /* 0 < x < 1 */
double next_normal(uint64_t *state);  /* mean 0, variance 1 */

/* A data file: a header, then rows of values of one width. */
typedef struct {
    int64_t rows, columns;
    void *values;
} table;

void write_table(const char *file, const table *data, size_t width);
table read_table(const char *file, size_t width);

/* The whole content of a file, in blocks. */
typedef struct {
    char *bytes;
    size_t length, capacity;
} text;

text read_text(const char *file);
void append(text *out, const char *line);
void print_text(text *out);

/* Threads. `tasks` are `threads` structs of a size; each thread gets one of them. */
void in_parallel(int threads, void *(*work)(void *), void *tasks, size_t size);
int64_t part_begin(int64_t count, int threads, int me);

#endif
