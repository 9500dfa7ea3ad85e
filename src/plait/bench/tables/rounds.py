"""Table 1 of paper 002, measured again: the same bugs, asynchronously and in the sequential program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from plait.bench.table import Row, Table
from plait.check.api import check
from plait.kernel.verdict import Status, Verdict
from plait.model.loader import load
from plait.rounds.check import check_rounds

MAX_STATES, QUICK = 10_000_000, 300_000
"""Where asynchronous searches are stopped, instead of after an hour."""
WALKS = 10_000
SEQUENTIAL, CORRECTED = "sequential", "sequential, corrected"


class Setting(NamedTuple):
    """A faulty protocol of the zoo, how many phases its bug takes, and the paper's seconds."""

    target: str
    faulty: Mapping[str, str]
    phases: int
    bounded_by: str
    """The parameter that bounds the phases."""
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


def rounds_table(*, quick: bool = False, workers: int = 1, tell: Callable[[str], None] = lambda _: None) -> Table:
    """Measure all settings, and say what was found."""
    rows: list[Row] = []
    limit, complete = QUICK if quick else MAX_STATES, True
    ways = [*_ASYNCHRONOUS, SEQUENTIAL] + ([] if quick else [CORRECTED])
    total = len(SETTINGS) * len(ways)
    for setting in SETTINGS:
        for way in ways:
            tell(f"{len(rows) + 1}/{total}  {setting}: {_ASYNCHRONOUS.get(way, way)}")
            rows.append(_measure(setting, way, limit, workers))
            if rows[-1].bound == "interrupted":
                complete = False
                break
        if not complete:
            break
    return Table(
        name="rounds",
        title="Table 1 of paper 002: seconds and states to the first violation",
        rows=rows,
        conditions=f"asynchronous searches stopped at {limit:,} states, {WALKS:,} random walks; workers: {workers}",
        summary=_summary(rows),
        complete=complete,
    )


def _measure(name: str, way: str, limit: int, workers: int) -> Row:
    setting = SETTINGS[name]
    phases = setting.phases + (way == CORRECTED)
    parameters = {setting.bounded_by: str(phases)} | ({} if way == CORRECTED else dict(setting.faulty))
    if setting.target == "raft_membership" and phases > 3:
        parameters["candidates"] = "0,1,0,1"
    system = load(setting.target, parameters)
    options: dict[str, Any] = {"workers": workers}
    limits: dict[str, Any] = {"search": way, "max_states": limit, "walks": WALKS}
    always = [p.name for p in system.properties if p.kind == "always"]
    verdict: Verdict
    if way in _ASYNCHRONOUS:
        verdict = check(system, properties=always, **limits, **options)
    else:
        verdict = check_rounds(system, phases=phases, assume=setting.assume, properties=always, **options)
    expected: Status | None = "holds" if way == CORRECTED else "violated" if way == SEQUENTIAL else None
    published = {SEQUENTIAL: setting.sequential, CORRECTED: None}.get(way, setting.asynchronous)
    return Row(
        setting=name,
        reduction=_ASYNCHRONOUS.get(way, way),
        states=verdict.statistics.states,
        seconds=verdict.statistics.seconds,
        verdict=verdict.status,
        violated=verdict.property,
        bound=verdict.bound if verdict.status == "inconclusive" else None,
        published_verdict=expected,
        published_time=published,
    )


def _summary(rows: list[Row]) -> list[str]:
    slow = [r for r in rows if r.reduction == SEQUENTIAL]
    if not slow:
        return []
    found = [r for r in slow if r.verdict == "violated"]
    lines = [
        f"{len(found)} of {len(slow)} bugs were found in the sequential program, "
        f"the slowest in {max((r.seconds for r in found), default=0):.1f} s"
    ]
    missed = sorted({r.setting for r in rows if r.reduction.startswith("async") and r.verdict != "violated"})
    lines.append(f"an asynchronous search missed the bug in: {', '.join(missed) or 'none'}")
    lines.append("R: messages overtake each other, D: they are late, T: processes time out, MD: messages are lost")
    return lines
