/* Counts the words of a text, ignoring case. The text is cut at spaces into one piece per thread. Each thread counts
 * the words of its piece in a hash table of its own; main merges the tables and sorts the words by count, then by name.
 *
 * Usage: wordcount generate FILE WORDS [SEED [VOCABULARY]]
 *        wordcount THREADS FILE [TOP]
 *
 * The output has the number of words and of different words, the TOP most frequent ones with their counts and first
 * positions, and how often words of each length occur. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

#define FIRST_SLOTS 16 /* a power of two */
#define LONGEST 24     /* longer words are cut */

typedef struct {
    char name[LONGEST + 1];
    uint32_t hash;
    int length;
    int64_t count, first; /* the position of its first letter */
} word;

/* A hash table with open addressing. A slot with the count 0 is empty. */
typedef struct {
    word *slots;
    size_t size, used;
} counts;

typedef struct {
    const char *bytes;
    int64_t from, to;
    counts found;
    int64_t words, letters, lines;
} piece;

static void open_counts(counts *c, size_t size) {
    c->slots = allocate_zeroed(size, sizeof *c->slots);
    c->size = size;
    c->used = 0;
}

/* FNV-1a */
static uint32_t hash_of(const char *name, int length) {
    uint32_t hash = 2166136261u;
    for (int i = 0; i < length; i++) hash = (hash ^ (unsigned char)name[i]) * 16777619u;
    return hash;
}

static word *slot_of(counts *c, const char *name, int length, uint32_t hash) {
    size_t at = hash & (c->size - 1);
    for (;;) {
        word *w = &c->slots[at];
        if (w->count == 0) return w;
        if (w->hash == hash && w->length == length && memcmp(w->name, name, (size_t)length) == 0) return w;
        at = (at + 1) & (c->size - 1);
    }
}

static void grow(counts *c) {
    counts larger;
    open_counts(&larger, 2 * c->size);
    for (size_t i = 0; i < c->size; i++) {
        word *w = &c->slots[i];
        if (w->count == 0) continue;
        *slot_of(&larger, w->name, w->length, w->hash) = *w;
        larger.used++;
    }
    free(c->slots);
    *c = larger;
}

static void count_word(counts *c, const char *name, int length, int64_t times, int64_t first) {
    uint32_t hash = hash_of(name, length);
    word *w = slot_of(c, name, length, hash);
    if (w->count == 0) {
        if (4 * (c->used + 1) > 3 * c->size) {
            grow(c);
            w = slot_of(c, name, length, hash);
        }
        memcpy(w->name, name, (size_t)length);
        w->name[length] = 0;
        w->hash = hash;
        w->length = length;
        w->first = first;
        c->used++;
    }
    w->count += times;
    if (first < w->first) w->first = first;
}

static int letter(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A' + 'a';
    return (c >= 'a' && c <= 'z') || c == '\'' ? c : 0;
}

static void *count_piece(void *given) {
    piece *p = given;
    char name[LONGEST];
    int length = 0;
    int64_t first = p->from;
    open_counts(&p->found, FIRST_SLOTS);
    for (int64_t at = p->from; at <= p->to; at++) {
        char c = at < p->to ? p->bytes[at] : ' ';
        int l = letter(c);
        if (l) {
            if (length == 0) first = at;
            if (length < LONGEST) name[length++] = (char)l;
            p->letters++;
            continue;
        }
        p->lines += c == '\n';
        if (length) {
            count_word(&p->found, name, length, 1, first);
            p->words++;
            length = 0;
        }
    }
    return NULL;
}

/* The first position from `at` on where a piece may begin: after no letter. */
static int64_t boundary(const text *t, int64_t at) {
    while (at > 0 && at < (int64_t)t->length && letter(t->bytes[at]) && letter(t->bytes[at - 1])) at++;
    return at;
}

static int before(const word *a, const word *b) {
    if (a->count != b->count) return a->count > b->count;
    return strcmp(a->name, b->name) < 0;
}

/* Merge sort of pointers to words. */
static void sort_words(word **words, word **spare, size_t n) {
    if (n < 2) return;
    size_t half = n / 2, i = 0, j = half, k = 0;
    sort_words(words, spare, half);
    sort_words(words + half, spare, n - half);
    while (i < half && j < n) spare[k++] = before(words[j], words[i]) ? words[j++] : words[i++];
    while (i < half) spare[k++] = words[i++];
    while (j < n) spare[k++] = words[j++];
    for (k = 0; k < n; k++) words[k] = spare[k];
}

static word **sorted_words(counts *all) {
    word **words = allocate(all->used + 1, sizeof *words), **spare = allocate(all->used + 1, sizeof *spare);
    size_t n = 0;
    for (size_t i = 0; i < all->size; i++)
        if (all->slots[i].count) words[n++] = &all->slots[i];
    sort_words(words, spare, n);
    free(spare);
    return words;
}

