#pragma once
/* Headers of the system, such as signal.h, take the types of threads from a file of this name. */
#define _BITS_PTHREADTYPES_COMMON_H 1
union pthread_attr_t { int __value; };
#ifndef __have_pthread_attr_t
#define __have_pthread_attr_t 1
typedef union pthread_attr_t pthread_attr_t;
#endif
typedef unsigned long pthread_t;
typedef struct { int __kind; } pthread_mutex_t, pthread_cond_t, pthread_rwlock_t, pthread_barrier_t;
typedef struct { int __value; } pthread_mutexattr_t, pthread_condattr_t, pthread_rwlockattr_t;
typedef struct { int __value; } pthread_barrierattr_t;
typedef volatile int pthread_spinlock_t;
typedef int pthread_once_t;
