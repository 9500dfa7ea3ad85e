/* Shared declarations of the recorder. docs/reference/epa.md describes the format of a trace.
 *
 * The file of a thread is mapped: a page with the state of the thread (this struct, which the reader uses), then two halves of
 * a window. Records go to one half. A full half is appended to the file, and the other half is next. When a record is
 * complete, one store moves `next`. So the file is consistent even after a crash. */
#ifndef EPA_RECORDER_H
#define EPA_RECORDER_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

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

/* What a fault changes: one value or a call, all values from this one on (bits that are 1, or 0), or what a store writes. */
enum strike { SINGLE = 1, ONES = 2, ZEROS = 3, STORED = 4 };

/* Records that do not belong to a piece of the program have bit 31 of their first word set. */
#define HEAD(kind, detail, site) (0x80000000u | (uint32_t)(kind) << 25 | (uint32_t)(detail) << 20 | (uint32_t)(site))
enum kind { RANGE = 10, COPY = 11, SEQ = 13, SYNC = 32, ALLOC = 33, FREE = 34 };
enum op {
    START = 1, END, CREATE, CREATED, JOIN_BEGIN, JOIN, LOCK, UNLOCK, READ_LOCK, WRITE_LOCK, RW_UNLOCK,
    BARRIER_IN, BARRIER_OUT, WAIT, SIGNAL, ONCE, TRY_FAILED, BARRIER_INIT, FILE_READ, FILE_WRITE, ORDERED_IN, ORDERED_OUT
};

/* An operation of the golden run that a thread of a replayed run waits for (replay.c). */
struct turn { uint64_t number; uint32_t op, site; uint64_t extra; };

typedef struct thread {
    /* The part that the reader uses. */
    uint64_t magic;
    char *next, *end;  /* the position of the next record, and the end of its half */
    uint64_t seen;     /* the last recorded sequence number */
    uint32_t done;     /* the number of completed events of the incomplete record at `next` */
    uint32_t site;     /* the site of the last call */
    char *halves;      /* the address of the two halves */
    uint64_t begin[2]; /* the position of each half in the stream of records */
    struct { uint64_t at, before, after; uint32_t site, struck; uint64_t bits; } fault;
    /* The part that the reader does not use. */
    uint64_t random, nth, stale; /* executions of the faulty site, and the value of the last one */
    uint32_t uid, parent, ordinal, children;
    int fd, here, skip;
    char path[512];
    /* Replay: the rest of the turns and results of the golden run. */
    const struct turn *turns;
    const char *results;
    uint64_t turns_left, results_left, ordered_object;
    uint32_t lane, ordered; /* in an ordered operation: 1 with the lock, 2 in a turn */
    uint32_t kept_bytes;    /* results of chance that are not in the file yet */
    char kept[2048];
} thread;
_Static_assert(sizeof(thread) <= STATE_BYTES, "the state of a thread must fit in its page");

extern __thread thread *epa_self __attribute__((tls_model("initial-exec"))) HIDDEN;
extern uint64_t epa_sequence HIDDEN;
extern uint32_t epa_fault_site HIDDEN; /* the site of a fault that changes a value */
extern uint32_t epa_watch HIDDEN;      /* whether calls are watched: for a fault, or to yield */

/* The arguments of a new thread. */
struct start { void *(*function)(void *); void *argument; uint32_t uid, parent, ordinal; char path[512]; };

extern int epa_folder HIDDEN; /* the folder of the trace; -1: the run is not recorded */

/* Open a file without an entry in the list of files. */
static inline int epa_openat(int at, const char *path, int flags, int mode) {
    return (int)syscall(SYS_openat, at, path, flags, mode);
}

HIDDEN void epa_append(const char *name, const char *entry, size_t length);
HIDDEN int epa_recording(void);
HIDDEN void epa_begin(const struct start *start);
HIDDEN int epa_child(struct start *start);
HIDDEN void epa_numbered(unsigned kind, unsigned detail, uint64_t a, uint64_t b);
HIDDEN void epa_maybe_yield(void);
HIDDEN int epa_times(void);
HIDDEN thread *epa_pause(void);
HIDDEN void epa_resume(thread *t);
HIDDEN uint64_t epa_make_room(uint32_t size);
HIDDEN uint64_t epa_inject(uint32_t site, uint64_t record, uint64_t value);
HIDDEN uint64_t epa_inject_store(uint32_t site, uint64_t record, uint64_t address, uint32_t size, uint64_t value);
HIDDEN void epa_called(uint32_t site, uint64_t record);

HIDDEN int epa_replay_from(const char *path);
HIDDEN void epa_replay_thread(thread *t);
HIDDEN void epa_replay_ended(thread *t);
HIDDEN void epa_replay_ends(const char *why);
HIDDEN int epa_replays(void);
HIDDEN int epa_was_replayed(void);
HIDDEN const struct turn *epa_take_turn(unsigned op, unsigned other);
HIDDEN void epa_pass_turn(void);
HIDDEN void epa_leave_ordered(thread *t);
HIDDEN void epa_flush_results(thread *t);
HIDDEN uint64_t epa_chance_result(uint32_t site, uint64_t value);
HIDDEN void epa_range(uint32_t site, uint32_t access, uint64_t address, uint64_t length);
HIDDEN void epa_stream(uint32_t site, uint64_t stream);
HIDDEN void epa_lock(uint32_t *lock);
HIDDEN void epa_unlock(uint32_t *lock);

#endif
