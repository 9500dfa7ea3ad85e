#pragma once
#include <stddef.h>
#define __FILE_defined 1
typedef struct _IO_FILE FILE;
extern FILE *stdin, *stdout, *stderr;
#define EOF (-1)
extern int printf(const char *, ...);
extern int fprintf(FILE *, const char *, ...);
extern int puts(const char *);
extern int putchar(int);
extern int fputs(const char *, FILE *);
extern void perror(const char *);
extern int scanf(const char *, ...);
extern int fscanf(FILE *, const char *, ...);
extern int sscanf(const char *, const char *, ...);
extern int fflush(FILE *);
