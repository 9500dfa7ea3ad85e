#pragma once
#include <stddef.h>
typedef struct __plait_file FILE;
extern FILE *stdin, *stdout, *stderr;
#define EOF (-1)
extern int printf(const char *, ...);
extern int fprintf(FILE *, const char *, ...);
extern int puts(const char *);
extern int putchar(int);
extern int fputs(const char *, FILE *);
extern void perror(const char *);
extern int fflush(FILE *);
