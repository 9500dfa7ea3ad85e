/* The recorder that `plait epa build` links into a program (Saissi 2019, section 5.4.1, steps 1 and 2).
 *
 * Every thread appends records to its own file through a mapped window, so the recorded part survives a crash.
 * docs/reference/epa.md describes the format. Two rules keep the order correct and the program unchanged:
 *  - Synchronisation (threads, locks, the heap, atomics) takes a number from one global counter: releases before the operation,
 *    acquisitions after it. Other records contain the counter only if it has changed. So the numbers order any two events that
 *    the program orders by synchronisation.
 *  - The recorder allocates nothing from the heap.
 *
 * Environment: EPA_TRACE is the folder to write to (absent: run without recording); EPA_FAULT is ACTION:SITE:THREAD:NTH:VALUE;
 * EPA_YIELD is a seed for random yields; EPA_REPLAY is a file with the order and the results of a golden run (replay.c).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recorder.h"

/* Threads that do not record share this dummy: all their records go to one place, and are never read. */
static thread nobody = {.fd = -1, .uid = UINT32_MAX};
static char nowhere[HALF];

__thread thread *epa_self = &nobody;
uint64_t epa_sequence;
uint32_t epa_fault_site, epa_watch;

static uint32_t uids;
int epa_folder = -1;
static uint64_t yields;
static pthread_key_t key;

static uint32_t fault_call; /* the site where a call is skipped, or where the thread is killed */
static char fault_action[16], fault_thread[512];
static uint64_t fault_nth, fault_value;

extern const char epa_table[] HIDDEN, epa_table_end[] HIDDEN;
struct epa_global { void *address; uint64_t size, id; };
extern struct epa_global __start_epa_globals[] __attribute__((weak)) HIDDEN;
extern struct epa_global __stop_epa_globals[] __attribute__((weak)) HIDDEN;
typedef void (*epa_tls_function)(void);
extern epa_tls_function __start_epa_locals[] __attribute__((weak)) HIDDEN;
extern epa_tls_function __stop_epa_locals[] __attribute__((weak)) HIDDEN;

int epa_recording(void) { return epa_self != &nobody; }

/* ---- files ---- */

/* The end of a half stays free, so that `next` always points into the current half. */
static char *half(thread *t, int which) { return t->halves + which * HALF; }
static int which(thread *t, char *at) { return at >= half(t, 1); }

static void use(thread *t, int now) {
    *(char *volatile *)&t->next = half(t, now);
    t->end = half(t, now) + HALF - 16;
}

/* The maximal number of bytes that a thread records: a faulty run may never end. */
static uint64_t most = UINT64_MAX;

