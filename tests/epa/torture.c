/* What instrumentation must not break: one of each construct that clang compiles in a way of its own. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <math.h>
#include <stdbool.h>
#include <stdatomic.h>
#include <emmintrin.h>
struct big { long a[6]; double d; };
struct small { int x; float y; };
union u { float f; unsigned i; };
static int sum(int n, ...) { va_list l; va_start(l, n); int s = 0; for (int i = 0; i < n; i++) s += va_arg(l, int); va_end(l); return s; }
static struct big make(long k) { struct big b; memset(&b, 0, sizeof b); for (int i = 0; i < 6; i++) b.a[i] = k * i; b.d = k / 3.0; return b; }
static long use(struct big b) { b.a[0] += 1; return b.a[5] + b.a[0] + (long)b.d; }
static struct small tiny(struct small s) { s.x++; s.y *= 2; return s; }
static int (*table[])(int, ...) = { sum };
static int sw(int k) { switch (k) { case 1: return 10; case 7: return 70; case 100: return 3; default: return -1; } }
static jmp_buf jb;
typedef int (*cmpf)(const void *, const void *);
static int cmp(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
enum e { A, B = 5 };
struct bits { unsigned a : 3, b : 7; signed c : 5; };
int main(int argc, char **argv) {
    printf("%d\n", sum(3, 1, 2, 3) + table[0](2, 4, 5));
    struct big b = make(argc + 4), c = b;
    printf("%ld\n", use(c));
    struct small s = tiny((struct small){3, 1.5f});
    printf("%d %f\n", s.x, s.y);
    long double ld = 1.0L / 3; ld *= argc + 1; printf("%.15Lf\n", ld);
    __int128 w = (__int128)argc << 70; w += 5; printf("%lu\n", (unsigned long)(w >> 64));
    __m128d v = _mm_set_pd(1.0, 2.0); v = _mm_add_pd(v, v); double out[2]; _mm_storeu_pd(out, v); printf("%f %f\n", out[0], out[1]);
    __m128i vi = _mm_set1_epi32(argc); vi = _mm_add_epi32(vi, vi); int o4[4]; _mm_storeu_si128((__m128i *)o4, vi); printf("%d\n", o4[2]);
    unsigned r; __asm__("movl %1, %0\n\taddl $1, %0" : "=r"(r) : "r"(41)); printf("%u\n", r);
    int n = argc + 3; int vla[n]; for (int i = 0; i < n; i++) vla[i] = n - i; qsort(vla, n, sizeof *vla, cmp); printf("%d\n", vla[0]);
    if (setjmp(jb) == 0) longjmp(jb, 1);
    union u uu; uu.f = 1.5f; printf("%x\n", uu.i);
    bool flag = argc > 0 && (sw(7) == 70 || sw(2) == 1); printf("%d %d\n", flag, flag ? sw(100) : sw(1));
    atomic_int at = 3; atomic_fetch_add(&at, 4); int expected = 7; atomic_compare_exchange_strong(&at, &expected, 9); printf("%d\n", at);
    struct bits bf = {5, 100, -3}; bf.b++; printf("%u %u %d\n", bf.a, bf.b, bf.c);
    char *t = strdup("hello"); t = realloc(t, 100); strcat(t, " world"); printf("%s %zu\n", t, strlen(t)); free(t);
    char *str = "abc"; char *end = str + 3; printf("%ld %d\n", (long)(end - str), end > str);
    float complex_ = fmaf(2.0f, 3.0f, 1.0f); printf("%f %d\n", complex_, isnan(sqrt(-1.0)));
    void *lbl[] = { &&one, &&two }; goto *lbl[argc > 1]; one: puts("one"); goto done; two: puts("two"); done:
    printf("%d\n", (int)fabs(-3.5) + B + abs(-4) + (int)(argv[0][0] != 0));
    return 0;
}
