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
 * EPA_YIELD is a seed for random yields.
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
static int folder = -1;
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
    int marker = openat(folder, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
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
    int fd = openat(folder, name, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0644);
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
static void in_child(void) { epa_self = &nobody; }

/* Signal handlers are not recorded: a signal can arrive in the middle of a record. */
thread *epa_pause(void) {
    thread *t = epa_self;
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
    int fd = openat(folder, name, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
    while (fd >= 0 && length) {
        ssize_t n = write(fd, bytes, length);
        if (n <= 0) break;
        bytes += n;
        length -= (size_t)n;
    }
    if (fd >= 0) close(fd);
}

static void read_fault(const char *plan) {
    unsigned site = 0;
    unsigned long long nth = 0, value = 0;
    if (plan && sscanf(plan, "%15[^:]:%u:%511[^:]:%llu:%llu", fault_action, &site, fault_thread, &nth, &value) == 5) {
        fault_nth = nth;
        fault_value = value;
        int at_call = fault_action[0] == 's' || fault_action[0] == 'k';
        *(at_call ? &fault_call : &epa_fault_site) = site;
    }
    epa_watch = fault_call || yields;
}

/* Objects from outside of the program, as globals: argv, envp, the strings of argv, and the streams of stdio. */
#define GIVEN 0x40000000ul

static void describe_arguments(int fd, int argc, char **argv, char **envp) {
    int variables = 0;
    while (envp[variables]) variables++;
    dprintf(fd, "g %lu %lu %lu\n", (uint64_t)argv, 8ul * (unsigned)(argc + 1), GIVEN);
    dprintf(fd, "g %lu %lu %lu\n", (uint64_t)envp, 8ul * (unsigned)(variables + 1), GIVEN + 1);
    dprintf(fd, "g %lu %lu %lu\n", (uint64_t)stdin, sizeof *stdin, GIVEN + 2);
    dprintf(fd, "g %lu %lu %lu\n", (uint64_t)stdout, sizeof *stdout, GIVEN + 3);
    for (int i = 0; i < argc; i++)
        dprintf(fd, "g %lu %lu %lu\n", (uint64_t)argv[i], strlen(argv[i]) + 1, GIVEN + 4 + (unsigned)i);
}

__attribute__((constructor(101))) static void at_start(int argc, char **argv, char **envp) {
    const char *path = getenv("EPA_TRACE"), *seed = getenv("EPA_YIELD"), *enough = getenv("EPA_MOST");
    if (!path) return;
    folder = open(path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    if (folder < 0) {
        dprintf(2, "epa: cannot open the folder %s of the trace: %s\n", path, strerror(errno));
        _exit(127);
    }
    if (seed) yields = strtoull(seed, NULL, 10) | 1;
    if (enough) most = strtoull(enough, NULL, 10);
    read_fault(getenv("EPA_FAULT"));
    pthread_key_create(&key, end_of_thread);
    pthread_atfork(NULL, NULL, in_child);
    write_all("table.json", epa_table, (size_t)(epa_table_end - epa_table));
    int fd = openat(folder, "layout.txt", O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
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
static void struck(thread *t, uint32_t site, uint64_t record, uint64_t before, uint64_t after) {
    if (t->fd < 0) return;
    int now = which(t, (char *)record);
    t->fault.at = t->begin[now] + (uint64_t)((char *)record - half(t, now));
    t->fault.before = before;
    t->fault.after = after;
    t->fault.site = site;
    t->fault.struck = 1;
}

uint64_t epa_inject(uint32_t site, uint64_t record, uint64_t value) {
    thread *t = epa_self;
    if (!t->here || t->nth++ != fault_nth) return value;
    uint64_t before = value;
    switch (fault_action[0]) {
    case 'x': value ^= fault_value; break; /* xor */
    case 'a': value += fault_value; break; /* add */
    case 'm': value = fault_value ? value / fault_value : 0; break; /* minify: divide */
    default: break;
    }
    struck(t, site, record, before, value);
    return value;
}

/* Before a call, if calls are watched: "skip" and "kill" faults are injected here. */
void epa_called(uint32_t site, uint64_t record) {
    thread *t = epa_self;
    if (t == &nobody) return;
    if (site == fault_call && t->here && t->nth++ == fault_nth) {
        struck(t, site, record, 0, 0);
        if (fault_action[0] == 'k') pthread_exit(NULL); /* kill the thread */
        t->skip = 1;                                    /* skip the called operation */
    }
    epa_maybe_yield();
}

/* Memory that an external function reads (0) or writes (1), or a thread-local variable (3). */
void epa_range(uint32_t site, uint32_t access, uint64_t address, uint64_t length) {
    if (length || access >= 2) put3(RANGE, access, site, address, length, 0);
}

void epa_string(uint32_t site, uint32_t access, uint64_t address) {
    if (address) put3(RANGE, access, site, address, strlen((const char *)address) + 1, 0);
}

void epa_copy(uint32_t site, uint64_t to, uint64_t from, uint64_t length) {
    if (length) put3(COPY, 0, site, to, from, length);
}

/* A stream of stdio: every use counts as a write. stderr is ignored, because comparisons do not use it. */
void epa_stream(uint32_t site, uint64_t stream) {
    if (stream && stream != (uint64_t)stderr) put3(RANGE, 1, site, stream, 1, 0);
}

void epa_stdout(uint32_t site) { epa_stream(site, (uint64_t)stdout); }

/* An atomic access takes a sequence number. */
void epa_atomic(void) {
    uint64_t now = __atomic_add_fetch(&epa_sequence, 1, __ATOMIC_ACQ_REL);
    if (epa_self->fd >= 0) note_sequence(now);
}
