"""Small programs with one trap each: the verdict is right, and what is called comparable is equal when it runs again."""

from __future__ import annotations

import signal

import pytest

from plait.epa.reversibility import check
from tests.epa.conftest import Record
from tests.epa.listings import HEAD, lines

TWO = """
int main(void) {
    pthread_t ids[2];
    for (long i = 0; i < 2; i++) pthread_create(&ids[i], NULL, work, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(ids[i], NULL);
    printf("%d %d\\n", found[0], found[1]);
    return 0;
}
"""
EXIT_FIRST = """
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *given) { pthread_mutex_lock(&gate); pthread_mutex_unlock(&gate); return given; }
int main(void) {
    pthread_t id;
    pthread_create(&id, NULL, work, NULL);
    pthread_detach(id);
    usleep(20000);
    return 0;
}
"""

REFUSED = {
    "a hash of an address": (
        "int main(void) { int *p = malloc(4); printf(\"%lu\\n\", ((unsigned long)p * 31) % 97); free(p); return 0; }\n",
        "local determinism", "arithmetic on addresses",
    ),
    "an order of addresses": (
        "int main(void) { char *a = malloc(40), *b = malloc(4000); puts(a < b ? \"less\" : \"more\"); return 0; }\n",
        "local determinism", "arithmetic on addresses",
    ),
    "a hidden state": (
        "static char text[2][8] = {\"a b c\", \"d e f\"};\nstatic int found[2];\n"
        "static void *work(void *given) {\n    long me = (long)given;\n"
        "    for (char *p = strtok(text[me], \" \"); p; p = strtok(NULL, \" \")) found[me]++;\n    return NULL;\n}\n" + TWO,
        "local determinism", "strtok, whose state threads share",
    ),
    "a number of a process": (
        "int main(void) { int id = fork(); if (id == 0) _exit(0); printf(\"%d\\n\", id % 7); return 0; }\n",
        "local determinism", "fork",
    ),
    "an order of lines": (
        "static int found[2];\nstatic void *work(void *given) { printf(\"%ld\\n\", (long)given); return NULL; }\n" + TWO,
        "reversibility", "both access stdout",
    ),
    "an exit that does not wait": (EXIT_FIRST, "all threads end", "T_0_0: not joined before the program ends"),
    "an exit before a thread begins": (
        "static void *work(void *given) { for (;;) pause(); return given; }\n"
        "int main(void) { pthread_t id; pthread_create(&id, NULL, work, NULL); return 0; }\n",
        "all threads end", "T_0_0: not joined before the program ends",
    ),
    "who is chosen at a barrier": (
        "static pthread_barrier_t barrier;\nstatic int found[2];\n__attribute__((constructor)) static void set(void)"
        " { pthread_barrier_init(&barrier, NULL, 2); }\nstatic void *work(void *given) {\n"
        "    found[(long)given] = pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD;\n    return NULL;\n}\n"
        + TWO,
        "local determinism", "pthread_barrier_wait",
    ),
    "a thread that is cancelled": (
        "static int found[2];\nstatic void *work(void *given) { for (;;) { found[0]++; usleep(50); } return given; }\n"
        "int main(void) {\n    pthread_t id;\n    pthread_create(&id, NULL, work, NULL);\n    usleep(2000);\n"
        "    pthread_cancel(id);\n    pthread_join(id, NULL);\n    return 0;\n}\n",
        "local determinism", "pthread_cancel",
    ),
    "an atomic counter": (
        "static int next, found[2];\nstatic void *work(void *given) {\n"
        "    found[__atomic_fetch_add(&next, 1, __ATOMIC_SEQ_CST)] = (int)(long)given;\n    return NULL;\n}\n" + TWO,
        "reversibility", "both access next",
    ),
}  # fmt: skip

