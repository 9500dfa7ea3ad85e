"""Functions that these benchmarks share: repeated measurements, checks with Plait, comparisons of counts."""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from plait import check
from plait.bench.errors import DifferenceError
from plait.bench.table import Cell, Column
from plait.kernel.verdict import Verdict
from plait.model.system import System
from plait.protocols.paxos import paxos

T = TypeVar("T")
Sizes = tuple[int, int, int]
"""Proposers, acceptors, learners."""
MILLION = 1_000_000


MEASURED = [Column("measured"), Column("ratio")]
"""The columns of benchmarks whose rows measure different things."""


def interleaved(repeats: int, **runs: Callable[[], T]) -> dict[str, list[T]]:
    """The results of each run, repeated in turns (A B A B …): a slow minute of the machine affects all of them."""
    results: dict[str, list[T]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            gc.collect()
            results[name].append(run())
    return results


def median(values: list[float]) -> float:
    """The median. One disturbed measurement changes it little."""
    return statistics.median(values)


def checked(system: System, states: int | None = None, **options: Any) -> dict[str, Any]:
    """Check with Plait. Returns its statistics, and the time of the whole call: `wall`, and `cpu` of all threads."""
    start, cpu = time.perf_counter(), time.process_time()
    verdict: Verdict = check(system, **options)
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    if verdict.bound == "interrupted":
        raise KeyboardInterrupt
    s = verdict.statistics
    if states is not None:
        same_count(f"Plait on {system.name}", s.states, states)
    return {
        "states": s.states,
        "transitions": s.transitions,
        "python_calls": s.python_calls,
        "seconds": s.seconds,
        "wall": wall,
        "cpu": cpu,
        "table_bytes": s.table_bytes,
        "memory_bytes": s.memory_bytes,
        "workers": s.workers,
        "walks": s.walks,
        "stack_operations": s.stack_operations,
        "stack_operations_saved": s.stack_operations_saved,
        "verdict": verdict.status,
        "properties": {p.name: p.status for p in verdict.properties},
        "load": os.getloadavg()[0],
    }


def same_count(what: str, found: int, expected: int) -> None:
    """Raise a `DifferenceError` unless the counts are equal."""
    if found != expected:
        raise DifferenceError(f"{what}: {found:,} instead of {expected:,}")


def same_verdicts(what: str, runs: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise a `DifferenceError` unless all runs have the same verdicts. Reductions change counts, never verdicts."""
    (first, expected), *others = runs.items()
    for name, found in others:
        if found["properties"] != expected["properties"]:
            raise DifferenceError(f"{what}: {name} says {found['properties']}, {first} says {expected['properties']}")


def single_message_paxos(sizes: Sizes) -> System:
    """The same Paxos as in src/plait/bench/peers/models/paxos.pml."""
    proposers, acceptors, learners = sizes
    return paxos(proposers, acceptors, learners, quorum=False)


ONE_PROPOSER = {(3, 1): 177, (3, 2): 681, (3, 3): 3_381, (4, 1): 713, (4, 2): 4_825, (5, 1): 9_473, (5, 2): 105_073}
"""Distinct states with one proposer, by (acceptors, learners). Spin and a brute-force search found the same counts."""


def expected_states(proposers: int, acceptors: int, learners: int) -> int:
    """The exact number of distinct states of `single_message_paxos`: ballots are independent (docs/decisions/0006)."""
    return int(ONE_PROPOSER[acceptors, learners] ** proposers)


def rate(value: float) -> Cell:
    """A rate per second."""
    return Cell(value, "1/s")


def times(ratio: float) -> Cell:
    """A ratio."""
    return Cell(ratio, "x")
