"""Sources of difference between runs: each is modelled, refused, not known, or an assumption that the verdict states.

`chance.c` has one source per mode. Nothing that differs between runs without a fault is called pseudo-deterministic.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.epa.instrumentation.build import build
from plait.epa.instrumentation.libraries import assembly_is_harmless, intrinsic_is_known, knowledge
from plait.epa.recording import Recording
from plait.epa.reversibility import check
from plait.epa.run import run
from plait.kernel.errors import UsageError
from tests.support.once import made_once

REFUSED = {
    "assembly": "inline assembly (lock xaddl",
    "tsc": "llvm.x86.rdtsc",
    "tid": "syscall",
    "offset": "the offset of file descriptor",
    "urandom": "/dev/urandom",
    "proc": "/proc/self/stat",
    "alarm": "ualarm",
    "raise": "a handler of SIGUSR1 ran",
    "c11": "both access counter",
    "write": "the offset of file descriptor 1",
    "open": "the table of file descriptors",
    "pipe": "the same file",
    "stderr": "stderr (--allow stderr ignores it)",
    "sprintf": "both access names",
    "strcpy": "both access names",
    "file": "the same file",
    "freed": "a read of freed memory",
    "address": "an address is printed",
    "integer": "an address as an integer argument of printf",
    "handle": "an address as an integer argument of printf",
    "pointer": "getpid",
    "end": "both access end",
    "parts": "both access whole",
    "aligned": "both access block_of_two",
    "eof": "both access T_0:fopen",
    "count": "both access counter",
    "byte": "a part of an address is read",
    "copy": "a part of an address is read",
    "union": "a part of an address is read",
    "memcmp": "memcmp reads an address as bytes",
    "sorted": "a part of an address is read",
    "grown pointers": "a part of an address is read",
    "vector": "a part of an address is read",
    "handle byte": "a part of an address is read",
    "fraction": "arithmetic on addresses",
    "wide": "arithmetic on addresses",
    "threshold": "arithmetic on addresses",
    "remainder": "arithmetic on addresses",
    "bit": "arithmetic on addresses",
    "difference": "arithmetic on addresses",
    "sum": "arithmetic on addresses",
    "far": "arithmetic on addresses",
    "path": "/proc/uptime",
    "link": "chance.link",
    "folder": "/proc/self/fd",
    "free pages": "sysconf",
}
CPP = {
    "number": "both access _ZL5found",
    "word": "both access _ZL4text",
    "line": "both access _ZL4text",
    "append": "both access _ZL4text",
    "assign": "both access _ZL4text",
    "prints": "both access _ZL7letters",
    "printed string": "both access _ZL4text",
    "state": "both access libstdc++",
    "list": "both access",
    "insert": "both access",
    "erase": "both access",
    "step": "both access",
    "hash": "reads an address as bytes",
}
MODELLED = ["barrier", "c11 in order", "fresh", "grown", "stack", "callback", "environment", "addresses at work"]


@pytest.fixture(scope="session")
def chance(toolchain: int, tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = Path(__file__).with_name("chance.c")
    made = made_once(
        tmp_path_factory, "epa-chance", lambda folder: build([source], folder / "p.epa", version=toolchain) and None
    )
    return made / "p.epa"


@pytest.mark.slow
@pytest.mark.parametrize("mode", REFUSED)
def test_refused(mode: str, chance: Path, tmp_path: Path) -> None:
    run(chance, [mode], tmp_path / "trace", base=tmp_path)
    found = check(Recording(tmp_path / "trace"))
    assert found.verdict.status == "violated"
    said = [w.object for w in found.witnesses] + found.nondeterministic + [found.verdict.message or ""]
    assert any(REFUSED[mode] in text for text in said), said


@pytest.fixture(scope="session")
def chance_cpp(toolchain: int, tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = Path(__file__).with_name("chance.cpp")
    made = made_once(
        tmp_path_factory, "epa-chance-cpp", lambda folder: build([source], folder / "p.epa", version=toolchain) and None
    )
    return made / "p.epa"


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "object_"), [("free", "T_0:malloc"), ("frame", "T_0_1:local")])
def test_the_end_of_an_object_is_an_access(mode: str, object_: str, chance: Path, tmp_path: Path) -> None:
    """One thread frees or leaves what the other reads. In the recorded run, either can be the first."""
    run(chance, [mode], tmp_path / "trace")
    found = check(Recording(tmp_path / "trace"))
    assert found.verdict.status == "violated"
    said = [w.object for w in found.witnesses] + found.nondeterministic
    assert any(text.startswith((object_, "a read of freed memory")) for text in said), said


@pytest.mark.slow
@pytest.mark.parametrize("mode", CPP)
def test_what_the_library_of_cpp_shares(mode: str, chance_cpp: Path, tmp_path: Path) -> None:
    """The code of strings, streams, lists and trees is in the library. In the other mode, each thread has its own."""
    run(chance_cpp, [mode], tmp_path / "trace", base=tmp_path)
    found = check(Recording(tmp_path / "trace"))
    assert found.verdict.status == "violated"
    said = [w.object for w in found.witnesses] + found.nondeterministic + [found.verdict.message or ""]
    assert any(CPP[mode] in text for text in said), said


@pytest.mark.slow
def test_threads_with_containers_of_their_own(chance_cpp: Path, tmp_path: Path) -> None:
    run(chance_cpp, ["own"], tmp_path / "golden")
    golden = Recording(tmp_path / "golden")
    found = check(golden)
    assert (found.verdict.status, found.nondeterministic, found.unseen) == ("holds", [], [])
    run(chance_cpp, ["own"], tmp_path / "again", yields=1)
    assert golden.native.outcome(Recording(tmp_path / "again").native) == (True, False)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODELLED)
def test_modelled(mode: str, chance: Path, tmp_path: Path) -> None:
    """The check accepts them, and runs in other schedules have the same trace and the same output."""
    run(chance, [mode], tmp_path / "golden")
    golden = Recording(tmp_path / "golden")
    found = check(golden)
    assert (found.verdict.status, found.nondeterministic) == ("holds", [])
    for seed in range(1, 4):
        run(chance, [mode], tmp_path / "again", yields=seed)
        again = Recording(tmp_path / "again")
        assert golden.native.outcome(again.native) == (True, False)
        assert again.output == golden.output


@pytest.mark.slow
def test_what_is_not_known_is_not_accepted(chance: Path, tmp_path: Path) -> None:
    """An unlisted function makes the verdict inconclusive. With --allow, it is an assumption."""
    run(chance, ["unknown"], tmp_path / "trace")
    recording = Recording(tmp_path / "trace")
    found = check(recording)
    assert (found.verdict.status, found.unseen) == ("inconclusive", ["a64l"])
    run(chance, ["memcpy"], tmp_path / "pointer")
    assert check(Recording(tmp_path / "pointer")).unseen == ["memcpy through a pointer"]
    allowed = check(recording, allow=["a64l"])
    assert allowed.verdict.status == "holds"
    assert any("a64l" in text for text in allowed.assumptions)


@pytest.mark.slow
def test_assumptions_are_stated(chance: Path, tmp_path: Path) -> None:
    run(chance, ["machine"], tmp_path / "trace")
    found = check(Recording(tmp_path / "trace"))
    assert found.verdict.status == "holds"
    assert any("getenv" in text and "same in each run" in text for text in found.assumptions)
    run(chance, ["stderr"], tmp_path / "trace")
    assert check(Recording(tmp_path / "trace"), allow=["stderr"]).verdict.status == "holds"


@pytest.mark.slow
def test_functions_that_ask_to_be_inlined_have_frames(toolchain: int, tmp_path: Path) -> None:
    """Else, the variables of the caller would be unknown memory after the call."""
    source = tmp_path / "inlined.c"
    source.write_text(
        "static inline __attribute__((always_inline)) int twice(int x) { int y = x; return y * 2; }\n"
        "extern inline __attribute__((always_inline, gnu_inline)) int thrice(int x) { return twice(x) + x; }\n"
        "int main(void) { int a = 3, b = twice(a), c = thrice(b); return a + b + c - 27; }\n",
        encoding="utf-8",
    )
    build([source], tmp_path / "p.epa", version=toolchain)
    assert run(tmp_path / "p.epa", [], tmp_path / "trace").code == 0
    found = check(Recording(tmp_path / "trace"))
    assert (found.verdict.status, found.assumptions, found.unseen) == ("holds", [], [])


@pytest.mark.slow
def test_an_instruction_that_is_not_known_is_refused(toolchain: int, tmp_path: Path) -> None:
    source = tmp_path / "jump.c"
    source.write_text('int main(void) { __asm__ goto("" : : : : out); return 1; out: return 0; }\n', encoding="utf-8")
    with pytest.raises(UsageError, match=r"jump\.c:1: the LLVM instruction with opcode 67 is not supported"):
        build([source], tmp_path / "jump.epa", version=toolchain)


@pytest.mark.parametrize(
    ("text", "harmless"),
    [("", True), ("# only a comment", True), ("pause", True), ("rep; nop", True), ("mfence", True), ("lock; incl $0", False),
     ("nop\\0Ardtsc", False), ("cpuid", False), ("syscall", False)],
)  # fmt: skip
def test_assembly(text: str, harmless: bool) -> None:
    assert assembly_is_harmless(text) == harmless


def test_names_of_no_known_function() -> None:
    """Everything that is not listed is unknown: also intrinsics, and C++ functions with a state."""
    names = """
        frobnicate statx vprintf memfrob llvm.masked.gather.v4i32 llvm.x86.avx2.gather.d.d.256 llvm.x86.sse3.ldu.dq
        llvm.x86.avx.maskstore.ps _ZNSolsEPSt15basic_streambufIcSt11char_traitsIcEE _ZNSt6locale6globalERKS_
    """
    for name in names.split():
        assert knowledge(name) == "unknown", name
    for name in ("llvm.x86.rdrand.32", "llvm.readcyclecounter", "clone", "getrandom"):
        assert knowledge(name) == "nondeterministic", name
    assert not intrinsic_is_known("llvm.thread.pointer")
