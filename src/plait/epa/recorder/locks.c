/* Interposed functions of libc for locks, semaphores and condition variables. They belong to recorder.c. Releases are recorded before the
 * operation, acquisitions after it.
 *
 * In a replayed run (replay.c), each of them happens at its turn. An acquisition that succeeded in the golden run is then
 * tried: it must succeed at once. One that failed is not tried, and fails again. A wait for a condition becomes a release, and
 * an acquisition at its turn: POSIX allows a wait to end at any time, and the golden run says when it ended. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <semaphore.h>
#include <threads.h>
#include <time.h>

#include "recorder.h"

#define NOTE(op, a, b) do { if (epa_recording()) epa_numbered(SYNC, op, (uint64_t)(a), (uint64_t)(b)); } while (0)

typedef int operation(void *);
typedef int timed_operation(void *, const struct timespec *);

/* The functions of libc for one kind of lock. */
struct lock_kind {
    const char *names[8]; /* in the order of the functions below */
    operation *acquire, *try, *release, *signal, *broadcast;
    timed_operation *timed;
    int (*wait)(void *, void *), (*timed_wait)(void *, void *, const struct timespec *);
};

static struct lock_kind mutex = {
    .names = {"pthread_mutex_lock", "pthread_mutex_trylock", "pthread_mutex_unlock", "pthread_cond_signal",
              "pthread_cond_broadcast", "pthread_mutex_timedlock", "pthread_cond_wait", "pthread_cond_timedwait"}};
static struct lock_kind c11 = {
    .names = {"mtx_lock", "mtx_trylock", "mtx_unlock", "cnd_signal", "cnd_broadcast", "mtx_timedlock", "cnd_wait",
              "cnd_timedwait"}};
static struct lock_kind reading = {
    .names = {"pthread_rwlock_rdlock", "pthread_rwlock_tryrdlock", "pthread_rwlock_unlock"}};
static struct lock_kind writing = {
    .names = {"pthread_rwlock_wrlock", "pthread_rwlock_trywrlock", "pthread_rwlock_unlock"}};

static const struct lock_kind *found(struct lock_kind *k) {
    if (RARE(!__atomic_load_n(&k->acquire, __ATOMIC_ACQUIRE))) {
        void *at[8] = {0};
        for (int i = 0; i < 8 && k->names[i]; i++) at[i] = dlsym(RTLD_NEXT, k->names[i]);
        k->try = (operation *)at[1];
        k->release = (operation *)at[2];
        k->signal = (operation *)at[3];
        k->broadcast = (operation *)at[4];
        k->timed = (timed_operation *)at[5];
        k->wait = (int (*)(void *, void *))at[6];
        k->timed_wait = (int (*)(void *, void *, const struct timespec *))at[7];
        __atomic_store_n(&k->acquire, (operation *)at[0], __ATOMIC_RELEASE);
    }
    return k;
}

/* ---- locks ---- */

/* The number of times that a fault lets an operation happen; 1 without a fault. */
int epa_times(void) {
    if (!epa_recording()) return 1;
    thread *t = epa_self;
    epa_maybe_yield();
    if (!RARE(t->skip)) return 1;
    int twice = t->skip == 2;
    t->skip = 0;
    return twice ? 2 : 0;
}

enum how { BLOCKING, TRYING, UNTIL };

static int acquire_freely(const struct lock_kind *k, void *lock, enum how how, const struct timespec *until) {
    return how == TRYING ? k->try(lock) : how == UNTIL ? k->timed(lock, until) : k->acquire(lock);
}

static int acquire(const struct lock_kind *k, void *lock, unsigned op, enum how how, const struct timespec *until) {
    int code;
    const struct turn *turn = epa_take_turn(op, TRY_FAILED);
    if (!turn) code = acquire_freely(k, lock, how, until);
    else if (turn->op == TRY_FAILED) code = turn->extra == EOWNERDEAD ? k->try(lock) : (int)turn->extra;
    else if ((code = k->try(lock)) != 0) { /* it was free in the golden run */
        epa_replay_ends("lock");
        turn = NULL;
        code = acquire_freely(k, lock, how, until);
    }
    if (code) NOTE(TRY_FAILED, lock, code);
    else NOTE(op, lock, how != BLOCKING);
    if (turn) epa_pass_turn();
    return code;
}

