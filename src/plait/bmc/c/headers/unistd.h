#pragma once
#include <sys/types.h>
extern unsigned int sleep(unsigned int);
extern int usleep(useconds_t);
extern void _exit(int) __attribute__((noreturn));
extern pid_t getpid(void);