ACCEPTED = {
    "differences and alignment of addresses": """
static int found[2];
static void *work(void *given) {
    int *block = malloc(64), local[4] = {0};
    found[(long)given] = (int)(&block[9] - &block[2]) + (int)((unsigned long)block & 7) + (&local[3] > &local[1]);
    free(block);
    return NULL;
}
""" + TWO,
    "once, before all others": """
static pthread_once_t control = PTHREAD_ONCE_INIT;
static int value, found[2];
static void set(void) { value = 3; }
static void *work(void *given) { pthread_once(&control, set); found[(long)given] = value; return NULL; }
__attribute__((constructor)) static void early(void) { pthread_once(&control, set); }
""" + TWO,
    "a recursive mutex": """
static pthread_mutex_t lock;
static int found[2];
__attribute__((constructor)) static void init(void) {
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &kind);
}
static void add(int n, long me) {
    pthread_mutex_lock(&lock);
    found[me] += n;
    if (n) add(n - 1, me);
    pthread_mutex_unlock(&lock);
}
static void *work(void *given) { add(3, (long)given); return NULL; }
""" + TWO,
    "blocks that grow": """
static int found[2];
static void *work(void *given) {
    int *data = NULL;
    for (int n = 0; n < 40; n++) { data = realloc(data, (n + 1) * sizeof *data); data[n] = n * (int)(long)given; }
    found[(long)given] = data[39];
    free(data);
    return NULL;
}
""" + TWO,
    "deep recursion, and jumps into the middle of it": """
static __thread jmp_buf places[8];
static int found[2];
static int deep(int n) { int parts[4] = {n, n + 1, n + 2, n + 3}; return n ? deep(n - 1) + parts[n & 3] : parts[1]; }
static int jump(int n, int to) {
    int here = n * 10, parts[3] = {n, n + 1, n + 2};
    if (setjmp(places[n])) return here + parts[1];
    if (n == 5) longjmp(places[to], 1);
    int got = jump(n + 1, to);
    return got + here;
}
static void *work(void *given) { found[(long)given] = deep(3000) + jump(0, 2) + jump(0, (int)(long)given); return NULL; }
""" + TWO,
    "a handler of a signal from an instruction": """
static sigjmp_buf place;
static void leave(int number) { (void)number; siglongjmp(place, 1); }
static int probe(volatile int *at) { if (sigsetjmp(place, 1)) return -1; return *at; }
int main(void) {
    signal(SIGSEGV, leave);
    int value = 4, sum = 0;
    for (int i = 0; i < 60000; i++) sum += i % 7;
    for (int i = 0; i < 4; i++) sum += probe(i % 2 ? &value : (int *)8);
    printf("%d\\n", sum);
    return 0;
}
""",
    "a child process": """
#include <sys/wait.h>
static int shared;
int main(void) {
    if (fork() == 0) { for (int i = 0; i < 1000; i++) shared += i; _exit(0); }
    wait(NULL);
    int sum = 0;
    for (int i = 0; i < 10; i++) sum += i;
    printf("%d\\n", sum + shared);
    return 0;
}
""",
    "forty threads": """
static int squares[40];
static void *work(void *given) { long me = (long)given; squares[me] = (int)(me * me); pthread_exit(given); }
int main(void) {
    pthread_t ids[40];
    int sum = 0;
    for (long i = 0; i < 40; i++) pthread_create(&ids[i], NULL, work, (void *)i);
    for (int i = 0; i < 40; i++) { pthread_join(ids[i], NULL); sum += squares[i]; }
    printf("%d\\n", sum);
    return 0;
}
""",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, record: Record) -> None:
    source, broken, said = REFUSED[name]
    verdict = check(record(HEAD + source)).verdict
    assert (verdict.status, verdict.property) == ("violated", broken)
    assert said in str(verdict.message)


@pytest.mark.slow
@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name: str, record: Record) -> None:
    source = HEAD + ACCEPTED[name]
    golden = record(source)
    allow = ["fork", "wait"] if "fork" in source else []
    found = check(golden, allow=allow).verdict
    assert found.status == "holds", found.message
    for seed in range(1, 6):
        again = record(source, yields=seed)
        if not allow:  # the number of a process is another one each time
            assert golden.native.outcome(again.native) == (True, False)
        assert (again.output, again.cuts) == (golden.output, [])


@pytest.mark.slow
def test_arithmetic_on_addresses_can_be_allowed(record: Record) -> None:
    source, _, _ = REFUSED["an order of addresses"]
    assert check(record(HEAD + source), allow=["addresses"]).verdict.status == "holds"


@pytest.mark.slow
def test_a_cut_is_where_the_program_died(record: Record) -> None:
    """The events before a division by zero are there, and none after it; the same for a load that traps."""
    source = """
int main(int count, char **unused) {
    (void)unused;
    int above = 10, below = count - 1, before = above + 5;
    int result = above / below;
    printf("%d\\n", result + before);
    return 0;
}
"""
    recording = record(HEAD + source, expect=-signal.SIGFPE)
    assert lines(recording, "T_0")[-2:] == ["load 10 T_0:above#0", "load 0 T_0:below#0"]
    trap = source.replace("above / below", "*(volatile int *)(long)(below + 8) + above")
    recording = record(HEAD + trap, expect=-signal.SIGSEGV)
    assert lines(recording, "T_0")[-1].startswith("inttoptr 0x8")
