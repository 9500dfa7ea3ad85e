"""Table 8 of Saissi 2019: do runs without a fault deviate? Memory and scheduling apart, with and without sanitizing.

*Memory*: the program runs with one thread, that is, without creating any. A naive comparison sees the addresses: two
traces are equal only if they are equal after sanitizing and if all objects have the same addresses. The addresses of the
first objects are enough to show a difference, so the number of different traces is a lower bound.

*Scheduling*: the program runs with threads and random yields, and all addresses are sanitized. A naive comparison sees one
sequence of events: two traces are equal only if they are equal thread by thread and if the threads take turns at the same
events. A trace orders only synchronisation, so this is a lower bound too.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from plait.bench.epa.programs import Built
from plait.bench.errors import FailedError
from plait.bench.options import Options
from plait.bench.table import Cell, Column, Table
from plait.epa.recording import Recording
from plait.epa.reversibility import Reversibility, check
from plait.epa.run import run

COLUMNS = [
    Column("lines"),
    Column("threads"),
    Column("instructions"),
    Column("memory_naive", "memory: naive"),
    Column("memory", "sanitized"),
    Column("schedule_naive", "schedule: naive"),
    Column("schedule", "sanitized"),
    Column("golden", "golden run"),
]
PAPER = "Saissi 2019"
_ADDRESSES = 200
"""The number of objects whose addresses are compared."""


class Repeated(NamedTuple):
    """Repeated runs of a program, compared with the first one."""

    golden: Recording
    runs: int
    naive: int
    """Runs whose trace differs without sanitizing."""
    distinct: int
    """Different traces among all runs, without sanitizing."""
    sanitized: int
    """Runs whose sanitized trace differs."""


class Soundness(NamedTuple):
    """The golden run of a program with threads, and whether it is pseudo-deterministic."""

    golden: Recording
    check: Reversibility

    @property
    def holds(self) -> bool:
        """Whether comparisons with this run are sound."""
        return self.check.verdict.status == "holds"


def measure_soundness(
    whole: Table, options: Options, programs: Sequence[Built], runs: int, folder: Path
) -> dict[str, Soundness]:
    """Repeat all programs without a fault. Each row has shares of runs that deviate from the golden run."""
    table = Table(
        "epa-table-8",
        "Table 8: runs without a fault, share that deviates from the golden run",
        COLUMNS,
        "source",
        conditions=(
            f"memory: {runs:,} runs of each program with one thread; schedule: {runs:,} with threads and random yields; "
            "lines: without comments and blank lines; threads: those that are created; instructions: recorded events"
        ),
    )
    whole.parts.append(table)
    found: dict[str, Soundness] = {}
    for built in programs:
        options.tell(f"runs without a fault: {built.name}, one thread")
        memory = repeat(built, 1, runs, options.jobs, folder, addresses, yields=False)
        options.tell(f"runs without a fault: {built.name}, {built.program.threads} threads")
        schedule = repeat(built, built.program.threads, runs, options.jobs, folder, turns, yields=True)
        sound = found[built.name] = Soundness(schedule.golden, check(schedule.golden))
        threads = len(schedule.golden.threads) - 1
        events = sum(thread.events for thread in schedule.golden.threads)
        table.add(
            built.name,
            "Plait",
            lines=Cell(built.lines),
            threads=Cell(threads),
            instructions=Cell(events),
            memory_naive=Cell(memory.naive / runs, "share"),
            memory=Cell(memory.sanitized / runs, "share", expected=0),
            schedule_naive=Cell(schedule.naive / runs, "share"),
            schedule=Cell(schedule.sanitized / runs, "share", expected=0 if sound.holds else None),
            golden=Cell("sound" if sound.holds else f"not sound: {sound.check.verdict.message}"),
        )
        table.raw[built.name] = {
            "runs": runs,
            "lines": built.lines,
            "threads": threads,
            "instructions": events,
            "memory": {"naive": memory.naive, "distinct": memory.distinct, "sanitized": memory.sanitized},
            "schedule": {"naive": schedule.naive, "distinct": schedule.distinct, "sanitized": schedule.sanitized},
        }
        _published(table, built)
    distinct = [(row["memory"]["distinct"], row["schedule"]["distinct"]) for row in table.raw.values()]
    table.summary.append(
        f"If nothing is sanitized, at least {min(d[0] for d in distinct):,} of {runs + 1:,} traces of each program are "
        f"different with one thread, and at least {min(d[1] for d in distinct):,} with threads."
    )
    return found


def _published(table: Table, built: Built) -> None:
    paper = built.program.published
    if paper is None:
        return
    table.add(
        built.name,
        PAPER,
        lines=Cell(paper.lines),
        threads=Cell(paper.threads),
        instructions=Cell(paper.instructions),
        memory_naive=Cell(1.0, "share"),
        memory=Cell(0.0, "share"),
        schedule_naive=Cell(1.0, "share"),
        schedule=Cell(0.0, "share"),
        golden=Cell("sound"),
    )


def repeat(
    built: Built,
    threads: int,
    runs: int,
    jobs: int,
    folder: Path,
    view: Callable[[Recording], Hashable],
    *,
    yields: bool,
) -> Repeated:
    """Run a program again and again. `view` is what a naive comparison sees besides the sanitized trace."""
    golden = _record(built, threads, folder / f"{built.name}-{threads}-golden", None)
    seen = {view(golden)}
    first = view(golden)
    naive = sanitized = 0
    for again in _recordings(built, threads, runs, jobs, folder, yields=yields):
        equal, _ = golden.native.outcome(again.native)
        own = view(again)
        seen.add(own if equal else (own, again.native.digest()))
        sanitized += not equal
        naive += not equal or own != first
        shutil.rmtree(again.folder)
    return Repeated(golden, runs, naive, len(seen), sanitized)


def _recordings(built: Built, threads: int, runs: int, jobs: int, folder: Path, *, yields: bool) -> Iterator[Recording]:
    """The recordings of runs, at most `jobs` at the same time."""

    def one(number: int) -> Recording:
        return _record(built, threads, folder / f"{built.name}-{number}", number + 1 if yields else None)

    if jobs == 1:
        yield from map(one, range(runs))
        return
    with ThreadPoolExecutor(jobs) as pool:
        for start in range(0, runs, 2 * jobs):  # in portions, because finished recordings wait in memory
            yield from pool.map(one, range(start, min(start + 2 * jobs, runs)))


def _record(built: Built, threads: int, folder: Path, yields: int | None) -> Recording:
    done = run(built.binary, built.arguments(threads), folder, yields=yields)
    if done.code:
        raise FailedError(f"{built.name} failed without a fault: {done.ending}")
    return Recording(folder)


def addresses(recording: Recording) -> Hashable:
    """The addresses of the first objects."""
    count = min(recording.native.object_count, _ADDRESSES)
    return tuple(recording.native.object(number)[4] for number in range(count))


def turns(recording: Recording) -> Hashable:
    """Which thread of the process performs how many events before the next thread does, as a digest."""
    found: list[tuple[int, int]] = []
    for thread, length, *_ in recording.native.runs():
        uid = recording.threads[thread].uid
        if found and found[-1][0] == uid:
            found[-1] = uid, found[-1][1] + length
        else:
            found.append((uid, length))
    return hashlib.blake2b(repr(found).encode()).digest()
