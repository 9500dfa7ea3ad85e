#pragma once
#include <sys/types.h>
typedef int clockid_t;
#define __clockid_t_defined 1
#ifndef _STRUCT_TIMESPEC /* the guard of the GNU headers */
#define _STRUCT_TIMESPEC 1
struct timespec { time_t tv_sec; long tv_nsec; };
#endif
#define CLOCK_REALTIME 0
#define CLOCK_MONOTONIC 1
extern time_t time(time_t *);
extern int clock_gettime(clockid_t, struct timespec *);
extern int nanosleep(const struct timespec *, struct timespec *);
