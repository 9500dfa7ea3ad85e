"""Table 1 of Sequentialization: the search for the same bugs, asynchronous and in the sequential program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from plait.bench.options import Options
from plait.bench.papers.search import verdict_cell
from plait.bench.table import Cell, Column, Plot, Row, Table
from plait.check.api import check
from plait.kernel.pid import Pid
from plait.kernel.verdict import Status, Verdict
from plait.model.loading.loader import load
from plait.model.network import unordered
from plait.model.system import with_network
from plait.rounds.check import check_rounds

MAX_STATES, QUICK = 10_000_000, 300_000
"""Limits of asynchronous searches. The paper stops them after an hour."""
WALKS = 10_000
SEQUENTIAL, FIXED, CORRECTED = "sequential", "sequential, two fixed quorums", "sequential, corrected"


class Setting(NamedTuple):
    """A faulty protocol of the zoo, the number of phases that its bug needs, and the published times."""

    target: str
    faulty: Mapping[str, str]
    phases: int
    bounded_by: str
    """The parameter that limits the number of phases."""
    asynchronous: str
    sequential: str
    assume: str = "none"
    drops: bool = False
    """Whether the network loses messages (MD). If not, it only delays them: for a round, a late message is a lost one,
    so the sequential program is the same."""
    fixed: Mapping[str, str] = {}
    """Parameters of the corrected protocol, too."""
    quorums: str | None = None
    """The published time if all processes hear one of two fixed quorums."""


SETTINGS = {
    "Paxos (R, D, T)": Setting("distal_paxos", {"faulty": "early"}, 4, "ballots", "> 1 h", "0.53 s"),
    "Paxos (R, D, T, MD)": Setting("distal_paxos", {"faulty": "early"}, 4, "ballots", "> 1 h", "0.53 s", drops=True),
    "Ben-Or (R, D)": Setting(
        "ben_or",
        {"faulty": "estimate"},
        3,
        "phases",
        "15.04 s",
        "30.97 s",
        "n-f",
        fixed={"inputs": "0,0,1"},
        quorums="9.12 s",
    ),
    "Raft, membership (R, D, T, MD)": Setting(
        "raft_membership", {"faulty": "early"}, 3, "terms", "> 1 h", "158.44 s", drops=True
    ),
    "ViewChange (R, D, T, MD)": Setting(
        "view_change", {"faulty": "quorum", "leaders": "any"}, 1, "views", "22.02 s", "0.21 s", drops=True
    ),
    "Ben-Or, weaker network (R, D, T)": Setting("ben_or", {"faulty": "impatient"}, 2, "phases", "> 1 h", "0.19 s"),
    "UniformVoting, weaker network (R, D, T, MD)": Setting(
        "uniform_voting", {"faulty": "split"}, 2, "phases", "18.22 s", "33.74 s", drops=True
    ),
}
QUORUMS = ({0, 1}, {1, 2})
"""The two quorums of the underapproximation."""


def two_quorums(hears: Mapping[Pid, frozenset[Pid]]) -> bool:
    """In each round, each process hears one of two fixed quorums, and nobody else."""
    return all({pid.index for pid in heard} in QUORUMS for heard in hears.values())


_ASYNCHRONOUS = {"bfs": "asynchronous, bfs", "dfs": "asynchronous, dfs", "random": "asynchronous, random"}


def measure(options: Options) -> Table:
    """Run every setting asynchronously and as a sequential program; without `quick` also the corrected protocol."""
    limit = QUICK if options.quick else MAX_STATES
    table = Table(
        "rounds",
        "Rounds: time and states to the first violation (Sequentialization, Table 1)",
        [Column("states"), Column("time", published="paper"), Column("verdict")],
        "search",
        f"asynchronous searches stopped at {limit:,} states, {WALKS:,} random walks; workers: {options.workers}",
        plot=Plot("states", "states"),
    )
    ways = [*_ASYNCHRONOUS, SEQUENTIAL, FIXED] + ([] if options.quick else [CORRECTED])
    runs = [(name, way) for name, setting in SETTINGS.items() for way in ways if way != FIXED or setting.quorums]
    with table.measuring():
        for name, way in runs:
            options.tell(f"{len(table.rows) + 1}/{len(runs)}  {name}: {_ASYNCHRONOUS.get(way, way)}")
            _add(table, name, way, limit, options.workers)
    table.summary += _summary(table.rows)
    return table


def _add(table: Table, name: str, way: str, limit: int, workers: int) -> None:
    setting = SETTINGS[name]
    phases = setting.phases + (way == CORRECTED)
    parameters = {setting.bounded_by: str(phases), **setting.fixed} | ({} if way == CORRECTED else dict(setting.faulty))
    if setting.target == "raft_membership" and phases > 3:
        parameters["candidates"] = "0,1,0,1"
    system = load(setting.target, parameters)
    always = [p.name for p in system.properties if p.kind == "always"]
    limits: dict[str, Any] = {"search": way, "max_states": limit, "walks": WALKS}
    verdict: Verdict
    if way in _ASYNCHRONOUS:
        if setting.drops:
            system = with_network(system, unordered(lossy=True))
        verdict = check(system, properties=always, workers=workers, **limits)
    else:
        assume = f"{__name__}:two_quorums" if way == FIXED else setting.assume
        verdict = check_rounds(system, phases=phases, assume=assume, properties=always, workers=workers)
    if verdict.bound == "interrupted":
        raise KeyboardInterrupt
    expected: Status | None = "holds" if way == CORRECTED else "violated" if way in (SEQUENTIAL, FIXED) else None
    published = {SEQUENTIAL: setting.sequential, FIXED: setting.quorums, CORRECTED: None}.get(way, setting.asynchronous)
    stopped = verdict.status == "inconclusive"
    table.add(
        name,
        _ASYNCHRONOUS.get(way, way),
        states=Cell(verdict.statistics.states, at_least=stopped),
        time=Cell(verdict.statistics.seconds, "s", published=published),
        verdict=verdict_cell(verdict, expected),
        limit=verdict.bound if stopped else None,
    )


def _summary(rows: list[Row]) -> list[str]:
    slow = [r for r in rows if r.variant == SEQUENTIAL]
    if not slow:
        return []
    found = [r for r in slow if r.value("verdict") == "violated"]
    lines = [
        f"{len(found)} of {len(slow)} bugs were found in the sequential program, "
        f"the slowest in {max((r.value('time') for r in found), default=0):.1f} s."
    ]
    missed = {r.setting for r in rows if r.variant.startswith("async") and r.value("verdict") != "violated"}
    lines.append(f"An asynchronous search missed the bug in: {', '.join(sorted(missed)) or 'none'}.")
    lines.append(
        "R: messages are reordered, D: they are delayed, T: processes time out, MD: messages are lost (in asynchronous "
        "searches, the network loses them in steps of its own)."
    )
    return lines
