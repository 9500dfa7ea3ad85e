"""What makes recordings hard: reused handles and memory, exits of all kinds, C++, traces that were cut off."""

from __future__ import annotations

import itertools
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from plait.epa.instrumentation.build import build
from plait.epa.instrumentation.table import FORMAT
from plait.epa.instrumentation.toolchain import find_all
from plait.epa.recording import Recording
from plait.epa.reversibility import check
from plait.epa.run import run
from plait.kernel.errors import TraceError
from tests.epa.conftest import EXAMPLES, Build, Record
from tests.epa.listings import HEAD, lines


def twice_equal(record: Record, source: str) -> Recording:
    """Two runs under different schedules have equal sanitized traces."""
    one, two = record(source, yields=3), record(source, yields=8)
    assert one.native.outcome(two.native) == (True, False)
    assert one.cuts == []
    return one


@pytest.mark.slow
def test_a_handle_that_is_reused(record: Record) -> None:
    """glibc gives a new thread the handle of one that was joined."""
    source = (
        HEAD
        + """
static void *work(void *given) { return given; }
int main(void) {
    pthread_t first, second;
    pthread_create(&first, NULL, work, NULL);
    pthread_join(first, NULL);
    pthread_create(&second, NULL, work, NULL);
    printf("%s\\n", first == second ? "reused" : "new");
    pthread_join(second, NULL);
    return 0;
}
"""
    )
    recording = twice_equal(record, source)
    assert recording.output == b"reused\n"
    loads = [line for line in lines(recording, "T_0") if line.startswith("load T_0_") and "second" in line]
    assert loads
    assert set(loads) == {"load T_0_1 T_0:second#0"}
    assert [t.name for t in recording.threads] == ["T_0", "T_0_0", "T_0_1"]


@pytest.mark.slow
def test_memory_that_moves_to_another_thread(record: Record) -> None:
    """A block that one thread frees and another gets is another object, and no dependence."""
    source = (
        HEAD
        + """
static int *kept;
static void *work(void *given) {
    int *mine = malloc(64);
    mine[0] = (int)(long)given;
    if (given) kept = mine; else free(mine);
    return NULL;
}
int main(void) {
    pthread_t id;
    for (long i = 0; i < 2; i++) {
        pthread_create(&id, NULL, work, (void *)i);
        pthread_join(id, NULL);
    }
    printf("%d\\n", kept[0]);
    free(kept);
    return 0;
}
"""
    )
    recording = twice_equal(record, source)
    blocks = [o for o in recording.objects() if o.kind == "heap" and "malloc@" in o.name and o.size == 64]
    assert [o.thread for o in blocks] == ["T_0_0", "T_0_1"]
    assert blocks[0].valid[1] < blocks[1].valid[0]
    assert check(recording).verdict.status == "holds"


@pytest.mark.slow
def test_scopes_are_left_by_longjmp_and_pthread_exit(record: Record) -> None:
    source = (
        HEAD
        + """
static jmp_buf place;
static void deep(int n) { int here = n; if (n == 0) longjmp(place, 1); deep(n - 1); (void)here; }
static void leave(void) { int local = 5; (void)local; pthread_exit(NULL); }
static void *work(void *given) { leave(); return given; }
static int after(void) { int fresh = 7; return fresh; }
int main(void) {
    pthread_t id;
    pthread_create(&id, NULL, work, NULL);
    pthread_join(id, NULL);
    if (setjmp(place) == 0) deep(4);
    printf("%d\\n", after());
    return 0;
}
"""
    )
    recording = twice_equal(record, source)
    objects = {o.name: o for o in recording.objects()}
    assert objects["T_0_0:local#0"].valid[1] < recording.native.records
    fresh = objects["T_0:fresh#0"]
    assert all(objects[f"T_0:here#{i}"].valid[1] <= fresh.valid[0] for i in range(5)), "longjmp left all five"


