"""The programs of Saissi 2019, section 5.5.1, and two more: their sources, their inputs, and the published figures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from plait.bench.errors import FailedError
from plait.epa.instrumentation.build import build
from plait.epa.run import run


class Published(NamedTuple):
    """The figures of a program in Tables 8 and 10. Times are in seconds."""

    lines: int
    threads: int
    instructions: int
    objects: int
    dependencies: int
    solver: float
    check: float
    sanitize: float
    compare: float


class Program(NamedTuple):
    """A program, the size of its input, and its arguments after the number of threads and the name of the input."""

    name: str
    size: tuple[str, ...]
    threads: int
    arguments: tuple[str, ...] = ()
    published: Published | None = None


PROGRAMS = [
    Program("quicksort", ("170",), 72, (), Published(198, 72, 45_000, 38, 24_650, 30.36 * 60, 30.38 * 60, 1.57, 0.3)),
    Program(
        "pca", ("21", "4"), 6, ("2",), Published(301, 17, 89_000, 64, 12_126, 150.41 * 60, 150.43 * 60, 1.29, 0.17)
    ),
    Program(
        "kmeans",
        ("14", "2"),
        13,
        ("3", "8"),
        Published(425, 65, 44_000, 31, 13_460, 81.93 * 60, 81.94 * 60, 0.79, 0.13),
    ),
    Program("blackscholes", ("30",), 3, ("4",), Published(393, 3, 91_000, 13, 2_810, 0.87 * 60, 0.99 * 60, 1.58, 0.2)),
    Program(
        "swaptions",
        ("5",),
        4,
        ("8", "2"),
        Published(1118, 4, 1_100_000, 16, 22_630, 116.66 * 60, 144.61 * 60, 8.57, 2.86),
    ),
    Program("fft", ("32",), 4),
    Program("wordcount", ("60",), 4, ("10",)),
]


class Built(NamedTuple):
    """An instrumented program with its input."""

    program: Program
    binary: Path
    input: Path
    lines: int

    @property
    def name(self) -> str:
        """The name of the program."""
        return self.program.name

    def arguments(self, threads: int) -> list[str]:
        """The command line for a number of threads. With one thread, the program creates none."""
        return [str(threads), str(self.input), *self.program.arguments]


def sources(folder: Path, name: str) -> list[Path]:
    """The C files of a program: its own file or folder, and the file that all programs share."""
    own = sorted((folder / name).glob("*.c")) if (folder / name).is_dir() else [folder / f"{name}.c"]
    return [*own, folder / "support.c"]


def code_lines(files: Sequence[Path]) -> int:
    """The lines of C files that are neither blank nor only comment, with those of the headers beside them."""
    headers = {header for file in files for header in file.parent.glob("*.h")}
    return sum(map(_code_lines, {*files, *headers}))


def _code_lines(file: Path) -> int:
    bare = re.sub(r"/\*.*?\*/|//[^\n]*", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
    return sum(1 for line in bare.splitlines() if line.strip())


def build_program(program: Program, folder: Path, target: Path) -> Built:
    """Instrument a program, and let it generate its input. `target` is not in /dev: the check refuses devices."""
    files = sources(folder, program.name)
    binary, data = target / f"{program.name}.epa", target / f"{program.name}.data"
    build(files, binary)
    done = run(binary, ["generate", str(data), *program.size], target / "generate")
    if done.code:
        raise FailedError(f"{program.name} cannot generate its input: {done.ending}")
    return Built(program, binary, data, code_lines(files))
