/* The recorder that `plait epa build` links into a program (thesis 004, section 5.4.1, steps 1 and 2).
 *
 * Every thread appends records to a memory-mapped file of its own, so that what was recorded survives whatever kills the
 * program. docs/epa.md has the format. Three rules keep a trace readable and its order right:
 *  - the first word of a record is written last, so that a record is either whole or absent (zero words end a file);
 *  - what synchronises (threads, locks, the heap, atomics) takes a number from one global counter, releases before the act
 *    and acquisitions after it; everything else notes the counter only when it has changed. Two events that a program orders
 *    by synchronisation are therefore ordered by their numbers;
 *  - nothing here allocates from the heap.
 *
 * Environment: EPA_TRACE is the folder to write to (absent: run without recording); EPA_FAULT is ACTION:SITE:THREAD:NTH:VALUE;
 * EPA_YIELD is a seed for random yields.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#pragma clang diagnostic ignored "-Wframe-address" /* the caller is compiled with frame pointers */

#define HIDDEN __attribute__((visibility("hidden")))
#define RARE(x) __builtin_expect(!!(x), 0)

enum kind {
    VALUE = 1, LOAD, STORE, ALLOCA, ENTER, RETURN, CALL, ARG, LANDING, RANGE, COPY, FAULT, SEQ,
    SYNC = 32, /* kinds from here on begin with their number */
    ALLOC = 33, FREE = 34, SMALL = 64, FRAME = 128, PAD = 255
};
enum op {
    START = 1, END, CREATE, CREATED, JOIN_BEGIN, JOIN, LOCK, UNLOCK, READ_LOCK, WRITE_LOCK, RW_UNLOCK,
    BARRIER_IN, BARRIER_OUT, WAIT, SIGNAL, ONCE, TRY_FAILED, BARRIER_INIT
};

typedef struct thread {
    uint64_t *next, *end; /* the window of the file that is mapped */
    uint64_t seen;        /* the last sequence number that was noted */
    uint64_t base;        /* addresses are short from here on: a little below the frame that was entered last */
    uint64_t random;
    uint64_t nth; /* executions of the faulty site */
    uint32_t site;
    uint32_t uid, parent, ordinal, children;
    int fd, dead, here, skip;
    uint64_t *window;
    size_t offset, length; /* of the window, in bytes */
    char path[512];
} thread;

static __thread thread *self __attribute__((tls_model("initial-exec")));
static uint64_t sequence;
static uint32_t uids;
static int folder = -1;
static uint64_t yields;
static pthread_key_t key;

static uint32_t fault_site, fault_call; /* where values change, and where calls are skipped */
static char fault_action[16], fault_thread[512];
static uint64_t fault_nth, fault_value;

extern const char epa_table[] HIDDEN, epa_table_end[] HIDDEN;
struct epa_global { void *address; uint64_t size, id; };
extern struct epa_global __start_epa_globals[] __attribute__((weak)) HIDDEN;
extern struct epa_global __stop_epa_globals[] __attribute__((weak)) HIDDEN;
typedef void (*epa_tls_function)(void);
extern epa_tls_function __start_epa_locals[] __attribute__((weak)) HIDDEN;
extern epa_tls_function __stop_epa_locals[] __attribute__((weak)) HIDDEN;

/* ---- files ---- */

static void finish(thread *t) {
    if (t->fd < 0) return;
    size_t used = t->offset + (size_t)((char *)t->next - (char *)t->window);
    if (t->window) munmap(t->window, t->length);
    t->window = t->next = t->end = NULL;
    if (ftruncate(t->fd, (off_t)used) != 0) { /* the tail stays zero, which ends the file as well */ }
    close(t->fd);
    t->fd = -1;
}

