"""Error propagation analysis: Tables 8 and 10 and Figure 17 of Saissi 2019, the overhead, and a comparison with Z3.

The tables are in `plait.bench.epa`, and use the programs in examples/epa/programs. The rows below them use the small
programs in examples/epa, with inputs of other sizes.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from plait.bench.engine.common import median, times
from plait.bench.epa.coverage import measure_coverage
from plait.bench.epa.programs import PROGRAMS, build_program
from plait.bench.epa.soundness import measure_soundness
from plait.bench.epa.times import measure_times
from plait.bench.errors import DifferenceError, SkippedError
from plait.bench.options import Options
from plait.bench.papers.epa_speed import speed, text
from plait.bench.table import Cell, Column, Table
from plait.epa.events import Event, fast_check, from_rows
from plait.epa.instrumentation.build import build
from plait.epa.instrumentation.toolchain import find_all
from plait.epa.recording import Recording
from plait.epa.reversibility import check
from plait.epa.run import run as record
from plait.epa.run import scratch
from plait.epa.solver import formula_decides
from plait.kernel.errors import Argument, UsageError

LARGE = {
    "quicksort": ("8", "2600"),
    "kmeans": ("4", "330"),
    "pca": ("4", "36", "34"),
    "blackscholes": ("3", "3900"),
    "swaptions": ("4", "16", "66"),
}
"""About a million records each."""
LONG = {
    "quicksort": ("4", "1500000"),
    "kmeans": ("4", "300000"),
    "pca": ("4", "400", "500"),
    "blackscholes": ("3", "2000000"),
    "swaptions": ("4", "64", "14000"),
}
"""Runs of 0.1 s and more without recording. The traces have up to 5 GB."""
POINTS = (3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Points of kmeans whose trace Z3 gets as a whole formula, until that takes too long."""
PUBLISHED = {
    program.name: (program.published.check, program.published.sanitize, program.published.compare)
    for program in PROGRAMS
    if program.published is not None
}
"""Table 10: seconds of the reversibility check, of sanitizing, and of comparing."""

COLUMNS = [Column("measured", published="published"), Column("ratio")]


