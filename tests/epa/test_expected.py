"""Values that the reader expects are recorded where they differ: programs that make them differ, in all ways there are.

The oracle is the same program, built so that it records everything (`lean=False`): its events must be the same.
"""

from __future__ import annotations

import itertools
import random
import signal
from pathlib import Path

import pytest

from plait.epa.faults import Fault
from plait.epa.instrumentation.build import build
from plait.epa.recording import Recording
from plait.epa.run import run
from tests.epa.conftest import EXAMPLES
from tests.epa.listings import lines

OVERWRITTEN = """
#include <stdio.h>
#include <string.h>
/* Finds a variable of its caller, and whatever else holds the same, and overwrites all of it. */
__attribute__((noinline)) static void spoil(unsigned complement, unsigned now) {
    unsigned char *at = __builtin_frame_address(1);
    for (int i = -600; i + 4 <= 0; i += 4) {
        unsigned word;
        memcpy(&word, at + i, 4);
        if (word == ~complement) memcpy(at + i, &now, 4);
    }
}
int main(int argc, char **argv) {
    unsigned secret = 0x5eed1230u + (unsigned)argc, sum = 0;
    for (int i = 0; i < 3; i++) sum += secret;
    for (unsigned i = 0; i < 4; i++) {
        sum += secret;
        if (i == 1) spoil(~0x5eed1231u, 7);
    }
    printf("%u %u\\n", secret, sum);
    return 0;
}
"""
CHANGING = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static int limit = 5, *table;
static double scale = 1.5;
static void change(int i) { if (i == 2) { limit = 7; scale = -0.0; table += 1; } }
static void *work(void *given) { limit = *(int *)given; return NULL; }
int main(void) {
    table = calloc(16, sizeof *table);
    double all = 0;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < limit; i++) {  /* a global that a callee changes */
            all += scale * table[1];
            change(i);
            table[i] += limit;             /* the same place, stored and loaded */
        }
        int wanted = 4 + round;
        pthread_t id;
        pthread_create(&id, NULL, work, &wanted);
        pthread_join(id, NULL);
    }
    int k = 0;