@pytest.mark.slow
def test_exceptions(record: Record) -> None:
    """An invoke that throws leaves the frames between, and its result is recorded when it does not throw."""
    source = """#include <thread>
#include <cstdio>
#include <stdexcept>
struct Noisy { int tag; ~Noisy() { tag = 0; } };
static int half(int n) { Noisy noisy{n}; int deep = n; if (n % 2) throw std::runtime_error("odd"); return deep / 2; }
int main() {
    int sum = 0;
    std::thread worker([&sum] {
        for (int i = 0; i < 4; i++) {
            try { int got = half(i); sum += got; } catch (const std::exception &) { sum += 100; }
        }
    });
    worker.join();
    std::printf("%d\\n", sum);
    return 0;
}
"""
    recording = twice_equal(record, source)
    assert recording.output == b"201\n"
    worker = lines(recording, "T_0_0")
    assert sum(line.startswith("landingpad") for line in worker) >= 2
    assert {"result of _ZL4halfi: 0", "result of _ZL4halfi: 1"} <= set(worker)
    deep = [o for o in recording.objects() if o.name.startswith("T_0_0:deep#")]
    assert len(deep) == 4
    assert all(one.valid[1] <= other.valid[0] for one, other in itertools.pairwise(deep))
    assert check(recording).verdict.status == "holds"


@pytest.mark.slow
def test_rwlocks_conditions_once_and_thread_locals(record: Record) -> None:
    source = (
        HEAD
        + """
static __thread int mine;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int shared = 3, seen[2];
static void *reader(void *given) {
    long me = (long)given;
    pthread_rwlock_rdlock(&lock);
    mine = shared + (int)me;
    seen[me] = mine;
    pthread_rwlock_unlock(&lock);
    return NULL;
}
int main(void) {
    pthread_t ids[2];
    for (long i = 0; i < 2; i++) pthread_create(&ids[i], NULL, reader, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(ids[i], NULL);
    printf("%d %d\\n", seen[0], seen[1]);
    return 0;
}
"""
    )
    recording = twice_equal(record, source)
    assert check(recording).verdict.status == "holds", "readers of what nobody writes"
    names = {o.name for o in recording.objects() if o.kind == "local"}
    assert {"T_0:mine", "T_0_0:mine", "T_0_1:mine"} <= names
    assert "store 4 T_0_1:mine" in lines(recording, "T_0_1")
    once = (
        HEAD
        + """
static pthread_once_t control = PTHREAD_ONCE_INIT;
static int value;
static void init(void) { value = 1; }
static void *work(void *given) { pthread_once(&control, init); return given; }
int main(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, work, NULL);
    pthread_create(&two, NULL, work, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    printf("%d\\n", value);
    return 0;
}
"""
    )
    found = check(record(once))
    assert found.verdict.property == "reversibility"
    assert "pthread_once" in found.witnesses[0].object
    waiting = (
        HEAD
        + """
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static int flag;
static void *work(void *given) {
    pthread_mutex_lock(&lock);
    flag = 1;
    pthread_cond_signal(&ready);
    pthread_mutex_unlock(&lock);
    return given;
}
int main(void) {
    pthread_t id;
    pthread_mutex_lock(&lock);
    pthread_create(&id, NULL, work, NULL);
    while (!flag) pthread_cond_wait(&ready, &lock);
    pthread_mutex_unlock(&lock);
    pthread_join(id, NULL);
    puts("done");
    return 0;
}
"""
    )
    found = check(record(waiting))
    assert found.verdict.property == "reversibility", "the wait may wake by itself before the flag is set"
    assert found.witnesses[0].object == "flag"


@pytest.mark.slow
def test_a_crash_leaves_a_readable_trace(record: Record) -> None:
    source = (
        HEAD
        + """
static void *work(void *given) { *(volatile int *)given = 1; return NULL; }
int main(void) {
    pthread_t id;
    pthread_create(&id, NULL, work, (void *)16);
    pthread_join(id, NULL);
    return 0;
}
"""
    )
    recording = record(source, expect=-signal.SIGSEGV)
    assert any("SIGSEGV" in cut for cut in recording.cuts)
    assert len(recording.cuts) == 2, "neither thread ended"
    assert lines(recording, "T_0_0")[-1].startswith("store 1"), "up to the store that crashed"
    assert check(recording).verdict.status == "inconclusive"


