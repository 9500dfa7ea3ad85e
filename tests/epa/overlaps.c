/* Two sections of one lock, two of another, and each must overlap each of the other lock: this cannot be, unless one of the
 * eight conditions is missing. The missing one is that B2 begins before A1 ends: the question is whether it could. Nothing
 * says at once that it cannot: both orders of either lock must be tried. A semaphore makes this run go well, and is no
 * synchronisation that the check knows of. -DFEASIBLE leaves out another condition. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

enum { A1, A2, B1, B2 };
static const int edges[][2] = {
    {A1, B1}, {A2, B1}, {A2, B2}, {B1, A1}, {B1, A2}, {B2, A2},
#ifndef FEASIBLE
    {A1, B2},
#endif
};
enum { COUNT = sizeof edges / sizeof *edges };
static pthread_mutex_t locks[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_barrier_t begun[COUNT];
static pthread_t helpers[COUNT];
static sem_t inside[2];
static int shared;

static void *help(void *given) {
    pthread_barrier_wait(&begun[(long)given]);
    return NULL;
}

static void *section(void *given) {
    int me = (int)(long)given;
    if (me == A2 || me == B2) sem_wait(&inside[me == B2]);
    pthread_mutex_lock(&locks[me >= B1]);
    if (me == B2) shared = 2;
    if (me == A1 || me == B1) sem_post(&inside[me == B1]);
    for (int i = 0; i < COUNT; i++)
        if (edges[i][0] == me) pthread_barrier_wait(&begun[i]);
    for (int i = 0; i < COUNT; i++)
        if (edges[i][1] == me) pthread_join(helpers[i], NULL);
    if (me == A1) shared = 1;
    pthread_mutex_unlock(&locks[me >= B1]);
    return NULL;
}

int main(void) {
    pthread_t ids[4];
    for (int i = 0; i < 2; i++)
        if (sem_init(&inside[i], 0, 0)) return 1;
    for (long i = 0; i < COUNT; i++) {
        pthread_barrier_init(&begun[i], NULL, 2);
        pthread_create(&helpers[i], NULL, help, (void *)i);
    }
    for (long i = 0; i < 4; i++) pthread_create(&ids[i], NULL, section, (void *)i);
    for (int i = 0; i < 4; i++) pthread_join(ids[i], NULL);
    printf("%d\n", shared);
    return 0;
}
