"""The programs of the evaluation: compiled as they are, and instrumented with small inputs; each once for all workers."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from plait.bench.epa.programs import PROGRAMS, Built, build_program, code_lines, sources
from plait.epa.instrumentation.toolchain import Toolchain, find_all
from tests.support.once import made_once

FOLDER = Path(__file__).parents[3] / "examples" / "epa" / "programs"
SIZES = {
    "quicksort": (("40",), 6, ()),
    "pca": (("6", "3"), 2, ("2",)),
    "kmeans": (("8", "2"), 2, ("2", "3")),
    "blackscholes": (("5",), 3, ("2",)),
    "swaptions": (("2",), 2, ("1", "2")),
    "fft": (("8",), 2, ()),
    "wordcount": (("12",), 3, ("4",)),
}
"""The size of the input, threads, and further arguments."""
Call = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def toolchain() -> Toolchain:
    found = find_all()
    if not found:
        pytest.skip("clang with its libLLVM is not installed: apt-get install clang-14")
    return found[0]


@pytest.fixture(scope="session")
def call(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Call:
    """Run a program without instrumentation."""

    def compile_in(folder: Path, name: str) -> None:
        files = [str(file) for file in sources(FOLDER, name)]
        flags = ["-Wall", "-Wextra", "-Werror", "-O1", "-pthread", "-lm"]
        subprocess.run([toolchain.clang, *files, *flags, "-o", str(folder / name)], check=True)

    def run(name: str, *arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        folder = made_once(tmp_path_factory, f"plain-{name}", lambda target: compile_in(target, name))
        command: Sequence[str] = [str(folder / name), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == code, done.stderr
        return done

    return run


@pytest.fixture(scope="session")
def instrumented(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Built]:
    """A program that records itself, with a small input."""

    def make(name: str) -> Built:
        size, threads, arguments = SIZES[name]
        program = next(p for p in PROGRAMS if p.name == name)
        small = program._replace(size=size, threads=threads, arguments=arguments)
        folder = made_once(tmp_path_factory, f"recorded-{name}", lambda target: build_program(small, FOLDER, target))
        lines = code_lines(sources(FOLDER, name))
        return Built(small, folder / f"{name}.epa", folder / f"{name}.data", lines)

    return make
