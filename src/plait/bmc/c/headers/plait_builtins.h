/* Included before every program: atomic builtins as calls by name. Every memory order is sequentially consistent. */
#pragma once
/* What the headers of GCC contain, and clang does not know. */
typedef float _Float32;
typedef double _Float64, _Float32x;
typedef long double _Float64x;
typedef __float128 _Float128;
#define __malloc__(...)

int __plait_load(), __plait_store(), __plait_exchange(), __plait_compare_exchange();
int __plait_compare_and_swap(), __plait_bool_compare_and_swap(), __plait_test_and_set(), __plait_clear();
int __plait_fetch_add(), __plait_fetch_sub(), __plait_fetch_and(), __plait_fetch_or(), __plait_fetch_xor();
int __plait_fetch_nand(), __plait_add_fetch(), __plait_sub_fetch(), __plait_and_fetch(), __plait_or_fetch();
int __plait_xor_fetch(), __plait_nand_fetch();

#define __plait_as(p, call) ((__typeof__((void)0, *(p)))call)

#define __atomic_load_n(p, ...) __plait_as(p, __plait_load(p, ##__VA_ARGS__))
#define __atomic_load(p, r, ...) ((void)(*(r) = __plait_as(p, __plait_load(p, ##__VA_ARGS__))))
#define __atomic_store_n(p, v, ...) ((void)__plait_store(p, v, ##__VA_ARGS__))
#define __atomic_store(p, v, ...) ((void)__plait_store(p, *(v), ##__VA_ARGS__))
#define __atomic_exchange_n(p, v, ...) __plait_as(p, __plait_exchange(p, v, ##__VA_ARGS__))
#define __atomic_exchange(p, v, r, ...) ((void)(*(r) = __plait_as(p, __plait_exchange(p, *(v), ##__VA_ARGS__))))
#define __atomic_compare_exchange_n(p, e, v, ...) ((_Bool)__plait_compare_exchange(p, e, v, ##__VA_ARGS__))
#define __atomic_compare_exchange(p, e, v, ...) ((_Bool)__plait_compare_exchange(p, e, *(v), ##__VA_ARGS__))
#define __atomic_fetch_add(p, v, ...) __plait_as(p, __plait_fetch_add(p, v, ##__VA_ARGS__))
#define __atomic_fetch_sub(p, v, ...) __plait_as(p, __plait_fetch_sub(p, v, ##__VA_ARGS__))
#define __atomic_fetch_and(p, v, ...) __plait_as(p, __plait_fetch_and(p, v, ##__VA_ARGS__))
#define __atomic_fetch_or(p, v, ...) __plait_as(p, __plait_fetch_or(p, v, ##__VA_ARGS__))
#define __atomic_fetch_xor(p, v, ...) __plait_as(p, __plait_fetch_xor(p, v, ##__VA_ARGS__))
#define __atomic_fetch_nand(p, v, ...) __plait_as(p, __plait_fetch_nand(p, v, ##__VA_ARGS__))
#define __atomic_add_fetch(p, v, ...) __plait_as(p, __plait_add_fetch(p, v, ##__VA_ARGS__))
#define __atomic_sub_fetch(p, v, ...) __plait_as(p, __plait_sub_fetch(p, v, ##__VA_ARGS__))
#define __atomic_and_fetch(p, v, ...) __plait_as(p, __plait_and_fetch(p, v, ##__VA_ARGS__))
#define __atomic_or_fetch(p, v, ...) __plait_as(p, __plait_or_fetch(p, v, ##__VA_ARGS__))
#define __atomic_xor_fetch(p, v, ...) __plait_as(p, __plait_xor_fetch(p, v, ##__VA_ARGS__))
#define __atomic_nand_fetch(p, v, ...) __plait_as(p, __plait_nand_fetch(p, v, ##__VA_ARGS__))
#define __atomic_test_and_set(p, ...) ((_Bool)__plait_test_and_set(p, ##__VA_ARGS__))
#define __atomic_clear(p, ...) ((void)__plait_clear(p, ##__VA_ARGS__))
#define __atomic_thread_fence(...) ((void)(__VA_ARGS__))
#define __atomic_signal_fence(...) ((void)(__VA_ARGS__))

