"""Each type of fault does what it says: the values before and after the fault, and the effect on the program."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from plait.epa.campaign import Campaign, runs_for, wilson
from plait.epa.custom_faults import model
from plait.epa.faults import ACTIONS, MODELS, TYPES, Fault, Where, draw, parse, targets
from plait.epa.instrumentation.table import Site
from plait.epa.recording import Recording
from plait.kernel.errors import UsageError
from tests.epa.conftest import Build, Record

API = r"""#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static pthread_mutex_t lock;
static int total;
static void *work(void *given) {
    pthread_mutex_lock(&lock); total += 2; pthread_mutex_unlock(&lock);
    return given;
}
static int bigger(int a, int b) { if (a > b) return a; return b; }
int main(int argc, char **argv) {
    char buffer[64];
    int file = open(argv[1], O_RDONLY);
    if (file < 0) { printf("open: %s\n", strerror(errno)); return 0; }
    ssize_t got = read(file, buffer, 40);
    if (got < 0) { printf("read: %s\n", strerror(errno)); return 0; }
    char *copy = malloc(8);
    if (!copy) { printf("malloc: %s\n", strerror(errno)); return 0; }
    int sum = 0;
    for (int i = 0; i < 10; i++) sum += i;
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &kind);
    pthread_t one;
    pthread_create(&one, 0, work, 0);
    pthread_join(one, 0);
    printf("%zd %d %d %d\n", got, sum, bigger(3, 5), total);
    return 0;
}
"""


@pytest.fixture
def api(record: Record, tmp_path: Path) -> Callable[..., Recording]:
    (tmp_path / "input").write_bytes(b"x" * 64)
    return lambda **options: record(API, str(tmp_path / "input"), **options)


def site(recording: Recording, op: str, name: str = "", function: str = "", index: int = 0) -> int:
    return next(
        i
        for i, s in enumerate(recording.table.sites, 1)
        if s.op == op and name in (s.name, "") and function in (s.function, "") and s.index == index
    )


@pytest.mark.slow
def test_faults_of_apis_and_locks(api: Callable[..., Recording]) -> None:
    golden = api()
    assert golden.output == b"40 45 5 2\n"
    read, opened, malloc = (site(golden, "call", name) for name in ("read", "open", "malloc"))
    compare = site(golden, "icmp", function="bigger", index=38)  # signed greater than
    lock, unlock = site(golden, "call", "pthread_mutex_lock"), site(golden, "call", "pthread_mutex_unlock")
    for text, output in (
        (f"errno:{opened}:T_0:0:{(32 << 32) | 13}", b"open: Permission denied\n"),
        (f"errno:{read}:T_0:0:{(64 << 32) | 5}", b"read: Input/output error\n"),
        (f"errno:{malloc}:T_0:0:12", b"malloc: Cannot allocate memory\n"),
        (f"shortread:{read}:T_0:0:2", b"20 45 5 2\n"),
        (f"shortread:{read}:T_0:0:0", b"0 45 5 2\n"),
        (f"returncode:{read}:T_0:0:1", b"1 45 5 2\n"),
        (f"branch:{compare}:T_0:0:1", b"40 45 3 2\n"),
        (f"set:{read}:T_0:0:7", b"7 45 5 2\n"),
        (f"or:{read}:T_0:0:7", b"47 45 5 2\n"),
        (f"clear:{read}:T_0:0:8", b"32 45 5 2\n"),
        (f"stuck0:{read}:T_0:0:8", b"32 45 5 2\n"),
        (f"stuck1:{read}:T_0:0:1", b"41 45 5 2\n"),
        (f"doublelock:{lock}:T_0_0:0:0", b"40 45 5 2\n"),  # the mutex is recursive
        (f"droplock:{lock}:T_0_0:0:0", b"40 45 5 2\n"),
    ):
        faulty = api(fault=parse(text))
        assert faulty.output == output, text
        assert len(faulty.native.faults()) == 1, text
    rows = list(api(fault=parse(f"doublelock:{lock}:T_0_0:0:0")).native.runs())
    assert len(rows) == len(list(golden.native.runs())) + 1, "one more acquisition"
    # The second release fails (EPERM): the thread no longer owns the recursive mutex.
    assert len(list(api(fault=parse(f"doubleunlock:{unlock}:T_0_0:0:0")).native.runs())) == len(rows)


MEMORY = r"""#include <stdio.h>
static const int fixed[4] = {1, 2, 3, 4};
static int sum(const int *of) { int s = 0; for (int i = 0; i < 4; i++) s += of[i]; return s; }
int main(void) {
    int first = sum(fixed);
    printf("%d %d\n", first, sum(fixed));
    return 0;
}
"""


@pytest.mark.slow
def test_a_fault_in_memory_stays(record: Record) -> None:
    """A flipped bit of a register is gone at the next read of the memory. A flipped bit in memory is not."""
    golden = record(MEMORY)
    assert golden.output == b"10 10\n"
    (place,) = {t.site for t in targets(golden.table, golden.executions(), "memory")}
    load = next(i for i, s in enumerate(golden.table.sites, 1) if s.op == "load" and s.operands[:1] == [place])
    register = record(MEMORY, fault=parse(f"bitflip:{load}:T_0:2:8"))
    memory = record(MEMORY, fault=parse(f"memory:{place}:T_0:2:8"))
    assert register.output == b"18 10\n"
    assert memory.output == b"18 18\n", "the memory is constant, but the fault changes it"
    assert record(MEMORY, fault=parse(f"memory:{place}:T_0:6:8")).output == b"10 18\n"
    equal, spreads = golden.native.outcome(memory.native)
    assert (equal, spreads) == (False, True)
    assert len(memory.native.faults()) == 1


@pytest.mark.slow
def test_a_skipped_instruction(record: Record) -> None:
    """The register keeps its old value: that of the last execution, or 0 before the first one."""
    golden = record(MEMORY)
    load = next(i for i, s in enumerate(golden.table.sites, 1) if s.op == "load" and _reads(golden, i))
    assert record(MEMORY, fault=parse(f"skipped:{load}:T_0:2:0")).output == b"9 10\n"  # 1 + 2 + 2 + 4
    assert record(MEMORY, fault=parse(f"skipped:{load}:T_0:0:0")).output == b"9 10\n"  # 0 + 2 + 3 + 4
    assert record(MEMORY, fault=parse(f"skipped:{load}:T_0:4:0")).output == b"10 13\n"  # 4 + 2 + 3 + 4


def _reads(recording: Recording, number: int) -> bool:
    """Whether a load reads an element of the array."""
    operands = recording.table.site(number).operands
    return bool(operands) and recording.table.site(operands[0]).op == "getelementptr"


def drawn(kind: str, bits: int) -> list[int]:
    chosen = MODELS[kind]
    given = Site("add", "f", "a.c", 1, "plain", bits, 0, [], "")
    assert chosen.fits(given, "T_0") or bits == 1
    return [chosen.value(given, random.Random(i)) for i in range(300)]


@pytest.mark.parametrize("bits", [2, 8, 32, 64])
def test_masks(bits: int) -> None:
    assert {v.bit_count() for v in drawn("bitflip", bits)} == {1}
    several = drawn("multibit", bits)
    assert {v.bit_count() for v in several} == {min(n, bits) for n in (2, 3, 4)}
    for value in drawn("window", bits):
        span = value.bit_length() - ((value & -value).bit_length() - 1)
        assert 2 <= span <= 8
    for kind in ("bitflip", "multibit", "window", "stuck0", "stuck1"):
        assert all(0 < v < 1 << bits for v in drawn(kind, bits))
    assert not MODELS["multibit"].fits(Site("icmp", "f", "a.c", 1, "plain", 1, 0, [], ""), "T_0")


@pytest.mark.slow
def test_where(api: Callable[..., Recording]) -> None:
    golden = api()
    executions, table = golden.executions(), golden.table
    line = next(i for i, text in enumerate(API.splitlines(), 1) if "sum += i" in text)
    every = targets(table, executions, "bitflip")
    for texts, holds in (
        (["function=bigger"], lambda t: table.site(t.site).function == "bigger"),
        ([f"line=program.c:{line}"], lambda t: table.site(t.site).line == line),
        ([f"line={line}", "opcode=add"], lambda t: (table.site(t.site).line, table.site(t.site).op) == (line, "add")),
        (["thread=T_0_*"], lambda t: t.thread == "T_0_0"),
    ):
        found = targets(table, executions, "bitflip", where=Where.of(texts))
        assert found
        assert found == [t for t in every if holds(t)], texts
    # The third and the fourth iteration of the loop.
    loop = Where.of([f"line={line}", "opcode=load", "nth=2-3"])
    chosen = targets(table, executions, "bitflip", where=loop)
    assert chosen
    assert {draw(table, chosen, "bitflip", random.Random(i)).nth for i in range(50)} == {2, 3}
    for wrong in ("nth=x", "nth=4-2", "place=3", "function", "function=", "nth="):
        with pytest.raises(UsageError, match="is not a condition"):
            Where.of([wrong])


@pytest.mark.slow
def test_a_fault_in_python(built: Build, tmp_path: Path) -> None:
    file = tmp_path / "zero.py"
    file.write_text(
        "ACTION = 'set'\n"
        "def fits(site, thread): return site.op == 'call' and site.name == 'read'\n"
        "def value(site, random): return random.choice([-1, 3])\n"
    )
    (tmp_path / "input").write_bytes(b"x" * 64)
    campaign = Campaign(
        built(API), [str(tmp_path / "input")], types=[str(file), "bitflip"], runs=8, seed=1, require=False
    )
    try:
        mine = [f for f in campaign.faults if f.type == str(file)]
        assert len(mine) == 4
        assert {(f.action, f.value) for f in mine} <= {("set", 3), ("set", (1 << 64) - 1)}
        for fault in mine:
            assert parse(fault.text).plan == fault.plan
        result = campaign.inject(campaign.faults.index(mine[0]))
        assert result.outcome == "sdc"
        assert result.struck
    finally:
        campaign.close()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def fits(", "cannot be used"),
        ("x = 1", "does not define a type of fault"),
        ("ACTION = 'zap'\ndef fits(s, t): pass\ndef value(s, r): pass", "does not define a type of fault"),
    ],
)
def test_bad_files(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "f.py"
    file.write_text(text)
    with pytest.raises(UsageError, match=said):
        model(str(file))


def test_bad_functions(tmp_path: Path) -> None:
    file = tmp_path / "f.py"
    file.write_text("def fits(site, thread): return 1 / 0\ndef value(site, random): return 'x'\n")
    made = model(str(file))
    given = Site("add", "f", "a.c", 1, "plain", 32, 0, [], "")
    with pytest.raises(UsageError, match="fits failed: ZeroDivisionError"):
        made.fits(given, "T_0")
    with pytest.raises(UsageError, match="value returned 'x', not an integer"):
        made.value(given, random.Random(0))
    with pytest.raises(UsageError, match="zap is not a type of fault"):
        model("zap")


def test_plans() -> None:
    for kind in (*TYPES, *ACTIONS):
        fault = parse(f"{kind}:3:T_0:1:5")
        assert fault.text == f"{kind}:3:T_0:1:5"
        assert fault.plan.split(":")[0] in {
            *ACTIONS,
            "fail",
            "poke",
            "stale",
            "stuck0",
            "stuck1",
            "skip",
            "twice",
            "kill",
        }
    with pytest.raises(UsageError, match="does not fit"):
        parse(f"set:3:T_0:1:{1 << 64}")
    assert Fault("f.py", 3, "T_0", 1, 5, "add").text == "add:3:T_0:1:5"


@pytest.mark.parametrize("width", [0.02, 0.05, 0.1, 0.3])
def test_the_width_of_intervals(width: float) -> None:
    """With this number of runs, every interval is narrow enough; with one run less, some interval is not."""

    def widest(runs: int) -> float:
        return max(high - low for low, high in (wilson(hits, runs) for hits in range(runs + 1)))

    runs = runs_for(width)
    assert widest(runs) <= width < widest(runs - 2)
