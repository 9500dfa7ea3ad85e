/* Replay: a run takes the order and the results of chance from a golden run. It belongs to recorder.c.
 *
 * EPA_REPLAY is a file that `src/plait/epa/replay.py` wrote from the trace of the golden run. It has the order in which the
 * threads acquired and released locks and performed ordered operations (atomic accesses, operations on files): each of
 * these is a turn. Per thread, it has the results of calls that the input does not determine.
 *
 * A thread that comes to such an operation waits for its turn. At its turn the operation cannot block: if a lock is not
 * free then, the run is no longer the golden run. So a turn always ends. Replay ends for the whole run when a thread does
 * something else than in the golden run, or when a turn is not taken in time. Then all threads run freely. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "recorder.h"

#define ORDER_MAGIC 0x5245504c41593031ull
#define SPINS 100
#define NAP_NS 20000000l

/* The head of the file. Positions are in bytes from its start. */
struct order { uint64_t magic, stall, turns, owners, threads, lanes; };
struct lane { uint64_t name, turns, count, results, length; };

static const char *whole;          /* the mapped file; NULL: this run is not replayed */
static const struct order *order;
static const uint32_t *owners;     /* the thread of each turn */
static uint32_t *asleep;           /* per thread: it waits for a wake-up */
static uint32_t replaying;
static uint64_t turn;

static const struct lane *lane_of(uint64_t number) { return (const struct lane *)(whole + order->lanes) + number; }

static void futex_wake(uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0); }

static uint64_t now(void) {
    struct timespec time;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000u + (uint64_t)time.tv_nsec / 1000000u;
}

/* Map the file of the golden run. 0: it cannot be used. */
int epa_replay_from(const char *path) {
    struct stat status;
    int fd = epa_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) return 0;
    void *at = MAP_FAILED, *words = MAP_FAILED;
    if (fstat(fd, &status) == 0 && (size_t)status.st_size >= sizeof *order)
        at = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (at == MAP_FAILED) return 0;
    whole = at;
    order = at;
    if (order->magic != ORDER_MAGIC) return 0;
    words = mmap(NULL, 4 * (order->threads + 1), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (words == MAP_FAILED) return 0;
    asleep = words;
    owners = (const uint32_t *)(whole + order->owners);
    replaying = 1;
    return 1;
}

/* Find what a new thread did in the golden run. */
void epa_replay_thread(thread *t) {
    t->turns = NULL;
    t->turns_left = t->results_left = 0;
    if (!__atomic_load_n(&replaying, __ATOMIC_ACQUIRE)) return;
    for (uint64_t i = 0; i < order->threads; i++)
        if (strcmp(whole + lane_of(i)->name, t->path) == 0) {
            t->lane = (uint32_t)i;
            t->turns = (const struct turn *)(whole + lane_of(i)->turns);
            t->turns_left = lane_of(i)->count;
            t->results = whole + lane_of(i)->results;
            t->results_left = lane_of(i)->length;
            return;
        }
    epa_replay_ends("thread");
}

/* End replay: all threads run freely from now on. The trace says where and why. */
void epa_replay_ends(const char *why) {
    if (!__atomic_load_n(&replaying, __ATOMIC_ACQUIRE)) return;
    /* The number is taken before any thread runs freely. */
    uint64_t number = __atomic_add_fetch(&epa_sequence, 1, __ATOMIC_ACQ_REL);
    if (!__atomic_exchange_n(&replaying, 0, __ATOMIC_ACQ_REL)) return;
    char entry[640];
    int length = snprintf(entry, sizeof entry, "%s %lu %u %s\n", epa_self->path, number, epa_self->site, why);
    if (length > 0) epa_append("replay", entry, (size_t)length);
    for (uint64_t i = 0; i < order->threads; i++) {
        __atomic_store_n(&asleep[i], 0, __ATOMIC_RELEASE);
        futex_wake(&asleep[i]);
    }
}

int epa_replays(void) { return __atomic_load_n(&replaying, __ATOMIC_ACQUIRE) && epa_recording(); }
int epa_was_replayed(void) { return order != NULL; }

/* Wait until a turn comes. 0: replay is over. */
static int await(thread *t, uint64_t mine) {
    uint64_t seen = UINT64_MAX, since = 0;
    for (unsigned i = 0;; i++) {
        uint64_t current = __atomic_load_n(&turn, __ATOMIC_ACQUIRE);
        if (!__atomic_load_n(&replaying, __ATOMIC_ACQUIRE)) return 0;
        if (current == mine) return 1;
        if (i < SPINS) continue;
        uint64_t time = now();
        if (current != seen) {
            seen = current;
            since = time;
        } else if (time - since > order->stall) {
            epa_replay_ends("stalled");
            return 0;
        }
        __atomic_store_n(&asleep[t->lane], 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&turn, __ATOMIC_SEQ_CST) == mine || !__atomic_load_n(&replaying, __ATOMIC_SEQ_CST)) continue;
        struct timespec nap = {0, NAP_NS};
        syscall(SYS_futex, &asleep[t->lane], FUTEX_WAIT_PRIVATE, 1, &nap, NULL, 0);
    }
}

/* The turn of this thread for one of two operations, once it has come; NULL: replay is over. Then epa_pass_turn must be called. */
const struct turn *epa_take_turn(unsigned op, unsigned other) {
    thread *t = epa_self;
    if (!epa_replays()) return NULL;
    const struct turn *mine = t->turns;
    if (!t->turns_left || (mine->op != op && mine->op != other) || mine->site != t->site) {
        epa_replay_ends("operation");
        return NULL;
    }
    int error = errno;
    int came = await(t, mine->number);
    errno = error;
    return came ? mine : NULL;
}