/* Append the current half to the file, and switch to the other one. 0: the disk is full, or the limit is reached. */
static int flush(thread *t) {
    int now = which(t, t->next);
    size_t length = (size_t)(t->next - half(t, now)), written = 0;
    if (t->begin[now] + length > most) return 0;
    while (written < length) {
        off_t at = (off_t)(STATE_BYTES + 2 * HALF + t->begin[now] + written);
        ssize_t n = pwrite(t->fd, half(t, now) + written, length - written, at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return 0;
        written += (size_t)n;
    }
    *(volatile uint64_t *)&t->begin[!now] = t->begin[now] + length;
    use(t, !now);
    return 1;
}

static void say_full(uint32_t uid) {
    char name[64];
    snprintf(name, sizeof name, "full-%u", uid);
    int marker = epa_openat(epa_folder, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    if (marker >= 0) close(marker);
}

/* A full disk ends the recording of a thread, not the program. The identity of the thread is still recorded. */
static void lose(thread *t) {
    say_full(t->uid);
    thread *copy = mmap(NULL, STATE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED) copy = &nobody;
    else *copy = *t;
    close(t->fd);
    munmap(t, STATE_BYTES + 2 * HALF);
    copy->fd = -1;
    copy->next = copy->end = NULL;
    epa_self = copy;
    pthread_setspecific(key, copy == &nobody ? NULL : copy);
}

static char *reserve(uint32_t size) {
    thread *t = epa_self;
    if (!RARE(t->next + size > t->end)) return t->next;
    if (t->fd < 0) return nowhere;
    if (!flush(t)) {
        lose(t);
        return nowhere;
    }
    return t->next;
}

static inline void put(char *at, uint64_t word) { memcpy(at, &word, sizeof word); }

static void commit(char *end) { *(char *volatile *)&epa_self->next = end; }

static void note_sequence(uint64_t now) {
    char *p = reserve(12);
    *(uint32_t *)p = HEAD(SEQ, 0, 0);
    put(p + 4, now);
    commit(p + 12);
    epa_self->seen = now;
}

uint64_t epa_make_room(uint32_t size) {
    uint64_t now = __atomic_load_n(&epa_sequence, __ATOMIC_ACQUIRE);
    if (epa_self->fd >= 0 && now != epa_self->seen) note_sequence(now);
    return (uint64_t)reserve(size);
}

/* A record with three words after the first. */
static void put3(unsigned kind, unsigned detail, uint32_t site, uint64_t a, uint64_t b, uint64_t c) {
    char *p = (char *)epa_make_room(28);
    *(uint32_t *)p = HEAD(kind, detail, site);
    put(p + 4, a);
    put(p + 12, b);
    put(p + 20, c);
    commit(p + 28);
}

/* A record with a sequence number: kind, number, two words. */
void epa_numbered(unsigned kind, unsigned detail, uint64_t a, uint64_t b) {
    char *p = reserve(28);
    uint64_t now = __atomic_add_fetch(&epa_sequence, 1, __ATOMIC_ACQ_REL);
    *(uint32_t *)p = HEAD(kind, detail, epa_self->site);
    put(p + 4, now);
    put(p + 12, a);
    put(p + 20, b);
    commit(p + 28);
    epa_self->seen = now;
}

void epa_maybe_yield(void) {
    thread *t = epa_self;
    if (!yields) return;
    t->random ^= t->random << 13;
    t->random ^= t->random >> 7;
    t->random ^= t->random << 17;
    if (t->random % 8 == 0) sched_yield();
    if (t->random % 61 == 0) usleep((useconds_t)(t->random >> 8) % 200);
}

/* ---- threads ---- */

/* Create and map a file. The window is allocated on the disk now: otherwise a full disk would cause a signal later. */
static thread *open_file(uint32_t uid) {
    char name[64];
    snprintf(name, sizeof name, "thread-%u.bin", uid);
    int fd = epa_openat(epa_folder, name, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0644);
    void *at = MAP_FAILED;
    if (fd >= 0 && posix_fallocate(fd, 0, STATE_BYTES + 2 * HALF) == 0)
        at = mmap(NULL, STATE_BYTES + 2 * HALF, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        if (fd >= 0 && ftruncate(fd, 0) == 0) close(fd);
        say_full(uid);
        at = mmap(NULL, STATE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) return NULL;
        ((thread *)at)->fd = -1;
        return at;
    }
    thread *t = at;
    t->fd = fd;
    t->halves = (char *)at + STATE_BYTES;
    use(t, 0);
    t->magic = MAGIC;
    return t;
}

void epa_begin(const struct start *start) {
    thread *t = open_file(start->uid);
    if (!t) return;
    t->uid = start->uid;
    t->parent = start->parent;
    t->ordinal = start->ordinal;
    strncpy(t->path, start->path, sizeof t->path - 1);
    t->random = (yields + 0x9e3779b97f4a7c15u * (start->uid + 1)) | 1;
    t->here = (epa_fault_site || fault_call) && strcmp(fault_thread, t->path) == 0;
    void *low = NULL; /* read before the thread records, because this allocates memory */
    size_t size = 0;
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        pthread_attr_getstack(&attributes, &low, &size);
        pthread_attr_destroy(&attributes);
    }
    epa_self = t;
    epa_replay_thread(t);
    epa_numbered(SYNC, START, ((uint64_t)t->parent << 32) | t->ordinal, (uint64_t)pthread_self());
    put3(RANGE, 2, 0, (uint64_t)low, size, 0);
    for (epa_tls_function *f = __start_epa_locals; f < __stop_epa_locals; f++) (*f)();
    pthread_setspecific(key, t);
}

int epa_child(struct start *start) {
    thread *t = epa_self;
    start->uid = __atomic_fetch_add(&uids, 1, __ATOMIC_RELAXED);
    start->parent = t->uid;
    start->ordinal = t->children++;
    return snprintf(start->path, sizeof start->path, "%.480s_%u", t->path, start->ordinal);
}

/* `exits`: the whole program ends with this thread. */
static void finish(thread *t, int exits) {
    if (t != epa_self) return;
    epa_replay_ended(t);
    epa_flush_results(t);
    t->site = 0;
    epa_numbered(SYNC, END, (uint64_t)exits, 0);
    t = epa_self;
    epa_self = &nobody;
    if (t->fd < 0) return;
    if (!flush(t)) say_full(t->uid);
    close(t->fd);
    munmap(t, STATE_BYTES + 2 * HALF);
}

static void end_of_thread(void *given) { finish(given, 0); }

/* A child of fork shares the files of its parent: it must not record. */
static void in_child(void) {
    epa_self = &nobody;
    epa_folder = -1;
}

/* Signal handlers are not recorded: a signal can arrive in the middle of a record. */
thread *epa_pause(void) {
    thread *t = epa_self;
    if (t->ordered) epa_leave_ordered(t); /* the handler may never return */
    epa_self = &nobody;
    return t;
}

void epa_resume(thread *t) { epa_self = t; }

/* setjmp has returned, perhaps because a signal handler called longjmp. */
void epa_returned(void) {
    thread *t = pthread_getspecific(key);
    if (!t || epa_self != &nobody) return;
    t->done = 0; /* the interrupted record will never be completed */
    epa_self = t;
}

static int describe_module(struct dl_phdr_info *info, size_t size, void *given) {
    (void)size;
    uint64_t low = UINT64_MAX, high = 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD) {
            uint64_t at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            if (at < low) low = at;
            if (at + info->dlpi_phdr[i].p_memsz > high) high = at + info->dlpi_phdr[i].p_memsz;
        }
    const char *name = strrchr(info->dlpi_name, '/');
    name = name ? name + 1 : info->dlpi_name[0] ? info->dlpi_name : "program";
    if (high) dprintf(*(int *)given, "m %lu %lu %s\n", low, high, name);
    return 0;
}

