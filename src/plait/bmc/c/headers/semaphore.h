#pragma once
#include <time.h>
typedef struct { int __value; } sem_t;
extern int sem_init(sem_t *, int, unsigned int);
extern int sem_destroy(sem_t *);
extern int sem_wait(sem_t *);
extern int sem_trywait(sem_t *);
extern int sem_timedwait(sem_t *, const struct timespec *);
extern int sem_post(sem_t *);
extern int sem_getvalue(sem_t *, int *);
