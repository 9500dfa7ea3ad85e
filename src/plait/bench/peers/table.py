"""`plait bench peers`: Plait, Spin, Stateright and TLC on protocols that are stated the same way for each.

Nothing is reduced, so each must find the same states; only then does it mean anything how fast they are. They take turns
on a setting, so that a slow minute of the machine hits neighbours alike.
"""

from __future__ import annotations

import math
import os
import platform
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from plait.bench.comparison import PeerRow, PeerTable, times
from plait.bench.peers.checker import Case, Checker, MissingError
from plait.bench.peers.measure import FailedError, measure
from plait.bench.peers.own import Plait
from plait.bench.peers.spin import Spin
from plait.bench.peers.stateright import Stateright
from plait.bench.peers.tlc import Tlc

TIMEOUT = 900.0
"""Seconds after which a checker is stopped."""
MANY = 100_000
"""States from which on the speed of a search means anything: before, it is the time to get started."""

QUICK = {
    # The TLA+ specification TwoPhase, and Stateright's example.
    "Two-phase commit, 3 resource managers": Case("two_phase_commit", (3,), 288),
    "Paxos (1, 3, 1)": Case("paxos", (1, 3, 1), 177),
    "Lamport mutex, 2 processes, clocks to 4": Case("lamport_mutex", (2, 4), 401),
    # Stateright's example examples/paxos.rs.
    "Register Paxos, 2 clients": Case("register_paxos", (2, 3), 16_668),
}
SETTINGS = {
    "Two-phase commit, 5 resource managers": Case("two_phase_commit", (5,), 8_832),
    "Two-phase commit, 8 resource managers": Case("two_phase_commit", (8,), 1_745_408),
    # A state is one state for each ballot (docs/decisions/0006): 177 and 681 to the power of the proposers.
    "Paxos (2, 3, 1)": Case("paxos", (2, 3, 1), 177**2),
    "Paxos (2, 3, 2)": Case("paxos", (2, 3, 2), 681**2),
    "Paxos (3, 3, 1)": Case("paxos", (3, 3, 1), 177**3),
    # LamportMutex of the TLA+ examples, as TLC counts it.
    "Lamport mutex, 3 processes, clocks to 6": Case("lamport_mutex", (3, 6), 724_274),
    "Register Paxos, 2 clients": Case("register_paxos", (2, 3), 16_668),
    "Register Paxos, 3 clients": Case("register_paxos", (3, 3), 1_194_428),
}


def machine() -> str:
    """What the figures depend on."""
    cpus = Path("/proc/cpuinfo")
    models = [line for line in cpus.read_text().splitlines() if line.startswith("model name")] if cpus.exists() else []
    cpu = models[0].split(":", 1)[1].strip() if models else platform.processor() or platform.machine()
    return f"{cpu}, {os.cpu_count()} cores"


def peers_table(
    *,
    quick: bool = False,
    workers: int = 1,
    jar: Path | None = None,
    tell: Callable[[str], None] = lambda _: None,
    checkers: Iterable[Checker] | None = None,
    settings: Mapping[str, Case] | None = None,
) -> PeerTable:
    """Measure; `checkers` and `settings` are for those who want to see others."""
    chosen = [Plait(), Spin(), Stateright(), Tlc(jar)] if checkers is None else list(checkers)
    cases = settings if settings is not None else QUICK if quick else SETTINGS
    versions, missing = _present(chosen, tell)
    present = [checker for checker in chosen if checker.name in versions]
    rows: list[PeerRow] = []
    complete = True
    try:
        with tempfile.TemporaryDirectory(prefix="plait-peers-") as folder:
            rows.extend(_rows(cases, present, workers, Path(folder), tell))
    except KeyboardInterrupt:
        complete = False
    each = f"{workers} worker{'s' if workers > 1 else ''} each" + (" (Spin: one)" if workers > 1 else "")
    conditions = f"{', '.join(versions.values())}; every state, no reduction, {each}; {machine()}"
    title = "Plait and its peers: the same protocols, the same states"
    return PeerTable("peers", title, rows, conditions, missing, _summary(rows), complete)


def _present(checkers: list[Checker], tell: Callable[[str], None]) -> tuple[dict[str, str], dict[str, str]]:
    versions: dict[str, str] = {}
    missing: dict[str, str] = {}
    for checker in checkers:
        tell(f"looking for {checker.name}")
        try:
            versions[checker.name] = checker.version()
        except MissingError as error:
            missing[checker.name] = f"{error}; {error.hint}"
    return versions, missing


def _rows(
    cases: Mapping[str, Case], checkers: list[Checker], workers: int, folder: Path, tell: Callable[[str], None]
) -> Iterator[PeerRow]:
    turns = [(name, case, c) for name, case in cases.items() for c in checkers if c.has(case.protocol)]
    ours: PeerRow | None = None
    for number, (name, case, checker) in enumerate(turns, 1):
        tell(f"{number}/{len(turns)}  {name}: {checker.name}")
        row = _row(name, case, checker, workers, folder)
        if checker.name == Plait.name:
            ours = row
        elif ours is not None and ours.setting == name:
            row = _compared(row, ours)
        yield row


def _row(name: str, case: Case, checker: Checker, workers: int, folder: Path) -> PeerRow:
    try:
        run = checker.prepare(case, workers, folder)
        measured = measure(run.command, cwd=run.cwd, timeout=TIMEOUT)
        found = checker.read(measured.output, measured.code)
    except FailedError as error:
        return PeerRow(name, checker.name, case.states, problem=str(error))
    return PeerRow(
        name,
        checker.name,
        case.states,
        states=found.states,
        transitions=found.transitions,
        violated=found.violated,
        seconds=found.seconds,
        states_per_second=found.states / found.seconds if found.states >= MANY and found.seconds else None,
        process_seconds=measured.seconds,
        cpu_seconds=measured.cpu_seconds,
        memory_bytes=measured.memory_bytes,
    )


def _compared(row: PeerRow, ours: PeerRow) -> PeerRow:
    slower = larger = None
    if row.states_per_second and ours.states_per_second:
        slower = ours.states_per_second / row.states_per_second
    if row.memory_bytes and ours.memory_bytes:
        larger = row.memory_bytes / ours.memory_bytes
    return msgspec.structs.replace(row, slower=slower, larger=larger, expected_transitions=ours.transitions)


def _summary(rows: list[PeerRow]) -> list[str]:
    """What is equal, and for each peer what all settings together say (the geometric mean of the ratios)."""
    differing = [f"{row.setting}, {row.checker}" for row in rows if row.differs]
    counted = [row for row in rows if row.states is not None]
    lines = []
    if differing:
        lines.append(f"COUNTS DIFFER, so the speeds mean nothing: {'; '.join(differing)}.")
    elif counted:
        lines.append(
            f"All {len(counted)} counts are as expected: on each setting the checkers agree on states and transitions."
        )
    for name in dict.fromkeys(row.checker for row in rows):
        slower = [row.slower for row in rows if row.checker == name and row.slower and not row.differs]
        if slower:
            mean = math.exp(sum(map(math.log, slower)) / len(slower))
            between = f", between {times(min(slower))} and {times(max(slower))}" if len(slower) > 1 else ""
            lines.append(f"Plait has {times(mean)} times the states a second of {name}{between}.")
    return lines