static void write_all(const char *name, const char *bytes, size_t length) {
    int fd = epa_openat(epa_folder, name, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
    while (fd >= 0 && length) {
        ssize_t n = write(fd, bytes, length);
        if (n <= 0) break;
        bytes += n;
        length -= (size_t)n;
    }
    if (fd >= 0) close(fd);
}

/* Append an entry to a file of the trace, at once. */
void epa_append(const char *name, const char *entry, size_t length) {
    if (epa_folder < 0) return;
    int error = errno, fd = epa_openat(epa_folder, name, O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0644);
    if (fd >= 0) {
        if (write(fd, entry, length) < 0) errno = error;
        close(fd);
    }
    errno = error;
}

static int is(const char *action) { return strcmp(fault_action, action) == 0; }

static void read_fault(const char *plan) {
    unsigned site = 0;
    unsigned long long nth = 0, value = 0;
    if (plan && sscanf(plan, "%15[^:]:%u:%511[^:]:%llu:%llu", fault_action, &site, fault_thread, &nth, &value) == 5) {
        fault_nth = nth;
        fault_value = value;
        int at_call = is("skip") || is("twice") || is("kill");
        *(at_call ? &fault_call : &epa_fault_site) = site;
    }
    epa_watch = fault_call || yields;
}

/* Objects from outside of the program, as globals: argv, envp, the strings of both, and the streams of stdio. */
#define GIVEN 0x40000000ul
#define ENVIRONMENT (GIVEN + 0x100000ul)

static void describe_arguments(int fd, int argc, char **argv, char **envp) {
    int variables = 0;
    while (envp[variables]) variables++;
    dprintf(fd, "g %lu %lu %lu\n", (uint64_t)argv, 8ul * (unsigned)(argc + 1), GIVEN);
    dprintf(fd, "g %lu %lu %lu\n", (uint64_t)envp, 8ul * (unsigned)(variables + 1), GIVEN + 1);
    dprintf(fd, "g %lu %lu %lu\n", (uint64_t)stdin, sizeof *stdin, GIVEN + 2);
    dprintf(fd, "g %lu %lu %lu\n", (uint64_t)stdout, sizeof *stdout, GIVEN + 3);
    for (int i = 0; i < argc; i++)
        dprintf(fd, "g %lu %lu %lu\n", (uint64_t)argv[i], strlen(argv[i]) + 1, GIVEN + 4 + (unsigned)i);
    /* The strings of the environment are one block. Whether it is a part of the stack differs from run to run. */
    const char *last = variables ? envp[variables - 1] : NULL;
    if (last) dprintf(fd, "g %lu %lu %lu\n", (uint64_t)envp[0], (uint64_t)(last - envp[0]) + strlen(last) + 1, ENVIRONMENT);
}

__attribute__((constructor(101))) static void at_start(int argc, char **argv, char **envp) {
    const char *path = getenv("EPA_TRACE"), *seed = getenv("EPA_YIELD"), *enough = getenv("EPA_MOST");
    const char *golden = getenv("EPA_REPLAY");
    if (!path) return;
    epa_folder = epa_openat(AT_FDCWD, path, O_DIRECTORY | O_RDONLY | O_CLOEXEC, 0);
    if (epa_folder < 0) {
        dprintf(2, "epa: cannot open the folder %s of the trace: %s\n", path, strerror(errno));
        _exit(127);
    }
    if (seed) yields = strtoull(seed, NULL, 10) | 1;
    if (enough) most = strtoull(enough, NULL, 10);
    if (golden && !epa_replay_from(golden)) {
        dprintf(2, "epa: cannot replay %s\n", golden);
        _exit(127);
    }
    read_fault(getenv("EPA_FAULT"));
    /* The environment of the program is the same in each run. */
    for (const char **name = (const char *[]){"EPA_TRACE", "EPA_YIELD", "EPA_MOST", "EPA_FAULT", "EPA_REPLAY", NULL}; *name;
         name++)
        unsetenv(*name);
    pthread_key_create(&key, end_of_thread);
    pthread_atfork(NULL, NULL, in_child);
    write_all("table.json", epa_table, (size_t)(epa_table_end - epa_table));
    int fd = epa_openat(epa_folder, "layout.txt", O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
    if (fd >= 0) {
        for (struct epa_global *g = __start_epa_globals; g < __stop_epa_globals; g++)
            dprintf(fd, "g %lu %lu %lu\n", (uint64_t)g->address, g->size, g->id);
        describe_arguments(fd, argc, argv, envp);
        dl_iterate_phdr(describe_module, &fd);
        close(fd);
    }
    struct start main_thread = {.uid = uids++, .parent = UINT32_MAX, .path = "T_0"};
    epa_begin(&main_thread);
}

__attribute__((destructor(101))) static void at_exit(void) {
    if (epa_recording()) finish(epa_self, 1);
}

/* ---- functions that instrumented code calls ---- */

/* Record the injected fault in the state page of the thread. */
static void struck(thread *t, uint32_t site, uint64_t record, uint64_t before, uint64_t after, enum strike how) {
    if (t->fd < 0 || t->fault.struck) return;
    int now = which(t, (char *)record);
    t->fault.at = t->begin[now] + (uint64_t)((char *)record - half(t, now));
    t->fault.before = before;
    t->fault.after = after;
    t->fault.site = site;
    t->fault.bits = fault_value;
    t->fault.struck = how;
}

/* Flip bits of a byte in memory. The kernel writes to memory that the program may only read, and does not crash elsewhere. */
static void poke(uint64_t address, uint8_t mask) {
    int memory = epa_openat(AT_FDCWD, "/proc/self/mem", O_RDWR | O_CLOEXEC, 0);
    uint8_t byte;
    if (memory >= 0 && pread(memory, &byte, 1, (off_t)address) == 1) {
        byte ^= mask;
        (void)!pwrite(memory, &byte, 1, (off_t)address);
    }
    if (memory >= 0) close(memory);
}

static uint64_t corrupted(uint64_t value) {
    uint64_t v = fault_value;
    if (is("xor")) return value ^ v;
    if (is("or")) return value | v;
    if (is("clear")) return value & ~v;
    if (is("set")) return v;
    if (is("add")) return value + v;
    if (is("divide")) return v ? value / v : 0;
    return value;
}

uint64_t epa_inject(uint32_t site, uint64_t record, uint64_t value) {
    thread *t = epa_self;
    uint64_t before = value, stale = t->stale;
    t->stale = value;
    /* A stuck bit stays as it is in all later executions, too. */
    enum strike how = is("stuck1") ? ONES : is("stuck0") ? ZEROS : SINGLE;
    if (!t->here || (how == SINGLE ? t->nth != fault_nth : t->nth < fault_nth)) {
        t->nth++;
        return value;
    }
    t->nth++;
    uint64_t v = fault_value;
    if (how == ONES) value |= v;
    else if (how == ZEROS) value &= ~v;
    else value = corrupted(value);
    if (is("stale")) value = stale;
    else if (is("poke")) poke(value, (uint8_t)v);
    else if (is("fail")) { /* a failed call: NULL, or -1 in its width, and errno */
        uint32_t bits = (uint32_t)(v >> 32);
        value = bits ? UINT64_MAX >> (64 - bits) : 0;
        errno = (int)(uint32_t)v;
    }
    struck(t, site, record, before, value, how);
    return value;
}

/* The value of a store. If the store is skipped, the memory keeps its content. The kernel reads it: if the address is wrong,
 * the program fails, not the recorder. */
uint64_t epa_inject_store(uint32_t site, uint64_t record, uint64_t address, uint32_t size, uint64_t value) {
    thread *t = epa_self;
    if (!t->here || t->nth++ != fault_nth) return value;
    uint64_t before = value, old = 0;
    if (is("stale")) {
        int memory = epa_openat(AT_FDCWD, "/proc/self/mem", O_RDONLY | O_CLOEXEC, 0);
        if (memory >= 0 && pread(memory, &old, size, (off_t)address) == (ssize_t)size) value = old;
        if (memory >= 0) close(memory);
    } else {
        value = corrupted(value);
    }
    struck(t, site, record, before, value, STORED);
    return value;
}

/* Before a call, if calls are watched: "skip", "twice" and "kill" faults are injected here. */
void epa_called(uint32_t site, uint64_t record) {
    thread *t = epa_self;
    if (t == &nobody) return;
    if (site == fault_call && t->here && t->nth++ == fault_nth) {
        struck(t, site, record, 0, 0, SINGLE);
        if (is("kill")) pthread_exit(NULL); /* kill the thread */
        t->skip = is("twice") ? 2 : 1;      /* perform the called operation twice, or skip it */
    }
    epa_maybe_yield();
}

/* Memory that an external function reads (0) or writes (1), or a thread-local variable (3). */
void epa_range(uint32_t site, uint32_t access, uint64_t address, uint64_t length) {
    if ((address && length) || access >= 2) put3(RANGE, access, site, address, length, 0);
}

void epa_string(uint32_t site, uint32_t access, uint64_t address) {
    if (address) put3(RANGE, access, site, address, strlen((const char *)address) + 1, 0);
}

void epa_copy(uint32_t site, uint64_t to, uint64_t from, uint64_t length) {
    if (length) put3(COPY, 0, site, to, from, length);
}

/* Files are numbered by device and inode. The offset of a descriptor and the table of descriptors have numbers of their own. */
#define OFFSET_OF(fd) ((1ull << 63) | (uint32_t)(fd))
#define TABLE ((1ull << 63) | (1ull << 32))

static void touch_file(int fd, int writes) {
    struct stat status;
    if (!epa_recording() || fstat(fd, &status) != 0 || S_ISCHR(status.st_mode)) return;
    /* What is read from a pipe or a socket is gone. */
    int changes = writes || !S_ISREG(status.st_mode);
    uint64_t number = ((uint64_t)status.st_dev * 0x9e3779b97f4a7c15u ^ status.st_ino) & ~(1ull << 63);
    epa_numbered(SYNC, changes ? FILE_WRITE : FILE_READ, number, (uint64_t)fd);
}

/* A stream of stdio: every use counts as a write to the stream, and to its file. stderr has no buffer: only its offset counts. */
void epa_stream(uint32_t site, uint64_t stream) {
    extern char _ZSt4cout[] __attribute__((weak)), _ZSt4cerr[] __attribute__((weak)), _ZSt4clog[] __attribute__((weak));
    extern char _ZSt3cin[] __attribute__((weak));
    if (stream == (uint64_t)_ZSt4cout) stream = (uint64_t)stdout;
    if (stream == (uint64_t)_ZSt3cin) stream = (uint64_t)stdin;
    if (stream == (uint64_t)_ZSt4cerr || stream == (uint64_t)_ZSt4clog) stream = (uint64_t)stderr;
    if (!stream || !epa_recording()) return;
    if (stream == (uint64_t)stderr) epa_numbered(SYNC, FILE_WRITE, OFFSET_OF(2), 2);
    else put3(RANGE, 1, site, stream, 1, 0);
    if (stream == (uint64_t)stdout) touch_file(1, 1);
}

void epa_stdout(uint32_t site) { epa_stream(site, (uint64_t)stdout); }
void epa_stderr(uint32_t site) { epa_stream(site, (uint64_t)stderr); }
void epa_stdin(uint32_t site) { epa_stream(site, (uint64_t)stdin); }

/* A stream of stdio whose file other streams and descriptors may use too. */
void epa_file(uint32_t site, uint32_t writes, uint64_t stream) {
    epa_stream(site, stream);
    if (stream && stream != (uint64_t)stdout && stream != (uint64_t)stderr) touch_file(fileno((FILE *)stream), (int)writes);
}

/* A descriptor: reads and writes move its offset, except for those with a position (2). */
void epa_descriptor(uint32_t site, uint32_t how, uint64_t fd) {
    (void)site;
    if (!epa_recording()) return;
    if (how < 2) epa_numbered(SYNC, FILE_WRITE, OFFSET_OF(fd), fd);
    touch_file((int)fd, how & 1);
}

/* The table of descriptors: who opens a file first gets the smaller number. */
void epa_descriptors(uint32_t site, uint32_t writes) {
    (void)site;
    if (epa_recording()) epa_numbered(SYNC, writes ? FILE_WRITE : FILE_READ, TABLE, 0);
}

/* The conversion of an argument after the format of printf or scanf: its letter, or 0. `most`: the precision, if it is given. */
static char conversion(const char *at, uint64_t index, int scans, size_t *most) {
    for (uint64_t count = 0; at && (at = strchr(at, '%'));) {
        int omitted = 0;
        *most = SIZE_MAX;
        for (at++; *at && strchr("-+ #0123456789.*'hlLqjzt", *at); at++) {
            if (*at == '*' && !scans && count++ == index) return '*';
            if (*at == '*') omitted = scans;
            if (*at == '.') *most = strtoul(at + 1, NULL, 10);
        }
        char letter = *at;
        if (letter == '[') {
            at += 1 + (at[1] == '^');
            at += *at == ']' ? 1 : 0;
            while (*at && *at != ']') at++;
        }
        if (*at) at++;
        if (letter == '%' || omitted || (letter == 'm' && !scans)) continue;
        if (count++ == index) return letter;
    }
    return 0;
}

/* An argument of printf: a string is read, and an address must not be printed. */
void epa_printed(uint32_t site, uint64_t format, uint64_t index, uint64_t value) {
    size_t most;
    char letter = format ? conversion((const char *)format, index, 0, &most) : 0;
    if (letter == 'n' && value) put3(RANGE, 1, site, value, 8, 0);
    if (letter == 'p') put3(RANGE, 4, site, value, 0, 0);
    if (letter == 's' && value) put3(RANGE, 0, site, value, strnlen((const char *)value, most) + 1, 0);
}

/* An argument of scanf: it is written. */
void epa_scanned(uint32_t site, uint64_t format, uint64_t index, uint64_t value) {
    size_t most;
    char letter = format ? conversion((const char *)format, index, 1, &most) : 0;
    if (!letter || !value) return;
    int text = letter == 's' || letter == '[';
    put3(RANGE, 1, site, value, text ? strlen((const char *)value) + 1 : 8, 0);
}
