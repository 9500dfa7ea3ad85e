"""`plait bench peers`: Plait, Spin, Stateright and TLC on the same protocols.

No reduction is used, so all checkers must find the same states. Otherwise their speeds cannot be compared. The checkers
take turns on each setting, so that a slow minute of the machine affects all of them.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path

from plait.bench.errors import FailedError, MissingError
from plait.bench.options import Options
from plait.bench.peers.checker import Case, Checker
from plait.bench.peers.own import Plait
from plait.bench.peers.process import run
from plait.bench.peers.spin import Spin
from plait.bench.peers.stateright import Stateright
from plait.bench.peers.tlc import Tlc
from plait.bench.report.cells import times
from plait.bench.table import Cell, Column, Plot, Row, Table

TIMEOUT = 900.0
"""Seconds after which a checker is stopped."""
MANY = 100_000
"""With fewer states than this, start-up dominates, and no speed is reported."""

QUICK = {
    # The TLA+ specification TwoPhase, and Stateright's example.
    "Two-phase commit, 3 resource managers": Case("two_phase_commit", (3,), 288),
    "Paxos (1, 3, 1)": Case("paxos", (1, 3, 1), 177),
    "Lamport mutex, 2 processes, clocks to 4": Case("lamport_mutex", (2, 4), 401),
    "Raft, 3 servers, 2 of them candidates": Case("raft", (3, 2, 2, 1), 5_521),
    # Stateright's example examples/paxos.rs.
    "Register Paxos, 2 clients": Case("register_paxos", (2, 3), 16_668),
}
SETTINGS = {
    "Two-phase commit, 5 resource managers": Case("two_phase_commit", (5,), 8_832),
    "Two-phase commit, 8 resource managers": Case("two_phase_commit", (8,), 1_745_408),
    # Each ballot has 177 or 681 states of its own (docs/decisions/0006): a power with the number of proposers.
    "Paxos (2, 3, 1)": Case("paxos", (2, 3, 1), 177**2),
    "Paxos (2, 3, 2)": Case("paxos", (2, 3, 2), 681**2),
    "Paxos (3, 3, 1)": Case("paxos", (3, 3, 1), 177**3),
    # LamportMutex of the TLA+ examples; TLC counted the states.
    "Lamport mutex, 3 processes, clocks to 6": Case("lamport_mutex", (3, 6), 724_274),
    # Two terms each. Complete searches: checkers that stop after a number of states would not stop at the same ones.
    "Raft, 3 servers": Case("raft", (3, 3, 2, 1), 23_442),
    "Raft, 3 servers, 2 of them candidates, logs of 2 entries": Case("raft", (3, 2, 2, 2), 886_637),
    "Raft, 4 servers": Case("raft", (4, 4, 2, 1), 1_308_921),
    "Raft, 5 servers, 1 of them candidate": Case("raft", (5, 1, 2, 1), 172_873),
    "Register Paxos, 2 clients": Case("register_paxos", (2, 3), 16_668),
    "Register Paxos, 3 clients": Case("register_paxos", (3, 3), 1_194_428),
}


COLUMNS = [
    Column("states"),
    Column("transitions", shown=False),
    Column("verdict", shown=False),
    Column("search_time", "search time"),
    Column("process_time", "process time", shown=False),
    Column("rate", "states/s"),
    Column("slower", "Plait's speed-up"),
    Column("cpu_time", "CPU time"),
    Column("memory", "peak memory"),
    Column("larger", "memory / Plait's"),
]


def measure(options: Options) -> Table:
    """Run every installed checker on every setting."""
    return compare(options, [Plait(), Spin(), Stateright(), Tlc(options.tla2tools)])


def compare(options: Options, checkers: Sequence[Checker]) -> Table:
    """Run these checkers on every setting for which they have a model."""
    table = Table(
        "peers",
        "Plait and its peers: the same protocols, the same states",
        COLUMNS,
        "checker",
        plot=Plot("rate", "states per second", "memory"),
    )
    with table.measuring():
        versions = _versions(table, checkers, options)
        workers = f"{options.workers} worker{'s' if options.workers > 1 else ''} each"
        workers += " (Spin: one)" if options.workers > 1 else ""
        table.conditions = f"{', '.join(versions.values())}; every state, no reduction, {workers}"
        with tempfile.TemporaryDirectory(prefix="plait-peers-") as folder:
            _fill(table, [c for c in checkers if c.name in versions], options, Path(folder))
    table.summary += _summary(table.rows)
    return table


def _versions(table: Table, checkers: Sequence[Checker], options: Options) -> dict[str, str]:
    """The versions of the installed checkers. The others are noted in the table."""
    versions: dict[str, str] = {}
    for checker in checkers:
        options.tell(f"looking for {checker.name}")
        try:
            versions[checker.name] = checker.version()
        except MissingError as error:
            table.missing[checker.name] = f"{error}; {error.hint}"
    return versions


def _fill(table: Table, checkers: Sequence[Checker], options: Options, folder: Path) -> None:
    cases = QUICK if options.quick else SETTINGS
    turns = [(name, case, c) for name, case in cases.items() for c in checkers if c.has(case.protocol)]
    ours: Row | None = None
    for number, (name, case, checker) in enumerate(turns, 1):
        options.tell(f"{number}/{len(turns)}  {name}: {checker.name}")
        base = ours if ours is not None and ours.setting == name else None
        row = _add(table, name, case, checker, options.workers, folder, base)
        if checker.name == Plait.name:
            ours = row


def _add(
    table: Table, name: str, case: Case, checker: Checker, workers: int, folder: Path, ours: Row | None
) -> Row:  # fmt: skip
    try:
        prepared = checker.prepare(case, workers, folder)
        measured = run(prepared.command, cwd=prepared.cwd, timeout=TIMEOUT)
        counts = checker.read(measured.output, measured.code)
    except FailedError as error:
        return table.add(name, checker.name, states=Cell(None, expected=case.states), failed=str(error))
    rate = counts.states / counts.seconds if counts.states >= MANY and counts.seconds else None
    our_rate, our_memory = (None, None) if ours is None else (ours.value("rate"), ours.value("memory"))
    return table.add(
        name,
        checker.name,
        states=Cell(counts.states, expected=case.states),
        transitions=Cell(counts.transitions, expected=None if ours is None else ours.value("transitions")),
        verdict=Cell("violated" if counts.violated else "holds", expected="holds"),
        search_time=Cell(counts.seconds, "s"),
        process_time=Cell(measured.seconds, "s"),
        rate=None if rate is None else Cell(rate, "1/s"),
        slower=None if rate is None or our_rate is None else Cell(our_rate / rate, "x"),
        cpu_time=Cell(measured.cpu_seconds, "s"),
        memory=Cell(measured.memory_bytes, "B"),
        larger=None if our_memory is None else Cell(measured.memory_bytes / our_memory, "x"),
    )


def _summary(rows: list[Row]) -> list[str]:
    """Whether the counts agree, and the geometric mean of the speed ratios for each peer."""
    differing = [f"{row.setting}, {row.variant}" for row in rows if row.differs]
    counted = [row for row in rows if row.failed is None]
    lines = []
    if differing:
        lines.append(f"COUNTS DIFFER, so the speeds cannot be compared: {'; '.join(differing)}.")
    elif counted:
        lines.append(
            f"All {len(counted)} counts are as expected: on each setting the checkers agree on states and transitions."
        )
    for name in dict.fromkeys(row.variant for row in rows):
        slower = [row.value("slower") for row in rows if row.variant == name and not row.differs]
        slower = [ratio for ratio in slower if ratio]
        if slower:
            mean = math.exp(sum(map(math.log, slower)) / len(slower))
            between = f" (geometric mean; from {times(min(slower))} to {times(max(slower))})" if len(slower) > 1 else ""
            lines.append(f"Plait explores {times(mean)} times as many states per second as {name}{between}.")
    return lines
