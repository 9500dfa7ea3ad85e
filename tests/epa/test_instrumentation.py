"""Instrumented programs do what they do without: one of each construct, C and C++, with every installed clang."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from plait.epa.recording import Recording
from plait.epa.run import run
from plait.epa.toolchain import Toolchain, find, find_all
from plait.kernel.errors import UsageError

HERE = Path(__file__).parent


def compiled(source: Path, toolchain: Toolchain, folder: Path) -> tuple[Path, str]:
    """The instrumented program, and the output of the plain one. One process can load only one libLLVM safely."""
    program, plain = folder / "program.epa", folder / "plain"
    code = (
        "from pathlib import Path; from plait.epa.build import build; "
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


@pytest.mark.parametrize("version", [14, 15, 16, 19])
def test_c(version: int, tmp_path: Path) -> None:
    toolchain = next((t for t in find_all() if t.version == version), None)
    if toolchain is None:
        pytest.skip(f"clang {version} with its libLLVM is not installed: apt-get install clang-{version}")
    faithful(HERE / "torture.c", toolchain, tmp_path)


def test_cpp(toolchain: int, tmp_path: Path) -> None:
    faithful(HERE / "torture.cpp", find(toolchain), tmp_path)


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plait.epa.toolchain.shutil.which", lambda _: None)
    with pytest.raises(UsageError, match="clang 14 or later with its libLLVM was not found") as error:
        find()
    assert "apt-get install clang-14" in str(error.value)