@pytest.mark.slow
def test_a_kill_leaves_a_readable_trace(built: Build, tmp_path: Path) -> None:
    source = (
        HEAD
        + """
int main(void) {
    for (volatile long i = 0; i < 20000; i++) {}
    write(1, "x", 1);
    for (;;) pause();
}
"""
    )
    program = built(source)
    folder = tmp_path / "trace"
    folder.mkdir()
    process = subprocess.Popen([program], env={**os.environ, "EPA_TRACE": str(folder)}, stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.read(1) == b"x"
        process.send_signal(signal.SIGKILL)
        process.wait()
    recording = Recording(folder)
    assert recording.threads[0].events > 60_000
    assert "did not end" in recording.cuts[0]
    assert lines(recording, "T_0")[0] == "enter main"


@pytest.mark.slow
def test_a_kill_at_any_time_leaves_a_begin_of_the_whole_trace(built: Build, tmp_path: Path) -> None:
    """Whenever it strikes: every thread has the first events of the same thread in a run that was not killed."""
    program, arguments = built("kmeans.c"), ["3", "1500"]
    run(program, arguments, tmp_path / "whole")
    whole = Recording(tmp_path / "whole")
    for delay in (0.002, 0.005, 0.01, 0.02, 0.04, 0.08):
        folder = tmp_path / f"{delay}"
        folder.mkdir()
        process = subprocess.Popen(
            [program, *arguments], env={**os.environ, "EPA_TRACE": str(folder)}, stdout=subprocess.DEVNULL
        )
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if (folder / "thread-0.bin").exists():
            found = whole.native.compare(Recording(folder).native).threads
            assert [(t.name, t.changed, t.extra) for t in found if t.changed or t.extra] == []


def test_a_thread_that_was_killed_before_it_began(record: Record) -> None:
    """Others speak of it by its name."""
    folder = record("listing4.c").folder
    (folder / "thread-2.bin").unlink()
    recording = Recording(folder)
    assert "load T_0_1 T_0:id2#0" in lines(recording, "T_0")
    assert any(cut.startswith("T_0_1 did not end") for cut in recording.cuts)


@pytest.mark.slow
def test_a_full_disk_ends_the_trace_and_not_the_program(built: Build, tmp_path: Path) -> None:
    """A limit on the size of files is a full disk to the recorder."""
    source = (
        HEAD
        + """
int main(void) {
    volatile long sum = 0;
    for (long i = 0; i < 20000; i++) sum += i;
    printf("%ld\\n", sum);
    return 0;
}
"""
    )
    program = built(source)
    folder = tmp_path / "trace"
    folder.mkdir()
    command = f"trap '' XFSZ; ulimit -f 256; exec {shlex.quote(str(program))}"
    done = subprocess.run(
        ["bash", "-c", command], env={**os.environ, "EPA_TRACE": str(folder)}, capture_output=True, check=True
    )
    assert done.stdout == b"199990000\n"
    recording = Recording(folder)
    assert "the disk was full" in recording.cuts[0]
    assert recording.threads[0].events > 1_000
    assert check(recording).verdict.status == "inconclusive"


@pytest.mark.slow
def test_a_thread_records_no_more_than_it_may(built: Build, tmp_path: Path) -> None:
    """Faulty runs that never end would fill the disk, and then the memory of who reads them."""
    source = HEAD + "int main(void) { volatile long sum = 0; for (long i = 0;; i++) sum += i; return 0; }\n"
    run(built(source), [], tmp_path / "trace", timeout=1.0, most=1 << 20)
    assert (tmp_path / "trace" / "thread-0.bin").stat().st_size < 2 << 20
    recording = Recording(tmp_path / "trace")
    assert recording.cuts
    assert recording.threads[0].events > 1_000


@pytest.mark.parametrize("damage", ["table.json", "layout.txt", "thread-0.bin"])
def test_a_damaged_trace_is_refused(damage: str, record: Record) -> None:
    folder = record("listing4.c").folder
    (folder / damage).write_bytes(b"\x01" * 64 + b"\x07" * 8)
    with pytest.raises(TraceError, match="cannot be read"):
        Recording(folder)


@pytest.mark.parametrize("damage", [b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\xff\xff\xff\x1f"])
def test_a_damaged_record_is_refused(damage: bytes, record: Record) -> None:
    """A kind and a layout that nobody writes, and a piece that the program does not have."""
    folder = record("listing4.c").folder
    with (folder / "thread-0.bin").open("r+b") as file:
        file.seek(4096 + 2 * 65536)
        file.write(damage)
    with pytest.raises(TraceError, match=r"cannot be read: .*the record at byte 0"):
        Recording(folder)


def test_records_of_another_version_are_refused(record: Record) -> None:
    folder = record("listing4.c").folder
    table = folder / "table.json"
    table.write_text(table.read_text(encoding="utf-8").replace(f'"format":{FORMAT}', '"format":3'), encoding="utf-8")
    with pytest.raises(TraceError, match=f"version 3, not {FORMAT}"):
        Recording(folder)


@pytest.mark.slow
def test_all_versions_of_clang(tmp_path: Path) -> None:
    """Typed pointers (14) and opaque ones (15 and later): the same events."""
    found = find_all()
    if not found:
        pytest.skip("clang with its libLLVM is not installed: apt-get install clang-14")
    said = set()
    for toolchain in found:
        # A process of its own for each: one process can load only one libLLVM safely.
        program, folder = tmp_path / f"{toolchain.version}.epa", tmp_path / f"{toolchain.version}.trace"
        code = (
            "from pathlib import Path; from plait.epa.instrumentation.build import build; "
            f"build([Path({str(EXAMPLES / 'listing4.c')!r})], Path({str(program)!r}), version={toolchain.version})"
        )
        subprocess.run([sys.executable, "-c", code], check=True)
        run(program, [], folder)
        recording = Recording(folder)
        said.add(tuple(line for t in recording.threads for line in lines(recording, t.name)))
    assert len(said) == 1


@pytest.mark.slow
def test_a_time_limit(record: Record) -> None:
    source = HEAD + "int main(void) { for (;;) pause(); }\n"
    recording = record(source, expect=None, timeout=2.0)
    assert recording.run is not None
    assert recording.run.timed_out


def test_the_common_trace(record: Record) -> None:
    from plait.epa.lanes import sync_trace

    trace = sync_trace(record("listing4.c"))
    assert [lane.name for lane in trace.lanes] == ["T_0", "T_0_0", "T_0_1"]
    labels = [f"{e.lane} {e.label}" for e in trace.events]
    for expected in ("T_0 create T_0_0", "T_0_0 end", "T_0 join", "T_0 end"):
        assert expected in labels
    assert labels.index("T_0 create T_0_0") < labels.index("T_0_0 start") < labels.index("T_0_0 end")


@pytest.mark.slow
def test_building_twice_is_the_same(tmp_path: Path, toolchain: int) -> None:
    source = tmp_path / "both.cpp"
    source.write_text(
        "template <class T> T twice(T x) { static T last; return last += x + x; }\n"
        "struct Base { virtual int f() { return 1; } };\nstruct Other : Base { int f() override { return twice(2); } };\n"
        "int main() { Other o; Base *b = &o; return b->f() + (int)twice(0.5) + twice('a') - 199; }\n",
        encoding="utf-8",
    )
    tables = [build([source], tmp_path / f"{i}.epa", version=toolchain)[0] for i in range(2)]
    assert tables[0] == tables[1]
