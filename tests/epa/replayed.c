/* One source of chance per mode that replay repeats, and modes in which replay must end. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

enum { THREADS = 3, ROUNDS = 4 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t both = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static mtx_t plain;
static sem_t permits;
static cnd_t news;
static int order[THREADS * ROUNDS], used, plain_race;
static atomic_int tickets, baton;
static int shared_fd;

static void note(long id) { order[used++] = (int)id; }

static void *locks(void *id) {
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&lock);
        note((long)id);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}
static void *tries(void *id) {
    for (int i = 0; i < ROUNDS; i++)
        if (pthread_mutex_trylock(&lock) == 0) {
            note((long)id);
            usleep(100);
            pthread_mutex_unlock(&lock);
        } else usleep(50);
    return NULL;
}
static void *reads_and_writes(void *id) {
    for (int i = 0; i < ROUNDS; i++) {
        pthread_rwlock_rdlock(&both);
        int seen = used;
        pthread_rwlock_unlock(&both);
        if (seen >= THREADS * ROUNDS) break;
        pthread_rwlock_wrlock(&both);
        note((long)id * 100 + seen);
        pthread_rwlock_unlock(&both);
    }
    return NULL;
}
/* A barrier of a lock and a condition variable; as in SPLASH, it trusts each wake-up. */
static void *meets(void *id) {
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&lock);
        note((long)id);
        if (used % THREADS == 0) pthread_cond_broadcast(&changed);
        else pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}
static void *waits_until(void *id) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 1000000;
    if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
    pthread_mutex_lock(&lock);
    int code = 0;
    if (id) code = pthread_cond_timedwait(&changed, &lock, &until);
    else pthread_cond_signal(&changed);
    note((long)id * 1000 + code);
    pthread_mutex_unlock(&lock);
    return NULL;
}
static void *c11(void *id) {
    mtx_lock(&plain);
    note((long)id);
    if (used < THREADS) cnd_wait(&news, &plain);
    else cnd_broadcast(&news);
    mtx_unlock(&plain);
    return NULL;
}
static void *permitted(void *id) { /* the semaphore is the lock */
    for (int i = 0; i < ROUNDS; i++) {
        sem_wait(&permits);
        note((long)id);
        sem_post(&permits);
    }
    return NULL;
}
static void *counts(void *id) {
    for (int i = 0; i < ROUNDS; i++) order[atomic_fetch_add(&tickets, 1)] = (int)(long)id;
    return NULL;
}
static void *passes(void *id) { /* spins until it has the baton, which orders accesses to `order` */
    while (atomic_load(&baton) != (int)(long)id) sched_yield();
    note((long)id);
    atomic_store(&baton, (int)(long)id + 1);
    return NULL;
}
static void *prints(void *id) {
    for (int i = 0; i < ROUNDS; i++) printf("%ld says %d\n", (long)id, i);
    return NULL;
}
static void *shares(void *id) {
    char byte = 0;
    for (int i = 0; i < ROUNDS; i++) order[(long)id * ROUNDS + i] = read(shared_fd, &byte, 1) == 1 ? byte : -1;
    return NULL;
}
static void *chosen(void *id) {
    order[(long)id] = pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD;
    return NULL;
}
static void *draws(void *id) {
    for (int i = 0; i < ROUNDS; i++) order[(long)id * ROUNDS + i] = rand() % 1000;
    return NULL;
}
static void *races(void *id) {
    plain_race = (int)(long)id;
    return locks(id);
}

static void all(void *(*work)(void *)) {
    pthread_t ids[THREADS];
    for (long i = 0; i < THREADS; i++) pthread_create(&ids[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(ids[i], NULL);
    for (int i = 0; i < THREADS * ROUNDS; i++) printf("%d ", order[i]);
    printf("\n");
}

static void results(void) {
    struct timeval day;
    struct timespec mono;
    struct stat status;
    unsigned char bytes[8];
    time_t now;
    gettimeofday(&day, NULL);
    clock_gettime(CLOCK_MONOTONIC, &mono);
    time(&now);
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) return;
    srand((unsigned)day.tv_usec);
    srand48(mono.tv_nsec);
    stat("/tmp", &status);
    printf("%ld %ld %ld %d %d\n", (long)day.tv_usec, mono.tv_nsec, (long)now, bytes[0], bytes[7]);
    printf("%d %ld %f %ld\n", rand(), lrand48(), drand48(), (long)clock());
    printf("%d %d %ld %lu\n", getpid(), gettid(), (long)status.st_mtim.tv_nsec, (unsigned long)__rdtsc());
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    struct { const char *name; void *(*work)(void *); } modes[] = {
        {"locks", locks}, {"tries", tries}, {"rwlock", reads_and_writes}, {"condition", meets}, {"timed", waits_until},
        {"c11", c11}, {"atomics", counts}, {"baton", passes}, {"stdout", prints}, {"offset", shares},
        {"semaphore", permitted}, {"barrier", chosen}, {"rand", draws}, {"race", races},
    };
    pthread_barrier_init(&barrier, NULL, THREADS);
    mtx_init(&plain, mtx_plain);
    sem_init(&permits, 0, 1);
    cnd_init(&news);
    if (!strcmp(mode, "results")) results();
    if (!strcmp(mode, "offset")) {
        shared_fd = open("input.txt", O_RDONLY);
        if (shared_fd < 0) return 2;
    }
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (!strcmp(mode, modes[i].name)) all(modes[i].work);
    return 0;
}
