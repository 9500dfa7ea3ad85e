#pragma once
#include <stddef.h>
#include <stdint.h>
typedef enum {
  memory_order_relaxed,
  memory_order_consume,
  memory_order_acquire,
  memory_order_release,
  memory_order_acq_rel,
  memory_order_seq_cst
} memory_order;
typedef _Atomic(_Bool) atomic_bool;
typedef _Atomic(char) atomic_char;
typedef _Atomic(signed char) atomic_schar;
typedef _Atomic(unsigned char) atomic_uchar;
typedef _Atomic(short) atomic_short;
typedef _Atomic(unsigned short) atomic_ushort;
typedef _Atomic(int) atomic_int;
typedef _Atomic(unsigned int) atomic_uint;
typedef _Atomic(long) atomic_long;
typedef _Atomic(unsigned long) atomic_ulong;
typedef _Atomic(long long) atomic_llong;
typedef _Atomic(unsigned long long) atomic_ullong;
typedef _Atomic(size_t) atomic_size_t;
typedef _Atomic(ptrdiff_t) atomic_ptrdiff_t;
typedef _Atomic(intptr_t) atomic_intptr_t;
typedef _Atomic(uintptr_t) atomic_uintptr_t;
typedef _Atomic(intmax_t) atomic_intmax_t;
typedef _Atomic(uintmax_t) atomic_uintmax_t;
typedef struct { _Bool __set; } atomic_flag;
#define ATOMIC_FLAG_INIT { 0 }
#define ATOMIC_VAR_INIT(value) (value)
#define kill_dependency(value) (value)
#define atomic_init(p, v) ((void)__plait_store(p, v))
#define atomic_load(p) __plait_as(p, __plait_load(p))
#define atomic_store(p, v) ((void)__plait_store(p, v))
#define atomic_exchange(p, v) __plait_as(p, __plait_exchange(p, v))
#define atomic_compare_exchange_strong(p, e, v) ((_Bool)__plait_compare_exchange(p, e, v))
#define atomic_compare_exchange_weak(p, e, v) ((_Bool)__plait_compare_exchange(p, e, v))
#define atomic_fetch_add(p, v) __plait_as(p, __plait_fetch_add(p, v))
#define atomic_fetch_sub(p, v) __plait_as(p, __plait_fetch_sub(p, v))
#define atomic_fetch_and(p, v) __plait_as(p, __plait_fetch_and(p, v))
#define atomic_fetch_or(p, v) __plait_as(p, __plait_fetch_or(p, v))
#define atomic_fetch_xor(p, v) __plait_as(p, __plait_fetch_xor(p, v))
#define atomic_flag_test_and_set(p) ((_Bool)__plait_test_and_set(p))
#define atomic_flag_clear(p) ((void)__plait_clear(p))
#define atomic_thread_fence(order) ((void)(order))
#define atomic_signal_fence(order) ((void)(order))
#define atomic_is_lock_free(p) ((void)(p), 1)
#define atomic_load_explicit(p, order) __plait_as(p, __plait_load(p, order))
#define atomic_store_explicit(p, v, order) ((void)__plait_store(p, v, order))
#define atomic_exchange_explicit(p, v, order) __plait_as(p, __plait_exchange(p, v, order))
#define atomic_compare_exchange_strong_explicit(p, e, v, yes, no) ((_Bool)__plait_compare_exchange(p, e, v, yes, no))
#define atomic_compare_exchange_weak_explicit(p, e, v, yes, no) ((_Bool)__plait_compare_exchange(p, e, v, yes, no))
#define atomic_fetch_add_explicit(p, v, order) __plait_as(p, __plait_fetch_add(p, v, order))
#define atomic_fetch_sub_explicit(p, v, order) __plait_as(p, __plait_fetch_sub(p, v, order))
#define atomic_fetch_and_explicit(p, v, order) __plait_as(p, __plait_fetch_and(p, v, order))
#define atomic_fetch_or_explicit(p, v, order) __plait_as(p, __plait_fetch_or(p, v, order))
#define atomic_fetch_xor_explicit(p, v, order) __plait_as(p, __plait_fetch_xor(p, v, order))
#define atomic_flag_test_and_set_explicit(p, order) ((_Bool)__plait_test_and_set(p, order))
#define atomic_flag_clear_explicit(p, order) ((void)__plait_clear(p, order))
