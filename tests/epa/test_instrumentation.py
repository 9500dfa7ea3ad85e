"""Instrumented programs do what they do without: one of each construct, C and C++, with every installed clang."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from plait.epa.instrumentation.build import build
from plait.epa.instrumentation.toolchain import Toolchain, find, find_all
from plait.epa.recording import Recording
from plait.epa.run import run
from plait.kernel.errors import UsageError
from tests.epa.conftest import EXAMPLES, Record
from tests.epa.listings import lines

HERE = Path(__file__).parent


def compiled(source: Path, toolchain: Toolchain, folder: Path) -> tuple[Path, str]:
    """The instrumented program, and the output of the plain one. One process can load only one libLLVM safely."""
    program, plain = folder / "program.epa", folder / "plain"
    code = (
        "from pathlib import Path; from plait.epa.instrumentation.build import build; "
        f"build([Path({str(source)!r})], Path({str(program)!r}), version={toolchain.version})"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    compiler = toolchain.clang_cpp if source.suffix == ".cpp" else toolchain.clang
    subprocess.run([compiler, "-w", "-O0", str(source), "-o", str(plain), "-lm", "-pthread"], check=True)
    return program, subprocess.run([plain], capture_output=True, text=True, check=True).stdout


def faithful(source: Path, toolchain: Toolchain, folder: Path) -> None:
    program, expected = compiled(source, toolchain, folder)
    done = run(program, [], folder / "one")
    assert (done.code, (folder / "one" / "stdout").read_text()) == (0, expected)
    run(program, [], folder / "two", yields=5)
    one, two = Recording(folder / "one"), Recording(folder / "two")
    assert one.native.outcome(two.native) == (True, False)
    # Without a folder for the trace, the program runs as ever.
    assert subprocess.run([program], capture_output=True, text=True, check=True).stdout == expected


@pytest.mark.slow
@pytest.mark.parametrize("version", [14, 15, 16, 19])
def test_c(version: int, tmp_path: Path) -> None:
    toolchain = next((t for t in find_all() if t.version == version), None)
    if toolchain is None:
        pytest.skip(f"clang {version} with its libLLVM is not installed: apt-get install clang-{version}")
    faithful(HERE / "torture.c", toolchain, tmp_path)


@pytest.mark.slow
def test_cpp(toolchain: int, tmp_path: Path) -> None:
    faithful(HERE / "torture.cpp", find(toolchain), tmp_path)


def events(recording: Recording) -> list[list[str]]:
    """What is shown of each thread, but for addresses of labels: the two programs differ there."""
    shown = [lines(recording, thread.name) for thread in recording.threads]
    return [[line for line in thread if "program+" not in line] for thread in shown]


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    [HERE / "torture.c", HERE / "arithmetic.c", EXAMPLES / "kmeans.c", EXAMPLES / "pca.c", EXAMPLES / "words.cpp"],
    ids=lambda source: source.name,
)
def test_what_the_reader_computes_is_what_the_machine_computed(source: Path, toolchain: int, tmp_path: Path) -> None:
    """A program that records every result, and one whose reader computes what it can: equal events."""
    found = []
    for lean in (True, False):
        program, folder = tmp_path / f"{lean}.epa", tmp_path / f"{lean}.trace"
        table, _ = build([source], program, version=toolchain, lean=lean)
        assert bool(table.formulas) is lean
        assert run(program, [], folder).code == 0
        found.append(Recording(folder))
    if source.name == "torture.c":
        assert events(found[0]) == events(found[1])
    else:
        assert found[0].native.outcome(found[1].native) == (True, False)
    assert found[0].native.records == found[1].native.records > 100
    sizes = [sum(p.stat().st_size for p in r.folder.glob("thread-*.bin")) for r in found]
    assert sizes[0] < sizes[1]


@pytest.mark.slow
def test_a_program_continues_with_the_sign_of_a_comparison(record: Record) -> None:
    """C promises no more than the sign. What glibc returns depends on the processor, and on where the strings are."""
    source = """#include <stdio.h>
#include <string.h>
int main(void) {
    char a[] = "apple", z[] = "zebra";
    printf("%d %d %d %d\\n", strcmp(a, z), strcmp(z, a), memcmp(a, a, 5), strncmp(z, "zoo", 2));
    return 0;
}
"""
    recording = record(source)
    assert (recording.folder / "stdout").read_text() == "-1 1 0 -1\n"


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plait.epa.instrumentation.toolchain.shutil.which", lambda _: None)
    with pytest.raises(UsageError, match="clang 14 or later with its libLLVM was not found") as error:
        find()
    assert "apt-get install clang-14" in str(error.value)
