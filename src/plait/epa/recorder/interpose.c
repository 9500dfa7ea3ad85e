/* Interposed functions of libc: threads, locks, signals and the heap. They belong to recorder.c. Releases are recorded before
 * the operation, acquisitions after it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "recorder.h"

/* ---- interposition: threads ---- */

#define REAL(type, name, parameters) \
    static type(*real) parameters; \
    if (RARE(!real)) real = (type(*) parameters)dlsym(RTLD_NEXT, #name)
#define NOTE(op, a, b) do { if (epa_recording()) epa_numbered(SYNC, op, (uint64_t)(a), (uint64_t)(b)); } while (0)

static void *run_thread(void *given) {
    struct start start = *(struct start *)given;
    munmap(given, sizeof start);
    epa_begin(&start);
    return start.function(start.argument);
}

int pthread_create(pthread_t *handle, const pthread_attr_t *attributes, void *(*function)(void *), void *argument) {
    REAL(int, pthread_create, (pthread_t *, const pthread_attr_t *, void *(*)(void *), void *));
    if (!epa_recording()) return real(handle, attributes, function, argument);
    struct start *start = mmap(NULL, sizeof *start, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return EAGAIN;
    start->function = function;
    start->argument = argument;
    epa_child(start);
    uint32_t uid = start->uid;
    NOTE(CREATE, uid, 0);
    epa_maybe_yield();
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
    if (!epa_recording()) return 0;
    thread *t = epa_self;
    epa_maybe_yield();
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
    /* Libraries use it internally (for example the unwinder): this orders no events of the program. */
    const char *caller = __builtin_return_address(0);
    if (caller >= __executable_start && caller < etext) NOTE(ONCE, once, 0);
    return real(once, routine);
}

/* ---- interposition: signal handlers ---- */

static struct sigaction handlers[NSIG];

static void handle(int number, siginfo_t *info, void *context) {
    thread *t = epa_pause();
    const struct sigaction *own = &handlers[number];
    if (own->sa_flags & SA_SIGINFO) own->sa_sigaction(number, info, context);
    else own->sa_handler(number);
    epa_resume(t);
}

int sigaction(int number, const struct sigaction *action, struct sigaction *old) {
    REAL(int, sigaction, (int, const struct sigaction *, struct sigaction *));
    if (number < 1 || number >= NSIG) return real(number, action, old);
    struct sigaction before = handlers[number], ours;
    int is_function = action && action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
    if (is_function) {
        handlers[number] = ours = *action;
        ours.sa_sigaction = handle;
        ours.sa_flags |= SA_SIGINFO;
    }
    int code = real(number, is_function ? &ours : action, old);
    if (code != 0 && is_function) handlers[number] = before;
    if (code == 0 && old && (old->sa_flags & SA_SIGINFO) && old->sa_sigaction == handle) *old = before;
    return code;
}

sighandler_t signal(int number, sighandler_t handler) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;
    return sigaction(number, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}

/* ---- interposition: the heap (new and delete call malloc and free) ---- */

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static inline void *allocated(void *at, size_t size) {
    if (at && epa_recording()) epa_numbered(ALLOC, 0, (uint64_t)at, size);
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
    if (at && epa_recording()) epa_numbered(FREE, 0, (uint64_t)at, 0);
    __libc_free(at);
}

void *realloc(void *at, size_t size) {
    if (at && epa_recording()) epa_numbered(FREE, 0, (uint64_t)at, 0);
    void *moved = __libc_realloc(at, size);
    if (!moved && at && size && epa_recording()) epa_numbered(ALLOC, 1, (uint64_t)at, 0); /* realloc failed: the old block stays */
    return allocated(moved, size);
}