again:                                     /* a loop that is none for the compiler's eyes alone */
    switch (k++) { case 0: case 3: goto again; case 1: limit++; goto again; case 2: { int k = 9; all += k; goto again; } }
    do all += limit; while (--limit > 0);
    printf("%f %d %d\\n", all, limit, *table);
    return 0;
}
"""
RECURSIVE = """
#include <setjmp.h>
#include <stdio.h>
static jmp_buf back;
static int deep(int n, int *sum) {
    int mine = n * 3;
    for (int i = 0; i < 3; i++) {
        *sum += mine + i;
        if (n > 0 && i == 1) deep(n - 1, sum);
        if (n == 1 && *sum > 150) longjmp(back, n);
    }
    return mine;
}
int main(void) {
    int sum = 0, tries = 0, before = 1;
    if (setjmp(back)) { tries++; before = 0; }
    sum += tries + before;
    if (tries < 3) deep(4, &sum);
    printf("%d %d %d\\n", sum, tries, before);
    return 0;
}
"""
COMPUTING = """
#include <stdio.h>
static int step = 3, most = 90;
static double scale = 0.5;
static double sum(int n, double start) {
    double all = start;
    for (int i = 0; i < n && i < most; i++) {
        all = all * scale + step;
        if (i == step) step = (i ^ 5) & 7;
    }
    return all;
}
int main(void) {
    double all = 1;
    unsigned count = 0;
    for (int i = 0; i >= 0 && i < 12; i++) {
        all += sum(i, all);
        count = count * 3 + (unsigned)(all > 40 ? step : i);
    }
    printf("%f %u\\n", all, count);
    return 0;
}
"""
CALLS = """
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
struct large { long a[5]; };
struct small { char a; float b; };
static char narrow(char a, short b, _Bool c, unsigned char d, float e) { return c ? a + (char)b : (char)(d + e); }
static long wide(struct large by_value, struct small s, long *to, long double x) {
    by_value.a[1]++;
    *to += by_value.a[1] + s.a;
    return by_value.a[4] + (long)x;
}
static struct large made(int n) { struct large it = {{n, 2, 3, 4, n}}; return it; }
static double deep(int n, double x) { return n ? deep(n - 1, x / 2) + deep(n / 2, x) : x; }
static int order(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static int twice(int (*f)(const void *, const void *), int n) { int m = n * 2; return f(&n, &m) + f(&m, &n) + n; }
static int many(int n, ...) {
    va_list rest;
    va_start(rest, n);
    int all = 0;
    while (n--) all += va_arg(rest, int);
    va_end(rest);
    return all;
}
static void *work(void *given) { return (void *)((long)given + narrow(1, 2, 1, 3, 4)); }
static long thread_of(long n) {
    pthread_t id;
    void *result;
    pthread_create(&id, NULL, work, (void *)n);
    pthread_join(id, &result);
    return (long)result;
}
int main(void) {
    long to = 0;
    struct small s = {3, 1.5f};
    int numbers[] = {5, 2, 8, -1, 7};
    qsort(numbers, 5, sizeof *numbers, order);  /* called from a library */
    to += wide(made(7), s, &to, 12.5L) + order(numbers, numbers + 1) + twice(order, 21) + many(3, 1, -2, 40);
    for (int i = -3; i < 3; i++) to += narrow((char)(i * 100), (short)(i * 20000), i & 1, (unsigned char)i, i * 0.5f);
    printf("%ld %f %ld\\n", to, deep(5, 3.0), thread_of(to));
    return 0;
}
"""
CRASHES = """
#include <stdlib.h>
struct node { struct node *next; int value; };
int main(void) {
    struct node *last = NULL;
    for (int i = 0; i < 4; i++) {
        struct node *new = malloc(sizeof *new);
        *new = (struct node){last ? last : (struct node *)16, 10 + i};
        last = new;
    }
    int sum = 0, scale = 2;
    while (sum < 1000) {
        sum += scale;
        sum += last->value;
        last = last->next;
    }
    return sum;
}
"""


def both(source: Path, toolchain: int, folder: Path) -> tuple[Path, Path]:
    """The program as it is, and one that records everything."""
    programs = folder / "lean.epa", folder / "full.epa"
    for program, lean in zip(programs, (True, False), strict=True):
        build([source], program, version=toolchain, lean=lean)
    return programs


def recorded(programs: tuple[Path, Path], folder: Path, fault: Fault | None = None) -> list[Recording]:
    found = []
    for program in programs:
        run(program, [], folder / program.stem, fault=fault, timeout=20)
        found.append(Recording(folder / program.stem))
    return found


def size(recording: Recording) -> int:
    """Of the records, in bytes."""
    files = list(recording.folder.glob("thread-*.bin"))
    return sum(p.stat().st_size for p in files) - len(files) * (4096 + 2 * 65536)


@pytest.mark.slow
@pytest.mark.parametrize(
    "source", [OVERWRITTEN, CHANGING, RECURSIVE, CALLS], ids=["overwritten", "changing", "recursive", "calls"]
)
def test_what_is_not_as_expected_is_seen(source: str, toolchain: int, tmp_path: Path) -> None:
    (tmp_path / "program.c").write_text(source)
    lean, full = recorded(both(tmp_path / "program.c", toolchain, tmp_path), tmp_path)
    assert lean.run is not None
    assert lean.run.code == 0
    assert lean.output == full.output
    if source is OVERWRITTEN:  # what else is found there differs between the two
        loads = [line for line in lines(lean, "T_0") if line.endswith("T_0:secret#0") and line.startswith("load")]
        values = [int(line.split()[1]) for line in loads]
        assert values == [0x5EED1231] * 5 + [7] * 3
    else:
        assert lean.native.outcome(full.native) == (True, False)
        assert [thread.events for thread in lean.threads] == [thread.events for thread in full.threads]
    assert size(lean) < size(full)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quicksort.c", "swaptions.c", "blackscholes.c"])
def test_programs_have_the_same_events(name: str, toolchain: int, tmp_path: Path) -> None:
    lean, full = recorded(both(EXAMPLES / name, toolchain, tmp_path), tmp_path)
    assert lean.native.outcome(full.native) == (True, False)
    assert lean.native.records > 100


@pytest.mark.slow
def test_a_crash_is_seen_with_what_was_expected_before(toolchain: int, tmp_path: Path) -> None:
    """The record that is not whole has everything up to the load that crashes, and it is right."""
    (tmp_path / "program.c").write_text(CRASHES)
    lean, full = recorded(both(tmp_path / "program.c", toolchain, tmp_path), tmp_path)
    assert lean.run is not None
    assert lean.run.code == -signal.SIGSEGV
    events = lines(lean, "T_0")
    assert events == lines(full, "T_0")
    sums = [int(line.split()[1]) for line in events if line.startswith("store") and line.endswith("T_0:sum#0")]
    assert sums == [0, *itertools.accumulate([2, 13, 2, 12, 2, 11, 2, 10, 2])]
    assert "load 2 T_0:scale#0" in events[-9:], "of the same piece"


@pytest.mark.slow
def test_faults_have_the_same_effects(toolchain: int, tmp_path: Path) -> None:
    """Flipped bits of all sorts of values, but for addresses: what lies around differs between the two programs."""
    (tmp_path / "program.c").write_text(COMPUTING)
    programs = both(tmp_path / "program.c", toolchain, tmp_path)
    run(programs[0], [], tmp_path / "golden")
    golden = Recording(tmp_path / "golden")
    rng = random.Random(7)
    kinds = ("plain", "float", "double")
    choices = [(t, s, n) for t, s, n, _ in golden.executions() if n and golden.table.site(s).kind in kinds]
    deviating = 0
    for _ in range(40):
        thread, site, count = rng.choice(choices)
        flipped = 1 << rng.randrange(golden.table.site(site).bits)
        lean, full = recorded(programs, tmp_path, Fault("bitflip", site, thread, rng.randrange(count), flipped))
        assert lean.output == full.output
        assert lean.native.outcome(full.native) == (True, False)
        deviating += not golden.native.outcome(lean.native)[0]
    assert deviating == 40


@pytest.mark.slow
def test_a_loop_records_little_but_what_changes(toolchain: int, tmp_path: Path) -> None:
    """Two elements per step of the inner loop of pca, and the numbers of two pieces: 16 bytes."""
    program = tmp_path / "pca.epa"
    build([EXAMPLES / "pca.c"], program, version=toolchain)
    sizes = []
    for columns in (200, 400):
        run(program, ["4", "30", str(columns)], tmp_path / "trace")
        sizes.append(size(Recording(tmp_path / "trace")))
    steps = 30 * 31 // 2 * 200
    outer = 30 * 200 * 60  # filling the matrix, and the means of its rows
    assert 16 * steps < sizes[1] - sizes[0] < 16 * steps + outer
