/* One source of difference between runs per mode. The tests check the verdict for each. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

static int counter, found[2], shared_fd, ends[2];
static char names[2][16];
static volatile sig_atomic_t seen;

static void twice(void *(*work)(void *)) {
    pthread_t ids[2];
    for (long i = 0; i < 2; i++) pthread_create(&ids[i], NULL, work, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(ids[i], NULL);
    printf("%d %d\n", found[0], found[1]);
}
static void *adds(void *given) {
    int one = 1;
    __asm__ volatile("lock xaddl %0, %1" : "+r"(one), "+m"(counter)::"memory");
    found[(long)given] = one;
    return NULL;
}
static void *reads(void *given) {
    char byte = 0;
    found[(long)given] = read(shared_fd, &byte, 1) + byte;
    return NULL;
}
static void *writes(void *given) {
    char text[2] = {(char)('a' + (long)given), '\n'};
    found[(long)given] = (int)write(1, text, 2);
    return NULL;
}
static void *opens(void *given) {
    int fd = open("/dev/null", O_RDONLY);
    found[(long)given] = fd;
    return NULL;
}
static void *pipes(void *given) {
    if (given) found[1] = (int)write(ends[1], "x", 1);
    else { char byte = 0; fcntl(ends[0], F_SETFL, O_NONBLOCK); found[0] = (int)read(ends[0], &byte, 1); }
    return NULL;
}
static void *complains(void *given) { fprintf(stderr, "%ld\n", (long)given); return NULL; }
static void *sprints(void *given) { sprintf(names[0], "%ld", (long)given); return NULL; }
static void *copies(void *given) { strcpy(names[0], given ? "one" : "two"); return NULL; }
static void *files(void *given) {
    FILE *file = fopen("chance.out", given ? "a" : "r");
    if (!file) return NULL;
    if (given) fputs("more", file);
    else found[0] = fgetc(file);
    fclose(file);
    return NULL;
}
/* A library function writes what the other thread reads. */
static char *end;
static void *block_of_two;
static FILE *stream;
static double whole;
static int *alive;
static pthread_barrier_t barrier;
#define PAIR(name, one, other) \
    static void *name(void *given) { if (given) { one; } else { other; } return NULL; }
PAIR(parses, strtol("12", &end, 10), found[0] = end != NULL)
PAIR(splits, modf(3.5, &whole), found[0] = (int)whole)
PAIR(aligns, found[1] = posix_memalign(&block_of_two, 64, 64), found[0] = block_of_two != NULL)
PAIR(ends_file, fgetc(stream), found[0] = feof(stream))
PAIR(counts, printf("abc%n\n", &counter), found[0] = counter)
PAIR(frees, free(alive), found[0] = alive[0])
PAIR(calls, counter = 1, void *(*volatile f)(void *, const void *, size_t) = memcpy; f(found, &counter, sizeof counter))
static void own(void) { int local = 3; alive = &local; pthread_barrier_wait(&barrier); }
PAIR(leaves, own(), pthread_barrier_wait(&barrier); found[0] = *alive)
static int c11(void *given) { counter += given ? 1 : 2; found[(long)given] = counter; return 7; }
static void handler(int number) { seen += number; }
static long garbage(void) { volatile long values[16]; return values[5]; }
static int compare_targets(const void *a, const void *b) { return **(int *const *)a - **(int *const *)b; }
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