/* Map the next window. A full disk ends the recording of the thread, not the program; the file says so in its name. */
static int grow(thread *t, unsigned words) {
    if (t->fd < 0) return 0;
    if (t->window) {
        if (t->next < t->end) t->next[0] = ((uint64_t)PAD << 56) | (uint64_t)(t->end - t->next);
        munmap(t->window, t->length);
        t->offset += t->length;
    }
    t->length = t->length ? (t->length < (8u << 20) ? t->length * 2 : t->length) : (64u << 10);
    (void)words;
    int failed = posix_fallocate(t->fd, (off_t)t->offset, (off_t)t->length);
    void *at = failed ? MAP_FAILED
                      : mmap(NULL, t->length, PROT_READ | PROT_WRITE, MAP_SHARED, t->fd, (off_t)t->offset);
    if (at == MAP_FAILED) {
        char name[64];
        snprintf(name, sizeof name, "full-%u", t->uid);
        int marker = openat(folder, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
        if (marker >= 0) close(marker);
        t->window = t->next = t->end = NULL;
        close(t->fd);
        t->fd = -1;
        return 0;
    }
#ifdef MADV_POPULATE_WRITE
    madvise(at, t->length, MADV_POPULATE_WRITE);
#else
    madvise(at, t->length, 23);
#endif
    t->window = t->next = at;
    t->end = t->window + t->length / 8;
    return 1;
}

static inline __attribute__((always_inline)) uint64_t *room(thread *t, unsigned words) {
    if (RARE(t->next + words > t->end) && !grow(t, words)) return NULL;
    return t->next;
}

#define HEAD(kind, detail, id) (((uint64_t)(kind) << 56) | ((uint64_t)(detail) << 20) | (id))
#define BELOW 32768 /* half of the addresses that are short */
#define SEAL() __asm__ volatile("" ::: "memory")

static __attribute__((noinline)) void note_sequence(thread *t, uint64_t now) {
    uint64_t *p = room(t, 2);
    if (!p) return;
    p[1] = now;
    SEAL();
    p[0] = HEAD(SEQ, 0, 0);
    t->next = p + 2;
    t->seen = now;
}

static inline __attribute__((always_inline)) void look(thread *t) {
    uint64_t now = __atomic_load_n(&sequence, __ATOMIC_ACQUIRE);
    if (RARE(now != t->seen)) note_sequence(t, now);
}

/* One word after the first; a small one goes into the first (SMALL), in place of the detail. */
static inline __attribute__((always_inline)) void put1(thread *t, unsigned kind, uint32_t id, uint64_t a) {
    look(t);
    uint64_t *p = room(t, 2);
    if (RARE(!p)) return;
    if (a >> 36) {
        p[1] = a;
        SEAL();
        p[0] = HEAD(kind, 0, id);
        t->next = p + 2;
    } else {
        p[0] = HEAD(kind | SMALL, a, id);
        t->next = p + 1;
    }
}

/* An address and a value; the first word has the address if it is near the frame (FRAME), the value if it is small. */
static inline __attribute__((always_inline)) void put2(thread *t, unsigned kind, uint32_t id, uint64_t a, uint64_t b) {
    look(t);
    uint64_t *p = room(t, 3);
    if (RARE(!p)) return;
    uint64_t near = a - t->base;
    if (near < 2 * BELOW) {
        if (b >> 20) {
            p[1] = b;
            SEAL();
            p[0] = HEAD(kind | FRAME, near, id);
            t->next = p + 2;
        } else {
            p[0] = HEAD(kind | FRAME | SMALL, (near << 20) | b, id);
            t->next = p + 1;
        }
        return;
    }
    p[1] = a;
    if (b >> 36) {
        p[2] = b;
        SEAL();
        p[0] = HEAD(kind, 0, id);
        t->next = p + 3;
    } else {
        SEAL();
        p[0] = HEAD(kind | SMALL, b, id);
        t->next = p + 2;
    }
}

/* Three words after the first, with a detail. */
static void put3(thread *t, unsigned kind, unsigned detail, uint32_t id, uint64_t a, uint64_t b, uint64_t c) {
    look(t);
    uint64_t *p = room(t, 4);
    if (RARE(!p)) return;
    p[1] = a;
    p[2] = b;
    p[3] = c;
    SEAL();
    p[0] = HEAD(kind, detail, id);
    t->next = p + 4;
}

/* A record with a number of its own: kind, number, two words. */
static __attribute__((noinline)) void numbered(thread *t, unsigned kind, unsigned aux, uint64_t a, uint64_t b) {
    uint64_t *p = room(t, 4);
    uint64_t now = __atomic_add_fetch(&sequence, 1, __ATOMIC_ACQ_REL);
    if (!p) return;
    p[1] = now;
    p[2] = a;
    p[3] = b;
    SEAL();
    p[0] = HEAD(kind, aux, t->site);
    t->next = p + 4;
    t->seen = now;
}

static void maybe_yield(thread *t) {
    if (!yields) return;
    t->random ^= t->random << 13;
    t->random ^= t->random >> 7;
    t->random ^= t->random << 17;
    if (t->random % 8 == 0) sched_yield();
    if (t->random % 61 == 0) usleep((useconds_t)(t->random >> 8) % 200);
}

/* ---- threads ---- */

static thread *begin(uint32_t uid, uint32_t parent, uint32_t ordinal, const char *path) {
    thread *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (t == MAP_FAILED) return NULL;
    t->uid = uid;
    t->parent = parent;
    t->ordinal = ordinal;
    strncpy(t->path, path, sizeof t->path - 1);
    t->random = (yields + 0x9e3779b97f4a7c15u * (uid + 1)) | 1;
    t->here = (fault_site || fault_call) && strcmp(fault_thread, t->path) == 0;
    char name[64];
    snprintf(name, sizeof name, "thread-%u.bin", uid);
    t->fd = openat(folder, name, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0644);
    void *low = NULL; /* asked for before the thread records: it allocates */
    size_t size = 0;
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        pthread_attr_getstack(&attributes, &low, &size);
        pthread_attr_destroy(&attributes);
    }
    numbered(t, SYNC, START, ((uint64_t)parent << 32) | ordinal, (uint64_t)pthread_self());
    self = t;
    put3(t, RANGE, 2, 0, (uint64_t)low, size, 0);
    for (epa_tls_function *f = __start_epa_locals; f < __stop_epa_locals; f++) (*f)();
    pthread_setspecific(key, t);
    return t;
}

