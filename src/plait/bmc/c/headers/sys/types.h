#pragma once
#include <stddef.h>
typedef long ssize_t, off_t, time_t, suseconds_t;
typedef int pid_t;
typedef unsigned int uid_t, gid_t, mode_t, useconds_t;
typedef unsigned int __socklen_t;
