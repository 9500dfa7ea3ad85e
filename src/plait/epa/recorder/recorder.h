/* Shared declarations of the recorder. docs/reference/epa.md describes the format of a trace.
 *
 * The file of a thread is mapped: a page with the state of the thread (this struct, which the reader uses), then two halves of
 * a window. Records go to one half. A full half is appended to the file, and the other half is next. When a record is
 * complete, one store moves `next`. So the file is consistent even after a crash. */
#ifndef EPA_RECORDER_H
#define EPA_RECORDER_H

#include <pthread.h>
#include <stdint.h>

#define HIDDEN __attribute__((visibility("hidden")))
#define RARE(x) __builtin_expect(!!(x), 0)

/* The size of the state of a thread, at the head of its file. It is part of the format, on machines with any page size. */
#define STATE_BYTES 4096u
#define HALF (64u << 10)
#define MAGIC 0x3441504545434152ull

/* Bits 30 and 29 of the first word of a record: the expected values that it omits (0: none), those of variables, and those
 * of repeated loads too. */
#define KNOWN (1u << 29)
#define EXPECTED (2u << 29)

/* Records that do not belong to a piece of the program have bit 31 of their first word set. */
#define HEAD(kind, detail, site) (0x80000000u | (uint32_t)(kind) << 25 | (uint32_t)(detail) << 20 | (uint32_t)(site))
enum kind { RANGE = 10, COPY = 11, SEQ = 13, SYNC = 32, ALLOC = 33, FREE = 34 };
enum op {
    START = 1, END, CREATE, CREATED, JOIN_BEGIN, JOIN, LOCK, UNLOCK, READ_LOCK, WRITE_LOCK, RW_UNLOCK,
    BARRIER_IN, BARRIER_OUT, WAIT, SIGNAL, ONCE, TRY_FAILED, BARRIER_INIT
};

typedef struct thread {
    /* The part that the reader uses. */
    uint64_t magic;
    char *next, *end;  /* the position of the next record, and the end of its half */
    uint64_t seen;     /* the last recorded sequence number */
    uint32_t done;     /* the number of completed events of the incomplete record at `next` */
    uint32_t site;     /* the site of the last call */
    char *halves;      /* the address of the two halves */
    uint64_t begin[2]; /* the position of each half in the stream of records */
    struct { uint64_t at, before, after; uint32_t site, struck; } fault;
    /* The part that the reader does not use. */
    uint64_t random, nth; /* nth: executions of the faulty site */
    uint32_t uid, parent, ordinal, children;
    int fd, here, skip;
    char path[512];
} thread;

extern __thread thread *epa_self __attribute__((tls_model("initial-exec"))) HIDDEN;
extern uint64_t epa_sequence HIDDEN;
extern uint32_t epa_fault_site HIDDEN; /* the site of a fault that changes a value */
extern uint32_t epa_watch HIDDEN;      /* whether calls are watched: for a fault, or to yield */

/* The arguments of a new thread. */
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