def measure(options: Options) -> Table:
    """Measure runs without a fault, campaigns, the cost of each part, and the largest traces."""
    table = Table("epa", "Error propagation analysis: cost", COLUMNS, "what")
    examples = options.examples / "epa"
    for file in (examples / "kmeans.c", examples / "programs" / "support.c"):
        if not file.is_file():
            raise UsageError(f"{file} does not exist", hint=("run in the repository, or give ", Argument("examples")))
    folder = Path(tempfile.mkdtemp(prefix="plait-bench-epa-", dir=scratch()))
    try:
        with table.measuring():
            if not find_all():
                raise SkippedError("clang with libLLVM is not installed; apt-get install clang-14")
            programs = {name: folder / f"{name}.epa" for name in LARGE}
            for name, program in programs.items():
                options.tell(f"building {name}")
                build([examples / f"{name}.c"], program)
            evaluation(table, options, folder)
            million(table, options, programs, folder)
            overhead(table, options, programs, folder)
            speed(table, options, programs, LONG, folder)
            text(table, options, programs["kmeans"], LARGE["kmeans"], folder)
            against_the_formula(table, options, programs["kmeans"], folder)
            if not options.quick:
                fifty_million(table, options, programs["swaptions"], folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return table


def evaluation(table: Table, options: Options, folder: Path) -> None:
    """Tables 8 and 10 and Figure 17: each is a part of the table."""
    runs = options.runs or (4 if options.quick else 100)
    with tempfile.TemporaryDirectory(prefix="plait-bench-epa-") as target:
        built = []
        for program in PROGRAMS:
            options.tell(f"building {program.name} of examples/epa/programs")
            built.append(build_program(program, options.examples / "epa" / "programs", Path(target)))
        sound = measure_soundness(table, options, built, runs, folder)
        results = measure_coverage(table, options, built, sound, max(1, runs // 2), folder)
        measure_times(table, options, built, sound, results)


def million(table: Table, options: Options, programs: dict[str, Path], folder: Path) -> None:
    """Check, sanitize and compare traces of a million records, as long as the longest one in Saissi 2019."""
    for name, program in programs.items():
        options.tell(f"a million records: {name}")
        record(program, LARGE[name], folder / "one")
        record(program, LARGE[name], folder / "two", yields=1)
        one, sanitizing = timed(Recording, folder / "one")
        two = Recording(folder / "two")
        found, checking = timed(check, one)
        (equal, _), comparing = timed(one.native.outcome, two.native)
        if not equal or found.verdict.status != "holds":
            raise DifferenceError(f"{name}: {found.verdict.status}, equal: {equal}")
        records = one.native.records
        taken = {"check": checking, "sanitize": sanitizing, "compare": comparing}
        table.raw[f"million {name}"] = taken | {
            "records": records,
            "threads": len(one.threads),
            "objects": found.shared_objects,
            "dependencies": found.dependencies,
        }
        size = (
            f"{records / 1e6:.2f} M records, {found.shared_objects} shared objects, {found.dependencies:,} dependencies"
        )
        for (what, seconds), published in zip(taken.items(), PUBLISHED[name], strict=True):
            table.add(
                f"{name}, {size}",
                what,
                measured=Cell(seconds, "s", published=published),
                target="< 2 s",
                met=seconds < 2,
            )


def overhead(table: Table, options: Options, programs: dict[str, Path], folder: Path) -> None:
    """Compare the time of a recorded run with the program without instrumentation, both at -O0."""
    toolchain = find_all()[0]
    repeats = max(5, options.times)
    for name, program in programs.items():
        options.tell(f"overhead: {name}")
        plain = folder / f"{name}.plain"
        source = str(options.examples / "epa" / f"{name}.c")
        subprocess.run([toolchain.clang, "-O0", "-g", source, "-o", str(plain), "-lm", "-pthread"], check=True)
        arguments = list(LONG[name])
        before, after = [], []
        for _ in range(repeats):  # In turns, so that other work on the machine affects both.
            before.append(spent(_run_plain, plain, arguments))
            shutil.rmtree(folder / "slow", ignore_errors=True)
            after.append(spent(record, program, arguments, folder / "slow"))
        size = sum(p.stat().st_size for p in (folder / "slow").glob("thread-*.bin"))
        shutil.rmtree(folder / "slow")
        wall, processor = (median([a[i] for a in after]) / median([b[i] for b in before]) for i in (0, 1))
        table.raw[f"overhead {name}"] = {"plain": before, "recorded": after, "bytes": size}
        times_ = f"{median([b[0] for b in before]):.3f} s to {median([a[0] for a in after]):.2f} s"
        table.add(
            "Overhead of recording, at -O0",
            name,
            measured=Cell(f"{times_}, {size / 1e9:.1f} GB"),
            ratio=Cell(f"{wall:.1f} x, processor time {processor:.1f} x"),
            target="≤ 15 x",
            met=wall <= 15,
        )


def _run_plain(program: Path, arguments: list[str]) -> None:
    subprocess.run([program, *arguments], check=True, stdout=subprocess.DEVNULL)


def spent(action: Callable[..., Any], *arguments: Any) -> tuple[float, float]:
    """The wall time of an action, and the processor time of its child processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _, seconds = timed(action, *arguments)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def against_the_formula(table: Table, options: Options, program: Path, folder: Path) -> None:
    """Find the largest trace of kmeans that Z3 decides with the whole formula, and compare the times."""
    limit = 20.0 if options.quick else 120.0
    best: tuple[int, float, float] | None = None
    for points in POINTS:
        options.tell(f"the formula in Z3: kmeans 2 {points}")
        record(program, ["2", str(points)], folder / "formula")
        recording = Recording(folder / "formula")
        steps: list[Event] = from_rows(recording.native.steps())
        answer, slow = timed(partial(formula_decides, timeout=limit), steps)
        if answer is None or slow > limit:
            break
        found, fast = timed(fast_check, steps)
        if bool(found.pairs) != answer:
            raise DifferenceError(f"kmeans 2 {points}: Z3 finds {answer} for the whole formula, the fast check differs")
        best = (len(steps), slow, fast)
        if slow > limit / 2:
            break
    if best is not None:
        count, slow, fast = best
        table.raw["formula"] = {"steps": count, "z3": slow, "clocks": fast}
        table.add(
            "Reversibility check, compared with the whole formula",
            f"Z3 on {count:,} steps of kmeans",
            measured=Cell(f"{slow:.2f} s against {fast * 1e3:.2f} ms"),
            ratio=times(slow / fast),
            target="≥ 100 x",
            met=slow / fast >= 100,
        )


def fifty_million(table: Table, options: Options, program: Path, folder: Path) -> None:
    """Analyze a trace of more than 50 million records, in its own process."""
    options.tell("50 million records: swaptions")
    record(program, ["4", "64", "840"], folder / "huge")
    code = (
        "import sys; from pathlib import Path; from plait.epa.recording import Recording; "
        "from plait.epa.reversibility import check; r = Recording(Path(sys.argv[1])); s = check(r).verdict.status; "
        "e = r.native.outcome(r.native)[0]; "
        "peak = next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1]; "
        "print(r.native.records, s, e, peak)"  # Not ru_maxrss, which a child inherits.
    )
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder / "huge")], capture_output=True, text=True, check=True
    )
    records, status, equal, peak = done.stdout.split()
    gib = int(peak) / 2**20
    seconds = time.perf_counter() - start
    table.raw["huge"] = {"records": int(records), "peak_gib": gib, "seconds": seconds}
    table.add(
        f"{int(records) / 1e6:.1f} M records of swaptions",
        f"sanitize, check ({status}), compare ({equal})",
        measured=Cell(f"{seconds:.1f} s, {gib:.2f} GiB"),
        target="< 8 GiB",
        met=gib < 8,
    )


def timed(action: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """The result of an action, and its time."""
    start = time.perf_counter()
    result = action(*arguments)
    return result, time.perf_counter() - start
