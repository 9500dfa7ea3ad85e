"""Runs the settings of DBSS and MP-Basset with several reductions: one check per row.

Searches are depth first and end at the first violation, as in the papers. With `history="last"`, the state includes the
messages that each process consumed last, as in the papers' tools. Decomposition finds that they are auxiliary and
removes them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from plait.bench.options import Options
from plait.bench.table import REMOVED, Cell, Column, Comparison, Row, Table
from plait.check.api import check
from plait.kernel.verdict import Status, Verdict
from plait.model.loading.loader import load

MAX_STATES, MAX_VISITS, TIMEOUT = 40_000_000, 20_000_000, 60.0
"""The limits of a search: states, visits of the stateless search, seconds."""
QUICK = 1_000_000
"""The limit of states and visits with `quick`."""

LAST = {"history": "last"}
COLUMNS = [Column("states", published="paper"), Column("time"), REMOVED, Column("verdict")]
TIMED = [
    Column("states", published="paper"),
    Column("time", published="paper: time"),
    REMOVED,
    Column("saved", "time saved"),
    Column("verdict"),
]
"""With time as the main measure."""
SHORT = 0.1
"""The saved time is not stated if the base took less: so short times vary too much."""


class Way(NamedTuple):
    """The options of a check, and the variants with which it is compared."""

    options: Mapping[str, Any]
    bases: tuple[str, ...] = ()


class Setting(NamedTuple):
    """A model of the zoo, the published verdict, and the published states by reduction."""

    target: str
    parameters: Mapping[str, str]
    verdict: Status
    states: Mapping[str, int] = {}
    stopped: tuple[str, ...] = ()
    """Reductions for which the published search was stopped."""
    large: bool = False
    seconds: Mapping[str, float] = {}
    """The published time by reduction."""


def conditions(form: str, options: Options, *, stateless: bool = False) -> str:
    """Describe the searches of a table: form, order and limits."""
    limits = f"stopped after {QUICK if options.quick else MAX_STATES:,} states"
    limits += f" (stateless: {MAX_VISITS:,} visits)" if stateless and not options.quick else ""
    workers = f"{options.workers} worker{'s' if options.workers > 1 else ''}"
    return f"{form}, states with history; depth first to the first violation, {workers}; {limits} or {TIMEOUT:g} s"


def search(setting: Setting, way: Mapping[str, Any], options: Options, *, quorum: bool) -> Verdict:
    """Check one setting with one set of options."""
    most = QUICK if options.quick else MAX_VISITS if way.get("search") == "stateless" else MAX_STATES
    system = load(setting.target, {**setting.parameters, "quorum": str(quorum).lower()})
    limits: dict[str, Any] = {"workers": options.workers, "max_states": most, "timeout": TIMEOUT}
    verdict = check(system, **({"search": "dfs"} | limits | dict(way)))
    if verdict.bound == "interrupted":
        raise KeyboardInterrupt
    return verdict


def fill(
    table: Table,
    settings: Mapping[str, Setting],
    ways: Mapping[str, Way],
    options: Options,
    quorum: Callable[[str], bool],
) -> None:
    """Add a row for each setting and each set of options."""
    chosen = {name: setting for name, setting in settings.items() if not (options.quick and setting.large)}
    number, total = 0, len(chosen) * len(ways)
    for name, setting in chosen.items():
        done: dict[str, Row] = {}
        for label, way in ways.items():
            number += 1
            options.tell(f"{number}/{total}  {name}: {label}")
            verdict = search(setting, way.options, options, quorum=quorum(label))
            done[label] = _add(table, name, setting, label, verdict, [done[base] for base in way.bases])


def _add(table: Table, name: str, setting: Setting, label: str, verdict: Verdict, bases: list[Row]) -> Row:
    states = verdict.statistics.states
    given_up = [f"{r.name}: {r.reason}" for r in verdict.statistics.reductions if not r.applied]
    stopped = verdict.bound is not None
    return table.add(
        name,
        label,
        states=Cell(
            states,
            at_least=stopped,
            published=setting.states.get(label),
            published_at_least=label in setting.stopped,
        ),
        time=Cell(
            verdict.statistics.seconds,
            "s",
            at_least=stopped,
            published=setting.seconds.get(label),
            published_at_least=label in setting.stopped,
        ),
        saved=_saved(verdict.statistics.seconds, stopped, setting, label, bases),
        verdict=verdict_cell(verdict, setting.verdict),
        comparisons=[] if stopped else _compared(states, bases),
        limit=verdict.bound,
        note="; ".join(given_up) or None,
    )


def verdict_cell(verdict: Verdict, published: Status | None) -> Cell:
    """The verdict and the published one. A search that hit a limit is not compared."""
    stopped = verdict.status == "inconclusive"
    detail = verdict.property or (verdict.bound if stopped else None)
    return Cell(verdict.status, detail=detail, expected=None if stopped else published, published=published)


def _compared(states: int, bases: list[Row]) -> Iterator[Comparison]:
    """If the base hit a limit, its true count is larger. Then only a smaller count than the base's can be compared."""
    for base in bases:
        removed = 1 - states / base.value("states")
        if base.limit is None or removed > 0:
            yield Comparison(base.variant, removed, base.limit is not None)


def _saved(seconds: float, stopped: bool, setting: Setting, label: str, bases: list[Row]) -> Cell | None:
    """The share of the time of the last base that a reduction saves, and the share that it saves in the paper."""
    if not bases:
        return None
    base, value, published = bases[-1], None, None
    if not stopped and base.limit is None and base.value("time") >= SHORT:
        value = 1 - seconds / base.value("time")
    if not {label, base.variant} & set(setting.stopped) and {label, base.variant} <= setting.seconds.keys():
        published = 1 - setting.seconds[label] / setting.seconds[base.variant]
    return Cell(value, "share", published=published)


def verdicts(rows: list[Row], paper: str) -> str:
    """How many searches reached a verdict, and whether the verdicts are the published ones."""
    differing = [f"{row.setting}, {row.variant}: {row.value('verdict')}" for row in rows if row.differs]
    stopped = sum(row.value("verdict") == "inconclusive" for row in rows)
    ended = f"{len(rows) - stopped} of {len(rows)} searches reached a verdict"
    if differing:
        return f"{ended}. These differ from {paper}: {'; '.join(differing)}."
    return f"{ended}, {'and each verdict is' if rows else 'none'} that of {paper}."
