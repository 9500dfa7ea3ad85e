#pragma once
#include <stddef.h>
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX 2147483647
extern void *malloc(size_t);
extern void *calloc(size_t, size_t);
extern void *realloc(void *, size_t);
extern void free(void *);
extern void abort(void) __attribute__((noreturn));
extern void exit(int) __attribute__((noreturn));
extern void _Exit(int) __attribute__((noreturn));
extern int atexit(void (*)(void));
extern int rand(void);
extern void srand(unsigned int);
extern int abs(int);
extern long labs(long);
extern int atoi(const char *);
extern long atol(const char *);
extern long long atoll(const char *);
extern long strtol(const char *, char **, int);
extern unsigned long strtoul(const char *, char **, int);
extern long long strtoll(const char *, char **, int);
extern char *getenv(const char *);