static void run(const char *mode) {
    int *block = malloc(64), order[4] = {3, 1, 2, 0};
#define MODE(name) if (strcmp(mode, name) == 0)
    MODE("assembly") twice(adds);
    MODE("barrier") { __asm__ volatile("" ::: "memory"); __asm__ volatile("pause"); puts("1"); }
    MODE("tsc") printf("%llu\n", (unsigned long long)__rdtsc());
    MODE("tid") printf("%ld\n", syscall(SYS_gettid));
    MODE("offset") { shared_fd = open("/dev/zero", O_RDONLY); twice(reads); }
    MODE("urandom") { FILE *f = fopen("/dev/urandom", "r"); printf("%d\n", fgetc(f)); fclose(f); }
    MODE("proc") { int fd = open("/proc/self/stat", O_RDONLY); char b[8] = ""; printf("%d\n", (int)read(fd, b, 8) + b[0]); }
    MODE("alarm") { signal(SIGALRM, handler); ualarm(100, 0); while (!seen) continue; printf("%d\n", (int)seen); }
    MODE("raise") { signal(SIGUSR1, handler); raise(SIGUSR1); printf("%d\n", (int)seen); }
    MODE("c11") {
        thrd_t ids[2];
        int code = 0;
        for (long i = 0; i < 2; i++) thrd_create(&ids[i], c11, (void *)i);
        for (int i = 0; i < 2; i++) thrd_join(ids[i], &code);
        printf("%d %d\n", counter, code);
    }
    MODE("c11 in order") {
        thrd_t id;
        int code = 0;
        for (long i = 0; i < 2; i++) { thrd_create(&id, c11, (void *)i); thrd_join(id, &code); }
        printf("%d %d %d\n", found[0], found[1], code);
    }
    MODE("write") twice(writes);
    MODE("open") twice(opens);
    MODE("pipe") { if (pipe(ends) == 0) twice(pipes); }
    MODE("stderr") twice(complains);
    MODE("sprintf") twice(sprints);
    MODE("strcpy") twice(copies);
    MODE("file") { FILE *f = fopen("chance.out", "w"); fputs("a", f); fclose(f); twice(files); remove("chance.out"); }
    MODE("freed") { free(block); printf("%d\n", block[0] + block[1]); block = NULL; }
    MODE("fresh") { free(block); block = malloc(64); printf("%d\n", block[0]); }
    MODE("grown") { block = realloc(block, 4096); printf("%d\n", block[900]); }
    MODE("stack") { puts("some frames"); printf("%ld\n", garbage()); }
    MODE("address") printf("%d %p\n", 1, (void *)block);
    MODE("integer") printf("%lx\n", (unsigned long)block);
    MODE("handle") printf("%lu\n", (unsigned long)pthread_self());
    MODE("end") twice(parses);
    MODE("parts") twice(splits);
    MODE("aligned") { twice(aligns); free(block_of_two); }
    MODE("eof") { stream = fopen("/dev/null", "r"); twice(ends_file); fclose(stream); }
    MODE("count") twice(counts);
    MODE("free") { alive = malloc(64); twice(frees); }
    MODE("memcpy") twice(calls);
    MODE("frame") { pthread_barrier_init(&barrier, NULL, 2); twice(leaves); }
    MODE("byte") { unsigned char *b = (unsigned char *)&block; printf("%d\n", b[2]); }
    MODE("copy") { unsigned char b[8]; memcpy(b, &block, 8); printf("%d\n", b[2]); }
    MODE("union") { union { int *p; double d; } u = {.p = block}; printf("%d\n", u.d > 1e-310); }
    MODE("memcmp") printf("%d\n", memcmp(&block, "abcdef", 6) > 0);
    MODE("sorted") { int *two[2] = {&order[0], &order[1]}; qsort(two, 2, 8, compare_targets); printf("%d\n", ((char *)two)[2]); }
    MODE("grown pointers") { int **p = malloc(16); *p = block; p = realloc(p, 4096); printf("%d\n", ((char *)p)[2]); free(p); }
    MODE("vector") { int *two[2] = {block, order}; __m128i v = _mm_loadu_si128((__m128i *)two); printf("%d\n", _mm_cvtsi128_si32(v)); }
    MODE("handle byte") { pthread_t self = pthread_self(); printf("%d\n", ((unsigned char *)&self)[2]); }
    MODE("fraction") printf("%g\n", (double)(unsigned long)block);
    MODE("wide") { __int128 x = (__int128)(unsigned long)block; x *= 3; printf("%d\n", (int)(x >> 20)); }
    MODE("threshold") printf("%d\n", (unsigned long)block > 0x560000000000ul);
    MODE("remainder") printf("%d\n", (int)((unsigned long)block % 10));
    MODE("bit") printf("%d\n", ((unsigned long)block & 16) != 0);
    MODE("difference") printf("%ld\n", 5 - (long)block);
    MODE("sum") printf("%ld\n", (long)block + (long)order);
    MODE("far") printf("%ld\n", (long)block + 1000000000);
    MODE("addresses at work") { 
        struct { char c; int *p; } one = {1, block}, other = one;
        union { int *p; int i; } both = {.p = block};
        int **old = malloc(64);
        *old = block;
        free(old);
        char *again = malloc(64), *at = again + 3;
        both.i = 5;
        printf("%d %d %d %d\n", other.c, both.i, again[0], (int)(at - again));
        printf("%d %d\n", (int)((unsigned long)again % 16), (long)again > 0 && again != (char *)-1);
        free(again);
    }
    MODE("path") { FILE *f = fopen("../../../../../../../../../../proc/uptime", "r"); printf("%d\n", fgetc(f)); fclose(f); }
    MODE("link") { (void)!symlink("/dev/urandom", "chance.link"); FILE *f = fopen("chance.link", "r"); printf("%d\n", fgetc(f)); fclose(f); }
    MODE("folder") { DIR *d = opendir("/proc/self/fd"); printf("%d\n", readdir(d) != NULL); closedir(d); }
    MODE("free pages") printf("%ld\n", sysconf(_SC_AVPHYS_PAGES));
    MODE("pointer") { int (*volatile f)(void) = getpid; printf("%d\n", f()); }
    MODE("callback") { qsort(order, 4, sizeof *order, compare); printf("%d\n", order[0]); }
    MODE("unknown") printf("%ld\n", a64l("abc"));
    MODE("machine") printf("%d\n", getenv("HOME") != NULL);
    MODE("environment") { extern char **environ; int n = 0; for (char **e = environ; *e; e++) n += strncmp(*e, "EPA_", 4) == 0; printf("%d\n", n); }
    free(block);
}

int main(int count, char **given) {
    run(count > 1 ? given[1] : "");
    return 0;
}