static void describe(const piece *sum, counts *all, long top) {
    char line[200];
    text out = {NULL, 0, 0};
    snprintf(line, sizeof line, "words %ld different %ld letters %ld lines %ld\n", (long)sum->words, (long)all->used,
             (long)sum->letters, (long)sum->lines);
    append(&out, line);
    word **words = sorted_words(all);
    for (long i = 0; i < top && i < (long)all->used; i++) {
        snprintf(line, sizeof line, "%ld %s (first at %ld)\n", (long)words[i]->count, words[i]->name,
                 (long)words[i]->first);
        append(&out, line);
    }
    int64_t lengths[LONGEST + 1] = {0};
    for (size_t i = 0; i < all->used; i++) lengths[words[i]->length] += words[i]->count;
    for (int l = 1; l <= LONGEST; l++) {
        if (lengths[l] == 0) continue;
        snprintf(line, sizeof line, "length %d: %ld\n", l, (long)lengths[l]);
        append(&out, line);
    }
    print_text(&out);
    free(words);
}

static void count_text(int threads, const text *t, long top) {
    piece *pieces = allocate_zeroed((size_t)threads, sizeof *pieces), sum;
    counts all;
    for (int i = 0; i < threads; i++) {
        pieces[i].bytes = t->bytes;
        pieces[i].from = boundary(t, part_begin((int64_t)t->length, threads, i));
        pieces[i].to = boundary(t, part_begin((int64_t)t->length, threads, i + 1));
    }
    in_parallel(threads, count_piece, pieces, sizeof *pieces);
    memset(&sum, 0, sizeof sum);
    open_counts(&all, FIRST_SLOTS);
    for (int i = 0; i < threads; i++) {
        const counts *c = &pieces[i].found;
        for (size_t s = 0; s < c->size; s++)
            if (c->slots[s].count)
                count_word(&all, c->slots[s].name, c->slots[s].length, c->slots[s].count, c->slots[s].first);
        sum.words += pieces[i].words;
        sum.letters += pieces[i].letters;
        sum.lines += pieces[i].lines;
        free(c->slots);
    }
    describe(&sum, &all, top);
    free(all.slots);
    free(pieces);
}

/* Words of syllables; the word with the number n occurs about n times less often than the first one (Zipf). */
static void generate(int argc, char **argv) {
    static const char *syllables[] = {"ka", "to", "mi", "ren", "sul", "o", "vi", "tra", "ne", "pol", "da", "ish"};
    if (argc < 4) fail("needs a file and a number of words", "generate");
    long n = whole_number(argv[3], "WORDS", 1, 1L << 24);
    uint64_t state = argc > 4 ? (uint64_t)whole_number(argv[4], "SEED", 0, 1L << 40) : 1;
    long vocabulary = argc > 5 ? whole_number(argv[5], "VOCABULARY", 1, 1L << 20) : 60;
    text out = {NULL, 0, 0};
    for (long i = 0; i < n; i++) {
        double u = next_uniform(&state);
        long rank = 0;
        for (double power = 1.0; power < (double)vocabulary && u < 0.8; power *= 2) {
            rank = 2 * rank + 1 + (long)(next_random(&state) & 1);
            u = next_uniform(&state);
        }
        uint64_t name = 977 * (uint64_t)(rank % vocabulary) + 5;
        int capital = next_uniform(&state) < 0.1;
        for (int s = 0; s == 0 || name; s++, name /= 12) {
            char syllable[8];
            strcpy(syllable, syllables[name % 12]);
            if (s == 0 && capital) syllable[0] = (char)(syllable[0] - 'a' + 'A');
            append(&out, syllable);
        }
        append(&out, i % 11 == 10 ? ".\n" : i % 5 == 4 ? ", " : " ");
    }
    FILE *file = fopen(argv[2], "wb");
    if (file == NULL || fwrite(out.bytes, 1, out.length, file) != out.length) fail("cannot be written", argv[2]);
    fclose(file);
    free(out.bytes);
}

int main(int argc, char **argv) {
    if (argc < 3) fail("usage: wordcount generate FILE WORDS [SEED [VOCABULARY]] | THREADS FILE [TOP]", "wordcount");
    if (strcmp(argv[1], "generate") == 0) {
        generate(argc, argv);
        return 0;
    }
    int threads = (int)whole_number(argv[1], "THREADS", 1, 1000);
    text t = read_text(argv[2]);
    count_text(threads, &t, argc > 3 ? whole_number(argv[3], "TOP", 0, 1L << 20) : 10);
    free(t.bytes);
    return 0;
}