void epa_pass_turn(void) {
    thread *t = epa_self;
    t->turns++;
    t->turns_left--;
    uint64_t next = __atomic_add_fetch(&turn, 1, __ATOMIC_SEQ_CST);
    if (next < order->turns && __atomic_exchange_n(&asleep[owners[next]], 0, __ATOMIC_SEQ_CST))
        futex_wake(&asleep[owners[next]]);
}

/* A thread ends. */
void epa_replay_ended(thread *t) {
    if (epa_replays() && t->turns_left) epa_replay_ends("end");
}

/* ---- ordered operations: atomic accesses, and operations on files ---- */

/* Outside of replay, one lock makes the recorded order the real one. */
static uint32_t ordered;

void epa_lock(uint32_t *lock) {
    for (unsigned i = 0; __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE); i++)
        if (i > SPINS) sched_yield();
}

void epa_unlock(uint32_t *lock) { __atomic_store_n(lock, 0, __ATOMIC_RELEASE); }

static void enter(uint64_t object) {
    thread *t = epa_self;
    if (epa_take_turn(ORDERED_IN, ORDERED_IN)) t->ordered = 2;
    else {
        epa_lock(&ordered);
        t->ordered = 1;
    }
    t->ordered_object = object;
    epa_numbered(SYNC, ORDERED_IN, object, 0);
}

void epa_leave_ordered(thread *t) {
    int how = t->ordered;
    t->ordered = 0;
    if (how == 2) epa_pass_turn();
    else if (how == 1) epa_unlock(&ordered);
}

void epa_atomic(uint64_t address) {
    if (epa_recording()) enter(address);
}

/* The end of an atomic access, or of an operation on a file. */
void epa_done(void) {
    thread *t = epa_self;
    if (!epa_recording() || !t->ordered) return;
    epa_numbered(SYNC, ORDERED_OUT, t->ordered_object, 0);
    epa_leave_ordered(epa_self);
}

/* An operation on a regular file or on a stream of one: it does not block. All of them are in one order. */
#define ALL_FILES (1ull << 63)

void epa_orders(uint64_t fd) {
    struct stat status;
    if (!epa_recording() || epa_self->ordered || fstat((int)fd, &status) != 0 || !S_ISREG(status.st_mode)) return;
    enter(ALL_FILES);
}

void epa_orders_stream(uint64_t stream) {
    if (stream && epa_recording()) epa_orders((uint64_t)fileno((FILE *)stream));
}

/* A file is opened, renamed or removed. Who opens a pipe waits for the other end: this has no order. */
void epa_orders_name(uint64_t path) {
    struct stat status;
    if (!epa_recording() || epa_self->ordered) return;
    int error = errno;
    int exists = path && syscall(SYS_newfstatat, AT_FDCWD, path, &status, 0) == 0;
    errno = error;
    if (!exists || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) enter(ALL_FILES);
}

/* ---- results that the input does not determine ---- */

struct result { uint32_t site, size; uint64_t value; };

void epa_flush_results(thread *t) {
    if (!t->kept_bytes) return;
    char name[64];
    snprintf(name, sizeof name, "chance-%u", t->uid);
    epa_append(name, t->kept, t->kept_bytes);
    t->kept_bytes = 0;
}

static void keep(thread *t, const void *bytes, size_t size) {
    if (t->kept_bytes + size > sizeof t->kept) epa_flush_results(t);
    if (size > sizeof t->kept) {
        char name[64];
        snprintf(name, sizeof name, "chance-%u", t->uid);
        epa_append(name, bytes, size);
        return;
    }
    memcpy(t->kept + t->kept_bytes, bytes, size);
    t->kept_bytes += (uint32_t)size;
}

/* The next recorded result, if it is one of this site and size; NULL: replay is over. */
static const struct result *next_result(thread *t, uint32_t site, uint32_t size) {
    const struct result *found = (const struct result *)t->results;
    if (t->results_left < sizeof *found || found->site != site || found->size != size) {
        epa_replay_ends("call");
        return NULL;
    }
    uint64_t length = sizeof *found + ((size + 7u) & ~7u);
    t->results += length;
    t->results_left -= length;
    return found;
}

uint64_t epa_chance_result(uint32_t site, uint64_t value) {
    thread *t = epa_self;
    if (!epa_recording()) return value;
    if (epa_replays()) {
        const struct result *found = next_result(t, site, 0);
        return found ? found->value : value;
    }
    if (!epa_was_replayed()) keep(t, &(struct result){site, 0, value}, sizeof(struct result));
    return value;
}

/* Memory that a call has written. After a fault, the address may be no address: the kernel notices it. */
void epa_chance_memory(uint32_t site, uint64_t address, uint64_t size) {
    thread *t = epa_self;
    if (!epa_recording() || !address || !size || size > 1u << 30) return;
    int error = errno;
    struct iovec there = {(void *)address, size};
    if (epa_replays()) {
        const struct result *found = next_result(t, site, (uint32_t)size);
        struct iovec here = {(void *)(found + 1), size};
        if (found && process_vm_readv(getpid(), &there, 1, &here, 1, 0) < 0 && errno != EFAULT)
            memcpy((void *)address, found + 1, size);
    } else if (!epa_was_replayed()) {
        uint64_t padding = 0;
        keep(t, &(struct result){site, (uint32_t)size, 0}, sizeof(struct result));
        keep(t, (const void *)address, size);
        keep(t, &padding, ((size + 7u) & ~7u) - size);
    }
    errno = error;
}