#define __c11_atomic_init(p, v) ((void)__plait_store(p, v))
#define __c11_atomic_load(p, ...) __plait_as(p, __plait_load(p, ##__VA_ARGS__))
#define __c11_atomic_store(p, v, ...) ((void)__plait_store(p, v, ##__VA_ARGS__))
#define __c11_atomic_exchange(p, v, ...) __plait_as(p, __plait_exchange(p, v, ##__VA_ARGS__))
#define __c11_atomic_compare_exchange_strong(p, e, v, ...) ((_Bool)__plait_compare_exchange(p, e, v, ##__VA_ARGS__))
#define __c11_atomic_compare_exchange_weak(p, e, v, ...) ((_Bool)__plait_compare_exchange(p, e, v, ##__VA_ARGS__))
#define __c11_atomic_fetch_add(p, v, ...) __plait_as(p, __plait_fetch_add(p, v, ##__VA_ARGS__))
#define __c11_atomic_fetch_sub(p, v, ...) __plait_as(p, __plait_fetch_sub(p, v, ##__VA_ARGS__))
#define __c11_atomic_fetch_and(p, v, ...) __plait_as(p, __plait_fetch_and(p, v, ##__VA_ARGS__))
#define __c11_atomic_fetch_or(p, v, ...) __plait_as(p, __plait_fetch_or(p, v, ##__VA_ARGS__))
#define __c11_atomic_fetch_xor(p, v, ...) __plait_as(p, __plait_fetch_xor(p, v, ##__VA_ARGS__))
#define __c11_atomic_thread_fence(...) ((void)(__VA_ARGS__))
#define __c11_atomic_signal_fence(...) ((void)(__VA_ARGS__))

#define __sync_fetch_and_add(p, v, ...) __plait_as(p, __plait_fetch_add(p, v, ##__VA_ARGS__))
#define __sync_fetch_and_sub(p, v, ...) __plait_as(p, __plait_fetch_sub(p, v, ##__VA_ARGS__))
#define __sync_fetch_and_and(p, v, ...) __plait_as(p, __plait_fetch_and(p, v, ##__VA_ARGS__))
#define __sync_fetch_and_or(p, v, ...) __plait_as(p, __plait_fetch_or(p, v, ##__VA_ARGS__))
#define __sync_fetch_and_xor(p, v, ...) __plait_as(p, __plait_fetch_xor(p, v, ##__VA_ARGS__))
#define __sync_fetch_and_nand(p, v, ...) __plait_as(p, __plait_fetch_nand(p, v, ##__VA_ARGS__))
#define __sync_add_and_fetch(p, v, ...) __plait_as(p, __plait_add_fetch(p, v, ##__VA_ARGS__))
#define __sync_sub_and_fetch(p, v, ...) __plait_as(p, __plait_sub_fetch(p, v, ##__VA_ARGS__))
#define __sync_and_and_fetch(p, v, ...) __plait_as(p, __plait_and_fetch(p, v, ##__VA_ARGS__))
#define __sync_or_and_fetch(p, v, ...) __plait_as(p, __plait_or_fetch(p, v, ##__VA_ARGS__))
#define __sync_xor_and_fetch(p, v, ...) __plait_as(p, __plait_xor_fetch(p, v, ##__VA_ARGS__))
#define __sync_nand_and_fetch(p, v, ...) __plait_as(p, __plait_nand_fetch(p, v, ##__VA_ARGS__))
#define __sync_bool_compare_and_swap(p, e, v, ...) ((_Bool)__plait_bool_compare_and_swap(p, e, v, ##__VA_ARGS__))
#define __sync_val_compare_and_swap(p, e, v, ...) __plait_as(p, __plait_compare_and_swap(p, e, v, ##__VA_ARGS__))
#define __sync_lock_test_and_set(p, v, ...) __plait_as(p, __plait_exchange(p, v, ##__VA_ARGS__))
#define __sync_lock_release(p, ...) ((void)__plait_store(p, 0, ##__VA_ARGS__))
#define __sync_synchronize(...) ((void)0)

/* The functions of string.h: a call of strlen without a definition is a call of __plait_strlen. */
static unsigned long __plait_strlen(const char *s) {
  unsigned long n = 0;
  while (s[n]) n++;
  return n;
}
static int __plait_strncmp(const char *a, const char *b, unsigned long most) {
  for (unsigned long n = 0; n < most; n++) {
    unsigned char x = a[n], y = b[n];
    if (x != y) return x < y ? -1 : 1;
    if (!x) break;
  }
  return 0;
}
static int __plait_strcmp(const char *a, const char *b) { return __plait_strncmp(a, b, -1UL); }
static char *__plait_strcpy(char *to, const char *from) {
  unsigned long n = 0;
  while ((to[n] = from[n])) n++;
  return to;
}
static char *__plait_strncpy(char *to, const char *from, unsigned long most) {
  unsigned long n = 0;
  for (; n < most && from[n]; n++) to[n] = from[n];
  for (; n < most; n++) to[n] = 0;
  return to;
}
static char *__plait_strcat(char *to, const char *from) {
  unsigned long n = 0, i = 0;
  while (to[n]) n++;
  while ((to[n++] = from[i++])) {}
  return to;
}
static char *__plait_strchr(const char *s, int c) {
  for (;; s++) {
    if (*s == (char)c) return (char *)s;
    if (!*s) return 0;
  }
}
