/* Interposed functions of libc: threads, barriers, signals and the heap (locks.c has the locks). They belong to recorder.c.
 * Releases are recorded before the operation, acquisitions after it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <threads.h>
#include <time.h>

#include "recorder.h"

/* ---- interposition: threads ---- */

#define REAL(type, name, parameters) \
    static type(*real) parameters; \
    if (RARE(!real)) real = (type(*) parameters)dlsym(RTLD_NEXT, #name)
#define NOTE(op, a, b) do { if (epa_recording()) epa_numbered(SYNC, op, (uint64_t)(a), (uint64_t)(b)); } while (0)

static struct start begun(void *given) {
    struct start start = *(struct start *)given;
    munmap(given, sizeof start);
    epa_begin(&start);
    return start;
}

static void *run_thread(void *given) {
    struct start start = begun(given);
    return start.function(start.argument);
}

static struct start *prepared(void *(*function)(void *), void *argument) {
    struct start *start = mmap(NULL, sizeof *start, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return NULL;
    start->function = function;
    start->argument = argument;
    epa_child(start);
    NOTE(CREATE, start->uid, 0);
    epa_maybe_yield();
    return start;
}

/* The thread has been created, if the code is 0. `start` may already be unmapped then. */
static int created(int code, struct start *start, uint32_t uid, const pthread_t *handle) {
    if (code == 0) NOTE(CREATED, uid, *handle);
    else munmap(start, sizeof *start);
    return code;
}

int pthread_create(pthread_t *handle, const pthread_attr_t *attributes, void *(*function)(void *), void *argument) {
    REAL(int, pthread_create, (pthread_t *, const pthread_attr_t *, void *(*)(void *), void *));
    if (!epa_recording()) return real(handle, attributes, function, argument);
    struct start *start = prepared(function, argument);
    if (!start) return EAGAIN;
    uint32_t uid = start->uid;
    return created(real(handle, attributes, run_thread, start), start, uid, handle);
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

/* ---- interposition: barriers and pthread_once ---- */

int pthread_barrier_init(pthread_barrier_t *barrier, const pthread_barrierattr_t *attributes, unsigned count) {
    REAL(int, pthread_barrier_init, (pthread_barrier_t *, const pthread_barrierattr_t *, unsigned));
    NOTE(BARRIER_INIT, barrier, count);
    return real(barrier, attributes, count);
}

int pthread_barrier_wait(pthread_barrier_t *barrier) {
    REAL(int, pthread_barrier_wait, (pthread_barrier_t *));
    if (epa_times() == 0) return 0;
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

/* ---- interposition: threads of C11. glibc implements them with its own internal functions, not with the ones above. ---- */

static int run_c11(void *given) {
    struct start start = begun(given);
    return ((int (*)(void *))(void (*)(void))start.function)(start.argument);
}

int thrd_create(thrd_t *handle, thrd_start_t function, void *argument) {
    REAL(int, thrd_create, (thrd_t *, thrd_start_t, void *));
    if (!epa_recording()) return real(handle, function, argument);
    struct start *start = prepared((void *(*)(void *))(void (*)(void))function, argument);
    if (!start) return thrd_nomem;
    uint32_t uid = start->uid;
    return created(real(handle, run_c11, start), start, uid, handle);
}

int thrd_join(thrd_t handle, int *result) {
    REAL(int, thrd_join, (thrd_t, int *));
    NOTE(JOIN_BEGIN, handle, 0);
    int code = real(handle, result);
    if (code == thrd_success) NOTE(JOIN, handle, 0);
    return code;
}

void call_once(once_flag *flag, void (*routine)(void)) {
    REAL(void, call_once, (once_flag *, void (*)(void)));
    NOTE(ONCE, flag, 0);
    real(flag, routine);
}

/* ---- interposition: signal handlers ---- */

static struct sigaction handlers[NSIG];

static void handle(int number, siginfo_t *info, void *context) {
    char entry[32]; /* by hand: printf must not be called here */
    size_t length = 0;
    for (int rest = number, unit = 100; unit; rest %= unit, unit /= 10) entry[length++] = (char)('0' + rest / unit);
    entry[length++] = info && info->si_code > 0 ? 's' : 'a'; /* synchronous: from the kernel, for this instruction */
    entry[length++] = '\n';
    epa_append("signals", entry, length);
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

/* Memory that the program did not write must have the same content in each run: it is zero. */
static inline void *allocated(void *at, size_t size) {
    if (at && epa_recording()) epa_numbered(ALLOC, 0, (uint64_t)at, size);
    return at;
}

static void *aligned(size_t alignment, size_t size) {
    void *at = __libc_memalign(alignment, size);
    if (at) memset(at, 0, malloc_usable_size(at));
    return at;
}

void *malloc(size_t size) { return allocated(__libc_calloc(1, size), size); }
void *calloc(size_t count, size_t size) { return allocated(__libc_calloc(count, size), count * size); }
void *memalign(size_t alignment, size_t size) { return allocated(aligned(alignment, size), size); }
void *aligned_alloc(size_t alignment, size_t size) { return allocated(aligned(alignment, size), size); }

int posix_memalign(void **result, size_t alignment, size_t size) {
    void *at = aligned(alignment, size);
    if (!at) return ENOMEM;
    *result = allocated(at, size);
    return 0;
}

void free(void *at) {
    if (at && epa_recording()) epa_numbered(FREE, 0, (uint64_t)at, 0);
    __libc_free(at);
}

void *realloc(void *at, size_t size) {
    if (!at) return malloc(size);
    size_t before = malloc_usable_size(at);
    if (epa_recording()) epa_numbered(FREE, 0, (uint64_t)at, 0);
    void *moved = __libc_realloc(at, size);
    if (!moved && size && epa_recording()) epa_numbered(ALLOC, 1, (uint64_t)at, 0); /* realloc failed: the old block stays */
    size_t after = moved ? malloc_usable_size(moved) : 0;
    if (after > before) memset((char *)moved + before, 0, after - before);
    return allocated(moved, size);
}