static void end_of_thread(void *given) {
    thread *t = given;
    t->site = 0;
    numbered(t, SYNC, END, 0, 0);
    self = NULL;
    finish(t);
}

static int describe_module(struct dl_phdr_info *info, size_t size, void *given) {
    (void)size;
    uint64_t low = UINT64_MAX, high = 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD) {
            uint64_t at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            if (at < low) low = at;
            if (at + info->dlpi_phdr[i].p_memsz > high) high = at + info->dlpi_phdr[i].p_memsz;
        }
    const char *name = strrchr(info->dlpi_name, '/');
    name = name ? name + 1 : info->dlpi_name[0] ? info->dlpi_name : "program";
    if (high) dprintf(*(int *)given, "m %lu %lu %s\n", low, high, name);
    return 0;
}

static void write_all(const char *name, const char *bytes, size_t length) {
    int fd = openat(folder, name, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
    while (fd >= 0 && length) {
        ssize_t n = write(fd, bytes, length);
        if (n <= 0) break;
        bytes += n;
        length -= (size_t)n;
    }
    if (fd >= 0) close(fd);
}

static void read_fault(const char *plan) {
    unsigned site = 0;
    unsigned long long nth = 0, value = 0;
    if (plan && sscanf(plan, "%15[^:]:%u:%511[^:]:%llu:%llu", fault_action, &site, fault_thread, &nth, &value) == 5) {
        fault_nth = nth;
        fault_value = value;
        int at_call = fault_action[0] == 's' || fault_action[0] == 'k';
        *(at_call ? &fault_call : &fault_site) = site;
    }
}

/* What the kernel put on the stack, as globals: argv, envp, and the strings of argv. */
#define GIVEN 0x40000000ul

static void describe_arguments(int fd, int argc, char **argv, char **envp) {
    int variables = 0;
    while (envp[variables]) variables++;
    dprintf(fd, "g %lu %lu %lu\n", (uint64_t)argv, 8ul * (unsigned)(argc + 1), GIVEN);
    dprintf(fd, "g %lu %lu %lu\n", (uint64_t)envp, 8ul * (unsigned)(variables + 1), GIVEN + 1);
    for (int i = 0; i < argc; i++)
        dprintf(fd, "g %lu %lu %lu\n", (uint64_t)argv[i], strlen(argv[i]) + 1, GIVEN + 2 + (unsigned)i);
}

__attribute__((constructor(101))) static void at_start(int argc, char **argv, char **envp) {
    const char *path = getenv("EPA_TRACE"), *seed = getenv("EPA_YIELD");
    if (!path) return;
    folder = open(path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    if (folder < 0) {
        dprintf(2, "epa: the folder %s cannot be opened: %s\n", path, strerror(errno));
        _exit(127);
    }
    if (seed) yields = strtoull(seed, NULL, 10) | 1;
    read_fault(getenv("EPA_FAULT"));
    pthread_key_create(&key, end_of_thread);
    write_all("table.json", epa_table, (size_t)(epa_table_end - epa_table));
    int fd = openat(folder, "layout.txt", O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
    if (fd >= 0) {
        for (struct epa_global *g = __start_epa_globals; g < __stop_epa_globals; g++)
            dprintf(fd, "g %lu %lu %lu\n", (uint64_t)g->address, g->size, g->id);
        describe_arguments(fd, argc, argv, envp);
        dl_iterate_phdr(describe_module, &fd);
        close(fd);
    }
    begin(uids++, UINT32_MAX, 0, "T_0");
}

__attribute__((destructor(101))) static void at_exit(void) {
    if (self && !self->dead) end_of_thread(self);
}

/* ---- what instrumented code calls ---- */

static __attribute__((noinline)) uint64_t inject(thread *t, uint32_t id, uint64_t value) {
    if (!t->here || t->nth++ != fault_nth) return value;
    uint64_t before = value;
    switch (fault_action[0]) {
    case 'x': value ^= fault_value; break; /* xor */
    case 'a': value += fault_value; break; /* add */
    case 'm': value = fault_value ? value / fault_value : 0; break; /* minify: a fraction */
    case 's': t->skip = 1; break;          /* skip the operation that is called */
    default: break;
    }
    put3(t, FAULT, 0, id, before, value, 0);
    if (fault_action[0] == 'k') pthread_exit(NULL); /* kill the thread */
    return value;
}

uint64_t epa_value(uint32_t id, uint64_t value) {
    thread *t = self;
    if (RARE(!t)) return value;
    if (RARE(id == fault_site)) value = inject(t, id, value);
    put1(t, VALUE, id, value);
    return value;
}

uint64_t epa_load(uint32_t id, uint64_t address, uint64_t value) {
    thread *t = self;
    if (RARE(!t)) return value;
    if (RARE(id == fault_site)) value = inject(t, id, value);
    put2(t, LOAD, id, address, value);
    return value;
}

void epa_store(uint32_t id, uint64_t address, uint64_t value) {
    thread *t = self;
    if (RARE(!t)) return;
    put2(t, STORE, id, address, value);
}

void epa_alloca(uint32_t id, uint64_t address, uint64_t size) {
    thread *t = self;
    if (RARE(!t)) return;
    put2(t, ALLOCA, id, address, size);
}

void epa_enter(uint32_t id) {
    thread *t = self;
    if (RARE(!t)) return;
    uint64_t frame = (uint64_t)__builtin_frame_address(1);
    put1(t, ENTER, id, frame);
    t->base = frame - BELOW;
}

void epa_landing(uint32_t id) {
    thread *t = self;
    if (RARE(!t)) return;
    put1(t, LANDING, id, (uint64_t)__builtin_frame_address(1));
}

void epa_return(uint32_t id, uint64_t value) {
    thread *t = self;
    if (RARE(!t)) return;
    put1(t, RETURN, id, value);
}

/* Before a call: the callee. Faults of sites of calls that return nothing, and "skip" and "kill", strike here. */
void epa_call(uint32_t id, uint64_t callee) {
    thread *t = self;
    if (RARE(!t)) return;
    t->site = id;
    put1(t, CALL, id, callee);
    if (RARE(id == fault_call)) inject(t, id, 0);
    maybe_yield(t);
}

/* An argument of a call; each has a site of its own. */
uint64_t epa_argument(uint32_t id, uint64_t value) {
    thread *t = self;
    if (RARE(!t)) return value;
    if (RARE(id == fault_site)) value = inject(t, id, value);
    put1(t, ARG, id, value);
    return value;
}

/* Memory that an external function reads (0) or writes (1), or a thread's own variable (3). */
void epa_range(uint32_t id, uint32_t access, uint64_t address, uint64_t length) {
    thread *t = self;
    if (RARE(!t) || (!length && access < 2)) return;
    put3(t, RANGE, access, id, address, length, 0);
}

void epa_string(uint32_t id, uint32_t access, uint64_t address) {
    thread *t = self;
    if (RARE(!t) || !address) return;
    put3(t, RANGE, access, id, address, strlen((const char *)address) + 1, 0);
}

void epa_copy(uint32_t id, uint64_t to, uint64_t from, uint64_t length) {
    thread *t = self;
    if (RARE(!t) || !length) return;
    put3(t, COPY, 0, id, to, from, length);
}

/* An atomic access takes a number. */
void epa_atomic(void) {
    thread *t = self;
    if (RARE(!t)) return;
    note_sequence(t, __atomic_add_fetch(&sequence, 1, __ATOMIC_ACQ_REL));
}

/* ---- interposition: threads ---- */

#define REAL(type, name, parameters) \
    static type(*real) parameters; \
    if (RARE(!real)) real = (type(*) parameters)dlsym(RTLD_NEXT, #name)
#define NOTE(op, a, b) do { if (self) numbered(self, SYNC, op, (uint64_t)(a), (uint64_t)(b)); } while (0)

struct start { void *(*function)(void *); void *argument; uint32_t uid, parent, ordinal; char path[512]; };

static void *run_thread(void *given) {
    struct start start = *(struct start *)given;
    munmap(given, sizeof start);
    begin(start.uid, start.parent, start.ordinal, start.path);
    return start.function(start.argument);
}

int pthread_create(pthread_t *handle, const pthread_attr_t *attributes, void *(*function)(void *), void *argument) {
    REAL(int, pthread_create, (pthread_t *, const pthread_attr_t *, void *(*)(void *), void *));
    thread *t = self;
    if (!t) return real(handle, attributes, function, argument);
    struct start *start = mmap(NULL, sizeof *start, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return EAGAIN;
    start->function = function;
    start->argument = argument;
    start->uid = __atomic_fetch_add(&uids, 1, __ATOMIC_RELAXED);
    start->parent = t->uid;
    start->ordinal = t->children++;
    snprintf(start->path, sizeof start->path, "%.480s_%u", t->path, start->ordinal);
    uint32_t uid = start->uid;
    NOTE(CREATE, uid, 0);
    maybe_yield(t);
    int code = real(handle, attributes, run_thread, start);
    if (code == 0) NOTE(CREATED, uid, *handle);
    else munmap(start, sizeof *start);
    return code;
}

int pthread_join(pthread_t handle, void **result) {
    REAL(int, pthread_join, (pthread_t, void **));
    NOTE(JOIN_BEGIN, handle, 0);
    int code = real(handle, result);
    if (code == 0) NOTE(JOIN, handle, 0);
    return code;
}

void pthread_exit(void *result) {
    REAL(void, pthread_exit, (void *));
    real(result);
    __builtin_unreachable();
}

/* ---- interposition: locks ---- */

static int skipped(void) {
    thread *t = self;
    if (!t) return 0;
    maybe_yield(t);
    if (RARE(t->skip)) return t->skip = 0, 1;
    return 0;
}

#define ACQUIRE(name, type, op) \
    int name(type *lock) { \
        REAL(int, name, (type *)); \
        if (skipped()) return 0; \
        int code = real(lock); \
        if (code == 0) NOTE(op, lock, 0); \
        return code; \
    }
#define TRY(name, type, op) \
    int name(type *lock) { \
        REAL(int, name, (type *)); \
        int code = real(lock); \
        NOTE(code ? TRY_FAILED : op, lock, 1); \
        return code; \
    }
#define TIMED(name, type, op) \
    int name(type *lock, const struct timespec *until) { \
        REAL(int, name, (type *, const struct timespec *)); \
        int code = real(lock, until); \
        NOTE(code ? TRY_FAILED : op, lock, 1); \
        return code; \
    }
#define RELEASE(name, type, op) \
    int name(type *lock) { \
        REAL(int, name, (type *)); \
        if (skipped()) return 0; \
        NOTE(op, lock, 0); \
        return real(lock); \
    }

ACQUIRE(pthread_mutex_lock, pthread_mutex_t, LOCK)
TRY(pthread_mutex_trylock, pthread_mutex_t, LOCK)
TIMED(pthread_mutex_timedlock, pthread_mutex_t, LOCK)
RELEASE(pthread_mutex_unlock, pthread_mutex_t, UNLOCK)
ACQUIRE(pthread_rwlock_rdlock, pthread_rwlock_t, READ_LOCK)
ACQUIRE(pthread_rwlock_wrlock, pthread_rwlock_t, WRITE_LOCK)
TRY(pthread_rwlock_tryrdlock, pthread_rwlock_t, READ_LOCK)
TRY(pthread_rwlock_trywrlock, pthread_rwlock_t, WRITE_LOCK)
RELEASE(pthread_rwlock_unlock, pthread_rwlock_t, RW_UNLOCK)

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock) {
    REAL(int, pthread_cond_wait, (pthread_cond_t *, pthread_mutex_t *));
    NOTE(WAIT, condition, lock);
    NOTE(UNLOCK, lock, 0);
    int code = real(condition, lock);
    NOTE(LOCK, lock, 0);
    return code;
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock, const struct timespec *until) {
    REAL(int, pthread_cond_timedwait, (pthread_cond_t *, pthread_mutex_t *, const struct timespec *));
    NOTE(WAIT, condition, lock);
    NOTE(UNLOCK, lock, 0);
    int code = real(condition, lock, until);
    NOTE(LOCK, lock, 0);
    return code;
}

int pthread_cond_signal(pthread_cond_t *condition) {
    REAL(int, pthread_cond_signal, (pthread_cond_t *));
    NOTE(SIGNAL, condition, 0);
    return real(condition);
}

int pthread_cond_broadcast(pthread_cond_t *condition) {
    REAL(int, pthread_cond_broadcast, (pthread_cond_t *));
    NOTE(SIGNAL, condition, 1);
    return real(condition);
}

int pthread_barrier_init(pthread_barrier_t *barrier, const pthread_barrierattr_t *attributes, unsigned count) {
    REAL(int, pthread_barrier_init, (pthread_barrier_t *, const pthread_barrierattr_t *, unsigned));
    NOTE(BARRIER_INIT, barrier, count);
    return real(barrier, attributes, count);
}

int pthread_barrier_wait(pthread_barrier_t *barrier) {
    REAL(int, pthread_barrier_wait, (pthread_barrier_t *));
    if (skipped()) return 0;
    NOTE(BARRIER_IN, barrier, 0);
    int code = real(barrier);
    NOTE(BARRIER_OUT, barrier, 0);
    return code;
}

extern const char __executable_start[] HIDDEN, etext[] HIDDEN;

int pthread_once(pthread_once_t *once, void (*routine)(void)) {
    REAL(int, pthread_once, (pthread_once_t *, void (*)(void)));
    /* Libraries use it for themselves (the unwinder does): that orders nothing of the program. */
    const char *caller = __builtin_return_address(0);
    if (caller >= __executable_start && caller < etext) NOTE(ONCE, once, 0);
    return real(once, routine);
}

/* ---- interposition: the heap (new and delete call malloc and free) ---- */

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static inline void *allocated(void *at, size_t size) {
    if (self && at) numbered(self, ALLOC, 0, (uint64_t)at, size);
    return at;
}

void *malloc(size_t size) { return allocated(__libc_malloc(size), size); }
void *calloc(size_t count, size_t size) { return allocated(__libc_calloc(count, size), count * size); }
void *memalign(size_t alignment, size_t size) { return allocated(__libc_memalign(alignment, size), size); }
void *aligned_alloc(size_t alignment, size_t size) { return allocated(__libc_memalign(alignment, size), size); }

int posix_memalign(void **result, size_t alignment, size_t size) {
    void *at = __libc_memalign(alignment, size);
    if (!at) return ENOMEM;
    *result = allocated(at, size);
    return 0;
}

void free(void *at) {
    if (self && at) numbered(self, FREE, 0, (uint64_t)at, 0);
    __libc_free(at);
}

void *realloc(void *at, size_t size) {
    if (self && at) numbered(self, FREE, 0, (uint64_t)at, 0);
    void *moved = __libc_realloc(at, size);
    if (!moved && at && size && self) numbered(self, ALLOC, 1, (uint64_t)at, 0); /* it failed: the old block stays */
    return allocated(moved, size);
}