static int release(const struct lock_kind *k, void *lock, unsigned op) {
    const struct turn *turn = epa_take_turn(op, op);
    NOTE(op, lock, 0);
    int code = k->release(lock);
    if (turn) epa_pass_turn();
    return code;
}

#define ACQUIRE(name, type, kind, op) \
    int name(type *lock) { \
        int code = 0; \
        for (int i = epa_times(); i > 0; i--) code = acquire(found(&kind), lock, op, BLOCKING, NULL); \
        return code; \
    }
#define TRY(name, type, kind, op) \
    int name(type *lock) { return acquire(found(&kind), lock, op, TRYING, NULL); }
#define TIMED(name, type, kind, op) \
    int name(type *restrict lock, const struct timespec *restrict until) { \
        return acquire(found(&kind), lock, op, UNTIL, until); \
    }
#define RELEASE(name, type, kind, op) \
    int name(type *lock) { \
        int code = 0; \
        for (int i = epa_times(); i > 0; i--) code = release(found(&kind), lock, op); \
        return code; \
    }

ACQUIRE(pthread_mutex_lock, pthread_mutex_t, mutex, LOCK)
TRY(pthread_mutex_trylock, pthread_mutex_t, mutex, LOCK)
TIMED(pthread_mutex_timedlock, pthread_mutex_t, mutex, LOCK)
RELEASE(pthread_mutex_unlock, pthread_mutex_t, mutex, UNLOCK)
ACQUIRE(pthread_rwlock_rdlock, pthread_rwlock_t, reading, READ_LOCK)
ACQUIRE(pthread_rwlock_wrlock, pthread_rwlock_t, writing, WRITE_LOCK)
TRY(pthread_rwlock_tryrdlock, pthread_rwlock_t, reading, READ_LOCK)
TRY(pthread_rwlock_trywrlock, pthread_rwlock_t, writing, WRITE_LOCK)
RELEASE(pthread_rwlock_unlock, pthread_rwlock_t, reading, RW_UNLOCK)
ACQUIRE(mtx_lock, mtx_t, c11, LOCK)
TRY(mtx_trylock, mtx_t, c11, LOCK)
TIMED(mtx_timedlock, mtx_t, c11, LOCK)
RELEASE(mtx_unlock, mtx_t, c11, UNLOCK)

/* ---- semaphores: a post is recorded before it happens, a wait after it ---- */

static struct lock_kind semaphore = {
    .names = {"sem_wait", "sem_trywait", "sem_post"}};

static void note_ordered(void *at) {
    NOTE(ORDERED_IN, at, 0);
    NOTE(ORDERED_OUT, at, 0);
}

int sem_post(sem_t *at) {
    const struct lock_kind *k = found(&semaphore);
    const struct turn *turn = epa_take_turn(ORDERED_IN, ORDERED_IN);
    note_ordered(at);
    int code = k->release(at);
    if (turn) epa_pass_turn();
    return code;
}

int sem_wait(sem_t *at) {
    const struct lock_kind *k = found(&semaphore);
    const struct turn *turn = epa_take_turn(ORDERED_IN, TRY_FAILED);
    int code;
    if (!turn) code = k->acquire(at);
    else if (turn->op == TRY_FAILED) {
        code = -1;
        errno = (int)turn->extra;
    } else if ((code = k->try(at)) != 0) {
        epa_replay_ends("lock");
        turn = NULL;
        code = k->acquire(at);
    }
    int error = errno;
    if (code) NOTE(TRY_FAILED, at, error);
    else note_ordered(at);
    if (turn) epa_pass_turn();
    errno = error;
    return code;
}

/* ---- condition variables ---- */

/* Threads that wait for a turn instead of a signal. If replay ends meanwhile, they need the signals of that time. */
struct waiter { void *condition; int signalled; struct waiter *next; };
static struct waiter *waiters; /* the first one waits longest */
static uint32_t waiting;       /* protects the list */

