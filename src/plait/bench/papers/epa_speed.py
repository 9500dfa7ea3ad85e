"""The speed of `plait epa` beside the tables of Saissi 2019: recording against -O2, and reading a trace back.

All numbers are processor times: a machine with other work does not change them much.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from plait.bench.engine.common import median
from plait.bench.options import Options
from plait.bench.table import Cell, Table
from plait.epa.instrumentation.toolchain import find_all
from plait.epa.output.text import object_blocks
from plait.epa.recording import Recording, overview
from plait.epa.run import run as record

REPEATS = 3
TEXT = 2.0
"""The goal for `plait epa sanitize`: seconds for a million records as text."""


def speed(
    table: Table, options: Options, programs: dict[str, Path], long: Mapping[str, tuple[str, ...]], folder: Path
) -> None:
    """Record long runs of all programs, count their records, and write the trace of a shorter run as text."""
    toolchain = find_all()[0]
    for name, program in programs.items():
        options.tell(f"speed: {name}")
        fast, trace = folder / f"{name}.fast", folder / "fast"
        source = str(options.examples / "epa" / f"{name}.c")
        subprocess.run([toolchain.clang, "-O2", source, "-o", str(fast), "-lm", "-pthread"], check=True)
        arguments = list(long[name])
        before, after = [], []
        for _ in range(REPEATS):  # In turns, so that other work on the machine affects both.
            before.append(_spent(resource.RUSAGE_CHILDREN, _plain, [str(fast), *arguments]))
            shutil.rmtree(trace, ignore_errors=True)
            after.append(_spent(resource.RUSAGE_CHILDREN, record, program, arguments, trace))
        counted = _spent(resource.RUSAGE_SELF, overview, trace)
        records = overview(trace).records
        shutil.rmtree(trace)
        ratio = median(after) / median(before)
        table.raw[f"speed {name}"] = {"O2": before, "recorded": after, "counted": counted, "records": records}
        table.add(
            "Recording against -O2, and the end of plait epa run",
            name,
            measured=Cell(
                f"{median(before):.3f} s to {median(after):.2f} s; {records:,} records counted in {counted:.2f} s"
            ),
            ratio=Cell(f"{ratio:.1f} x"),
            target="≤ 10 x",
            met=ratio <= 10,
        )


def text(table: Table, options: Options, program: Path, arguments: tuple[str, ...], folder: Path) -> None:
    """Sanitize a trace, and write it as text."""
    options.tell("speed: text")
    trace, written = folder / "text", folder / "text.txt"
    record(program, list(arguments), trace)
    records = overview(trace).records

    def write() -> None:
        recording = Recording(trace)
        with written.open("w", encoding="utf-8") as out:
            out.writelines(recording.lines())
            out.writelines(object_blocks(recording))

    seconds = _spent(resource.RUSAGE_SELF, write)
    rate = seconds / records * 1e6
    table.raw["speed text"] = {"records": records, "seconds": seconds, "bytes": written.stat().st_size}
    table.add(
        "A sanitized trace as text",
        program.stem,
        measured=Cell(f"{records:,} records in {seconds:.2f} s"),
        ratio=Cell(f"{rate:.2f} s for a million"),
        target=f"≤ {TEXT:.0f} s for a million",
        met=rate <= TEXT,
    )
    shutil.rmtree(trace)
    written.unlink()


def _plain(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _spent(whose: int, action: Callable[..., Any], *arguments: Any) -> float:
    """The processor time of this process, or of its children, during an action."""
    before = resource.getrusage(whose)
    action(*arguments)
    after = resource.getrusage(whose)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
