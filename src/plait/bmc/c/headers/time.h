#pragma once
#include <sys/types.h>
typedef int clockid_t;
struct timespec { time_t tv_sec; long tv_nsec; };
#define CLOCK_REALTIME 0
#define CLOCK_MONOTONIC 1
extern time_t time(time_t *);
extern int clock_gettime(clockid_t, struct timespec *);
extern int nanosleep(const struct timespec *, struct timespec *);