static void join_waiters(struct waiter *me) {
    epa_lock(&waiting);
    struct waiter **at = &waiters;
    while (*at) at = &(*at)->next;
    *at = me;
    epa_unlock(&waiting);
}

/* `woken`: the golden run ended the wait. Then the signal that it used is not one for another thread. */
static void leave_waiters(struct waiter *me, int woken) {
    epa_lock(&waiting);
    for (struct waiter **at = &waiters; *at; at = &(*at)->next)
        if (*at == me) {
            *at = me->next;
            break;
        }
    for (struct waiter *other = waiters; other && woken && !me->signalled; other = other->next)
        if (other->condition == me->condition && other->signalled) {
            other->signalled = 0;
            break;
        }
    epa_unlock(&waiting);
}

/* The number of waiters that got a signal. */
static int signal_waiters(void *condition, int all) {
    int count = 0;
    if (!epa_was_replayed()) return 0;
    epa_lock(&waiting);
    for (struct waiter *w = waiters; w && (all || !count); w = w->next)
        if (w->condition == condition && !w->signalled) {
            __atomic_store_n(&w->signalled, 1, __ATOMIC_RELEASE);
            count++;
        }
    epa_unlock(&waiting);
    return count;
}

static int too_late(const struct timespec *until) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return time.tv_sec > until->tv_sec || (time.tv_sec == until->tv_sec && time.tv_nsec >= until->tv_nsec);
}

/* `late`: the code for a wait that took too long. */
static int wait_for(const struct lock_kind *k, void *condition, void *lock, const struct timespec *until, int late) {
    NOTE(WAIT, condition, lock);
    const struct turn *turn = epa_take_turn(UNLOCK, UNLOCK);
    if (!turn) {
        NOTE(UNLOCK, lock, 0);
        int code = until ? k->timed_wait(condition, lock, until) : k->wait(condition, lock);
        NOTE(LOCK, lock, code);
        return code;
    }
    struct waiter me = {.condition = condition};
    join_waiters(&me);
    NOTE(UNLOCK, lock, 0);
    k->release(lock);
    epa_pass_turn();
    turn = epa_take_turn(LOCK, LOCK);
    int code = 0;
    if (turn && k->try(lock) == 0) code = (int)turn->extra;
    else {
        if (turn) epa_replay_ends("lock");
        turn = NULL;
        k->acquire(lock);
        while (!__atomic_load_n(&me.signalled, __ATOMIC_ACQUIRE)) {
            if (until && too_late(until)) {
                code = late;
                break;
            }
            k->release(lock);
            struct timespec nap = {0, 1000000};
            nanosleep(&nap, NULL);
            k->acquire(lock);
        }
    }
    leave_waiters(&me, turn != NULL);
    NOTE(LOCK, lock, code);
    if (turn) epa_pass_turn();
    return code;
}

static int wake(const struct lock_kind *k, void *condition, int all) {
    NOTE(SIGNAL, condition, all);
    if (signal_waiters(condition, all) && !all) return 0;
    return all ? k->broadcast(condition) : k->signal(condition);
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock) {
    return wait_for(found(&mutex), condition, lock, NULL, 0);
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock, const struct timespec *until) {
    return wait_for(found(&mutex), condition, lock, until, ETIMEDOUT);
}

int pthread_cond_signal(pthread_cond_t *condition) { return wake(found(&mutex), condition, 0); }
int pthread_cond_broadcast(pthread_cond_t *condition) { return wake(found(&mutex), condition, 1); }

int cnd_wait(cnd_t *condition, mtx_t *lock) { return wait_for(found(&c11), condition, lock, NULL, 0); }

int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict lock, const struct timespec *restrict until) {
    return wait_for(found(&c11), condition, lock, until, thrd_timedout);
}

int cnd_signal(cnd_t *condition) { return wake(found(&c11), condition, 0); }
int cnd_broadcast(cnd_t *condition) { return wake(found(&c11), condition, 1); }
