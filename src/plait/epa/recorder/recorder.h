/* What the parts of the recorder share. docs/guides/epa.md has the format of a trace.
 *
 * A thread's file is mapped: a page with the thread's own state (this struct, which the reader looks at), then two halves
 * of a window. Records go to one half. When it is full it is appended to the file, and the other half is next. `next` moves
 * when a record is whole, and with one store: whatever kills the program, the file says what was recorded. */
#ifndef EPA_RECORDER_H
#define EPA_RECORDER_H

#include <pthread.h>
#include <stdint.h>

#define HIDDEN __attribute__((visibility("hidden")))
#define RARE(x) __builtin_expect(!!(x), 0)

/* The state of a thread at the head of its file: part of the format, whatever the page size of the machine. */
#define HEAD 4096u
#define HALF (64u << 10)
#define MAGIC 0x3441504545434152ull

/* How much of a piece a record has, in bits 30 and 29 of its first word (0: all of it): nothing of variables, which hold
 * what the reader expects; and nothing of what is loaded again. */
#define KNOWN (1u << 29)
#define EXPECTED (2u << 29)

/* Records that are not of a piece of the program have bit 31 of their first word set. */
#define HEAD(kind, detail, site) (0x80000000u | (uint32_t)(kind) << 25 | (uint32_t)(detail) << 20 | (uint32_t)(site))
enum kind { RANGE = 10, COPY = 11, SEQ = 13, SYNC = 32, ALLOC = 33, FREE = 34 };
enum op {
    START = 1, END, CREATE, CREATED, JOIN_BEGIN, JOIN, LOCK, UNLOCK, READ_LOCK, WRITE_LOCK, RW_UNLOCK,
    BARRIER_IN, BARRIER_OUT, WAIT, SIGNAL, ONCE, TRY_FAILED, BARRIER_INIT
};

typedef struct thread {
    /* What the reader looks at. */
    uint64_t magic;
    char *next, *end;  /* where the next record goes, and the end of its half */
    uint64_t seen;     /* the last sequence number that was noted */
    uint32_t done;     /* how many events of the record at `next`, which is not whole, have happened */
    uint32_t site;     /* of the last call */
    char *halves;      /* where the two are in memory */
    uint64_t begin[2]; /* where in the stream of records each half begins */
    struct { uint64_t at, before, after; uint32_t site, struck; } fault;
    /* What it does not. */
    uint64_t random, nth; /* nth: executions of the faulty site */
    uint32_t uid, parent, ordinal, children;
    int fd, here, skip;
    char path[512];
} thread;

extern __thread thread *epa_self __attribute__((tls_model("initial-exec"))) HIDDEN;
extern uint64_t epa_sequence HIDDEN;
extern uint32_t epa_fault_site HIDDEN; /* where a value changes */
extern uint32_t epa_watch HIDDEN;      /* whether calls are of interest: for a fault, or to yield */

/* What a new thread must know. */
struct start { void *(*function)(void *); void *argument; uint32_t uid, parent, ordinal; char path[512]; };

HIDDEN int epa_recording(void);
HIDDEN void epa_begin(const struct start *start);
HIDDEN int epa_child(struct start *start);
HIDDEN void epa_numbered(unsigned kind, unsigned detail, uint64_t a, uint64_t b);
HIDDEN void epa_maybe_yield(void);
HIDDEN thread *epa_pause(void);
HIDDEN void epa_resume(thread *t);
HIDDEN uint64_t epa_make_room(uint32_t size);
HIDDEN uint64_t epa_inject(uint32_t site, uint64_t record, uint64_t value);
HIDDEN void epa_called(uint32_t site, uint64_t record);

#endif
