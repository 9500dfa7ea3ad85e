"""Table 1 of Sequentialization: the search for the same bugs, asynchronous and in the sequential program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from plait.bench.options import Options
from plait.bench.papers.search import verdict_cell
from plait.bench.table import Cell, Column, Plot, Row, Table
from plait.check.api import check
from plait.kernel.verdict import Status, Verdict
from plait.model.loading.loader import load
from plait.rounds.check import check_rounds

MAX_STATES, QUICK = 10_000_000, 300_000
"""Limits of asynchronous searches. The paper stops them after an hour."""
WALKS = 10_000
SEQUENTIAL, CORRECTED = "sequential", "sequential, corrected"


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


SETTINGS = {
    "Paxos (R, D, T, MD)": Setting("distal_paxos", {"faulty": "early"}, 4, "ballots", "> 1 h", "0.53 s"),
    "Ben-Or (R, D)": Setting("ben_or", {"faulty": "estimate"}, 3, "phases", "15.04 s", "30.97 / 9.12 s", "n-f"),
    "Raft, membership (R, D, T, MD)": Setting("raft_membership", {"faulty": "early"}, 3, "terms", "> 1 h", "158.44 s"),
    "ViewChange (R, D, T, MD)": Setting("view_change", {"faulty": "quorum"}, 2, "views", "22.02 s", "0.21 s"),
    "Ben-Or, weaker network (R, D, T)": Setting("ben_or", {"faulty": "impatient"}, 2, "phases", "> 1 h", "0.19 s"),
    "UniformVoting, weaker network (R, D, T, MD)": Setting(
        "uniform_voting", {"faulty": "split"}, 2, "phases", "18.22 s", "33.74 s"
    ),
}
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
    ways = [*_ASYNCHRONOUS, SEQUENTIAL] + ([] if options.quick else [CORRECTED])
    total = len(SETTINGS) * len(ways)
    with table.measuring():
        for setting in SETTINGS:
            for way in ways:
                options.tell(f"{len(table.rows) + 1}/{total}  {setting}: {_ASYNCHRONOUS.get(way, way)}")
                _add(table, setting, way, limit, options.workers)
    table.summary += _summary(table.rows)
    return table


def _add(table: Table, name: str, way: str, limit: int, workers: int) -> None:
    setting = SETTINGS[name]
    phases = setting.phases + (way == CORRECTED)
    parameters = {setting.bounded_by: str(phases)} | ({} if way == CORRECTED else dict(setting.faulty))
    if setting.target == "raft_membership" and phases > 3:
        parameters["candidates"] = "0,1,0,1"
    system = load(setting.target, parameters)
    always = [p.name for p in system.properties if p.kind == "always"]
    limits: dict[str, Any] = {"search": way, "max_states": limit, "walks": WALKS}
    verdict: Verdict
    if way in _ASYNCHRONOUS:
        verdict = check(system, properties=always, workers=workers, **limits)
    else:
        verdict = check_rounds(system, phases=phases, assume=setting.assume, properties=always, workers=workers)
    if verdict.bound == "interrupted":
        raise KeyboardInterrupt
    expected: Status | None = "holds" if way == CORRECTED else "violated" if way == SEQUENTIAL else None
    published = {SEQUENTIAL: setting.sequential, CORRECTED: None}.get(way, setting.asynchronous)
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
    lines.append("R: messages are reordered, D: they are delayed, T: processes time out, MD: messages are lost.")
    return lines
