/* Interposed functions of libc that open, rename and remove files. They belong to recorder.c.
 *
 * `files` in the folder of the trace gets an entry for each file: whether the program may write it, the site, the name of a copy
 * of its old content (or -), and its path; a zero byte ends an entry. The copy is made before the file changes. The program is
 * not slowed down by this: it only costs when files are opened. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recorder.h"

#define REAL(type, name, parameters) \
    static type(*real) parameters; \
    if (RARE(!real)) real = (type(*) parameters)dlsym(RTLD_NEXT, #name)

/* Copy a regular file to the folder of the trace, once. Its name, or - if there is no such file. */
static void keep(const char *path, char *name, size_t room) {
    struct stat status;
    snprintf(name, room, "-");
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode)) return;
    snprintf(name, room, "old-%lx-%lx", (unsigned long)status.st_dev, (unsigned long)status.st_ino);
    int from = epa_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    int to = from < 0 ? -1 : epa_openat(epa_folder, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
    char part[1 << 14];
    for (ssize_t n; to >= 0 && (n = read(from, part, sizeof part)) > 0;)
        if (write(to, part, (size_t)n) != n) break;
    if (to >= 0) close(to);
    if (from >= 0) close(from);
}

static void note(int at, const char *path, int writes) {
    int error = errno;
    /* After a fault, the path may be no address: the kernel notices it. */
    if (epa_folder < 0 || (syscall(SYS_faccessat, at, path, F_OK) != 0 && errno == EFAULT) || !*path) {
        errno = error;
        return;
    }
    char place[PATH_MAX + 1] = "", entry[2 * PATH_MAX + 128], old[64] = "-";
    if (path[0] != '/' && at == AT_FDCWD && !getcwd(place, PATH_MAX)) place[0] = 0;
    if (path[0] != '/' && at != AT_FDCWD) {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", at);
        ssize_t n = readlink(link, place, PATH_MAX);
        place[n > 0 ? n : 0] = 0;
    }
    snprintf(entry, PATH_MAX, "%s%s%.*s", place, place[0] ? "/" : "", PATH_MAX / 2, path);
    if (writes) keep(entry, old, sizeof old);
    char whole[3 * PATH_MAX];
    int length = snprintf(whole, sizeof whole, "%c %u %s %s", writes ? 'w' : 'r', epa_self->site, old, entry);
    if (length > 0) epa_append("files", whole, (size_t)length + 1);
    errno = error;
}

static int may_write(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_TRUNC | O_CREAT)); }
static int mode_writes(const char *mode) { return mode && (mode[0] != 'r' || strchr(mode, '+')); }

#define MODE(flags) \
    unsigned mode = 0; \
    if ((flags) & (O_CREAT | O_TMPFILE)) { \
        va_list more; \
        va_start(more, flags); \
        mode = va_arg(more, unsigned); \
        va_end(more); \
    }
#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        REAL(int, name, (const char *, int, ...)); \
        MODE(flags) \
        note(AT_FDCWD, path, may_write(flags)); \
        return real(path, flags, mode); \
    }
#define OPENAT(name) \
    int name(int at, const char *path, int flags, ...) { \
        REAL(int, name, (int, const char *, int, ...)); \
        MODE(flags) \
        note(at, path, may_write(flags)); \
        return real(at, path, flags, mode); \
    }
#define CREAT(name) \
    int name(const char *path, mode_t mode) { \
        REAL(int, name, (const char *, mode_t)); \
        note(AT_FDCWD, path, 1); \
        return real(path, mode); \
    }
#define FOPEN(name) \
    FILE *name(const char *path, const char *mode) { \
        REAL(FILE *, name, (const char *, const char *)); \
        note(AT_FDCWD, path, mode_writes(mode)); \
        return real(path, mode); \
    }
#define FREOPEN(name) \
    FILE *name(const char *path, const char *mode, FILE *stream) { \
        REAL(FILE *, name, (const char *, const char *, FILE *)); \
        note(AT_FDCWD, path, mode_writes(mode)); \
        return real(path, mode, stream); \
    }
#define REMOVE(name) \
    int name(const char *path) { \
        REAL(int, name, (const char *)); \
        note(AT_FDCWD, path, 1); \
        return real(path); \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
CREAT(creat)
CREAT(creat64)
FOPEN(fopen)
FOPEN(fopen64)
FREOPEN(freopen)
FREOPEN(freopen64)
REMOVE(unlink)
REMOVE(remove)

DIR *opendir(const char *path) {
    REAL(DIR *, opendir, (const char *));
    note(AT_FDCWD, path, 0);
    return real(path);
}

int rename(const char *from, const char *to) {
    REAL(int, rename, (const char *, const char *));
    note(AT_FDCWD, from, 1);
    note(AT_FDCWD, to, 1);
    return real(from, to);
}

int truncate(const char *path, off_t length) {
    REAL(int, truncate, (const char *, off_t));
    note(AT_FDCWD, path, 1);
    return real(path, length);
}
