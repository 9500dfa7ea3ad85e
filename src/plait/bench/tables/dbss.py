"""The tables of the papers, measured again: which settings, with which reductions, and what was published.

Depth first, up to the first violation, as there. With `history="last"`, what each process consumed last is part of the
state, as in the papers' tool; decomposition finds that to be auxiliary, and leaves it out again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from plait.bench.table import Comparison, Row, Table
from plait.check.api import check
from plait.kernel.verdict import Status, Verdict
from plait.model.loader import load

MAX_STATES, MAX_VISITS, TIMEOUT = 40_000_000, 20_000_000, 60.0
"""Where a search is stopped: states, visits of the stateless search, seconds."""
QUICK = 1_000_000
"""States and visits of a quick table."""

STATELESS, STATEFUL, POR = "stateless", "stateful", "POR"
WITHOUT_SPOS, DBSS, BOTH, SYMMETRY = "DBSS without SPoS", "DBSS", "DBSS + POR", "DBSS + POR + symmetry"


class Way(NamedTuple):
    """Options of a check, and the lines that it is compared with."""

    options: Mapping[str, Any]
    bases: tuple[str, ...] = ()


class Setting(NamedTuple):
    """A model of the zoo, and what was published: the verdict, and states by reduction."""

    target: str
    parameters: Mapping[str, str]
    verdict: Status
    states: Mapping[str, int] = {}
    stopped: tuple[str, ...] = ()
    """Reductions with which the published search did not end."""
    large: bool = False


_LAST = {"history": "last"}
DBSS_WAYS = {
    STATELESS: Way({"search": "stateless"}),
    STATEFUL: Way(_LAST, (STATELESS,)),
    WITHOUT_SPOS: Way(_LAST | {"reduce": "decomposition", "spos": False}, (STATEFUL,)),
    DBSS: Way(_LAST | {"reduce": "decomposition"}, (STATEFUL,)),
    POR: Way(_LAST | {"reduce": "por"}, (STATEFUL,)),
    BOTH: Way(_LAST | {"reduce": "decomposition,por"}, (STATEFUL, POR)),
    SYMMETRY: Way(_LAST | {"reduce": "decomposition,por,symmetry"}, (STATEFUL, POR)),
}


def _published(stateful: int, dbss: int, por: int | None = None, both: int | None = None) -> dict[str, int]:
    found = {STATEFUL: stateful, DBSS: dbss, POR: por, BOTH: both}
    return {way: states for way, states in found.items() if states is not None}


_WRONG = {"specification": "wrong"}
_LIVE = {"followers": "3", "restless": "0", "specification": "live"}
_UNENDED = (STATEFUL, DBSS)
DBSS_SETTINGS = {
    "Paxos (2, 3, 1)": Setting(
        "paxos",
        {"proposers": "2"},
        "holds",
        _published(13_044_613, 5_606_047, 191_081, 117_369) | {WITHOUT_SPOS: 5_606_047},
    ),
    "Faulty-Paxos (2, 3, 1)": Setting(
        "paxos", {"proposers": "2", "faulty": "acceptor"}, "violated", _published(96_802, 70_543, 3_050, 2_786)
    ),
    "Faulty-Paxos2 (3, 3, 1)": Setting(
        "paxos",
        {"proposers": "3", "faulty": "memory"},
        "violated",
        _published(71_914_839, 66_651_310, 129_533, 124_976),
        _UNENDED,
        large=True,
    ),
    "Register, 3 base objects": Setting(
        "regular_register",
        {"base_objects": "3"},
        "holds",
        _published(89_041, 59_306, 10_896, 8_590) | {WITHOUT_SPOS: 59_306},
    ),
    "Register, 3, wrong regularity": Setting(
        "regular_register", {"base_objects": "3"} | _WRONG, "violated", _published(4_965, 3_376, 1_936, 1_483)
    ),
    "Register, 4 base objects": Setting(
        "regular_register",
        {"base_objects": "4"},
        "holds",
        _published(2_269_797, 1_475_845, 96_641, 57_187) | {WITHOUT_SPOS: 1_475_845},
    ),
    "Register, 4, wrong regularity": Setting(
        "regular_register", {"base_objects": "4"} | _WRONG, "violated", _published(94_348, 56_222, 4_642, 4_642)
    ),
    "Register, 5 base objects": Setting(
        "regular_register",
        {"base_objects": "5"},
        "holds",
        _published(51_465_807, 35_692_316, 2_986_657, 1_656_212),
        _UNENDED,
        large=True,
    ),
    "Zab (3, 3), liveness": Setting("zab", {"leaders": "3"} | _LIVE, "violated", _published(4_580, 1_876)),
    "Zab (4, 3), liveness": Setting("zab", {"leaders": "4"} | _LIVE, "violated", _published(8_198, 3_132), large=True),
}

SINGLE, SINGLE_POR = "single", "single + POR"
QUORUM, QUORUM_POR = "quorum", "quorum + POR"


def _split(kind: str) -> dict[str, str]:
    return _LAST | {"reduce": "por", "split": kind}


QUORUM_WAYS = {
    SINGLE: Way(_LAST),
    QUORUM: Way(_LAST, (SINGLE,)),
    SINGLE_POR: Way(_split("none"), (SINGLE,)),
    QUORUM_POR: Way(_split("none"), (QUORUM, SINGLE_POR)),
    **{f"{QUORUM_POR}, {kind} split": Way(_split(kind), (QUORUM_POR,)) for kind in ("reply", "quorum", "combined")},
}


def _echo(hr: int, hi: int, br: int, bi: int) -> dict[str, str]:
    names = ("honest_receivers", "honest_initiators", "byzantine_receivers", "byzantine_initiators")
    return dict(zip(names, map(str, (hr, hi, br, bi)), strict=True))


QUORUM_SETTINGS = {
    "Paxos (2, 3, 1)": Setting("paxos", {"proposers": "2"}, "holds"),
    "Faulty Paxos (2, 3, 1)": Setting("paxos", {"proposers": "2", "faulty": "learner"}, "violated"),
    "Echo multicast (3, 0, 1, 1)": Setting("echo_multicast", _echo(3, 0, 1, 1), "holds"),
    "Echo multicast (2, 1, 0, 1)": Setting("echo_multicast", _echo(2, 1, 0, 1), "holds"),
    "Echo multicast (2, 1, 2, 1)": Setting("echo_multicast", _echo(2, 1, 2, 1), "violated", large=True),
    "Register, 3 base objects": Setting("regular_register", {"base_objects": "3"}, "holds"),  # as in paper 000
}


class Interruption(Exception):  # noqa: N818
    """The user ended a search; there is no line for it."""


class _Measurement:
    """Runs the lines of a table one after the other."""

    def __init__(self, workers: int, quick: bool, tell: Callable[[str], None]) -> None:
        self.workers, self.quick, self.tell = workers, quick, tell

    def conditions(self, form: str, *, stateless: bool = False) -> str:
        limits = f"stopped after {QUICK if self.quick else MAX_STATES:,} states"
        limits += f" (stateless: {MAX_VISITS:,} visits)" if stateless and not self.quick else ""
        workers = f"{self.workers} worker{'s' if self.workers > 1 else ''}"
        return f"{form}, states with history; depth first to the first violation, {workers}; {limits} or {TIMEOUT:g} s"

    def verdict(self, setting: Setting, options: Mapping[str, Any], quorum: bool) -> Verdict:
        most = QUICK if self.quick else MAX_VISITS if options.get("search") == "stateless" else MAX_STATES
        system = load(setting.target, {**setting.parameters, "quorum": str(quorum).lower()})
        limits: dict[str, Any] = {"workers": self.workers, "max_states": most, "timeout": TIMEOUT}
        found = check(system, **({"search": "dfs"} | limits | dict(options)))
        if found.bound == "interrupted":
            raise Interruption
        return found

    def rows(
        self, settings: Mapping[str, Setting], ways: Mapping[str, Way], quorum: Callable[[str], bool]
    ) -> Iterator[Row]:
        chosen = {name: setting for name, setting in settings.items() if not (self.quick and setting.large)}
        number, total = 0, len(chosen) * len(ways)
        for name, setting in chosen.items():
            done: dict[str, Row] = {}
            for label, way in ways.items():
                number += 1
                self.tell(f"{number}/{total}  {name}: {label}")
                found = self.verdict(setting, way.options, quorum(label))
                done[label] = _row(name, setting, label, found, [done[base] for base in way.bases])
                yield done[label]


def _compared(states: int, bases: list[Row]) -> Iterator[Comparison]:
    """A base that hit a limit has more states than were counted: having more than these says nothing."""
    for base in bases:
        removed = 1 - states / base.states
        if base.bound is None or removed > 0:
            yield Comparison(base.reduction, removed, base.bound is not None)


def _row(name: str, setting: Setting, label: str, found: Verdict, bases: list[Row]) -> Row:
    states = found.statistics.states
    given_up = [f"{r.name}: {r.reason}" for r in found.statistics.reductions if not r.applied]
    return Row(
        setting=name,
        reduction=label,
        states=states,
        seconds=found.statistics.seconds,
        verdict=found.status,
        violated=found.property,
        bound=found.bound,
        comparisons=[] if found.bound else list(_compared(states, bases)),
        published_verdict=setting.verdict,
        published_states=setting.states.get(label),
        published_limit=label in setting.stopped,
        note="; ".join(given_up) or None,
    )


def _table(name: str, title: str, conditions: str, rows: Iterator[Row], paper: str) -> Table:
    found: list[Row] = []
    complete = True
    try:
        found.extend(rows)
    except (Interruption, KeyboardInterrupt):
        complete = False
    return Table(name, title, found, conditions, _verdicts(found, paper), complete)


def _verdicts(rows: list[Row], paper: str) -> list[str]:
    differing = [f"{row.setting}, {row.reduction}: {row.verdict}" for row in rows if row.differs]
    stopped = sum(row.verdict == "inconclusive" for row in rows)
    ended = f"{len(rows) - stopped} of {len(rows)} searches came to a verdict"
    if differing:
        return [f"{ended}; not that of {paper}: {'; '.join(differing)}."]
    return [f"{ended}, {'and each is' if rows else 'none'} that of {paper}."]


def dbss_table(
    *, quorum: bool = False, quick: bool = False, workers: int = 1, tell: Callable[[str], None] = lambda _: None
) -> Table:
    """Table I of paper 000: decomposition-based stateful search, partial-order reduction, and both."""
    run = _Measurement(workers, quick, tell)
    conditions = run.conditions("quorum transitions" if quorum else "single messages", stateless=True)
    rows = run.rows(DBSS_SETTINGS, DBSS_WAYS, lambda _: quorum)
    return _table("dbss", "Decomposition-based stateful search (paper 000, Table I)", conditions, rows, "paper 000")


def quorum_table(*, quick: bool = False, workers: int = 1, tell: Callable[[str], None] = lambda _: None) -> Table:
    """The settings of paper 003: single messages against quorum transitions, and splits of these."""
    run = _Measurement(workers, quick, tell)
    rows = run.rows(QUORUM_SETTINGS, QUORUM_WAYS, lambda label: label.startswith(QUORUM))
    title = "Quorum transitions and their splits (paper 003)"
    table = _table(
        "quorum",
        title,
        run.conditions("single messages against quorum transitions"),
        rows,
        "the papers",
    )
    if table.complete:
        table.summary.append(_removed(run, table))
    return table


def _removed(run: _Measurement, table: Table) -> str:
    """How many states quorum transitions remove on Paxos; also without history, as Plait counts by default."""
    name = "Paxos (2, 3, 1)"
    with_history = {row.reduction: row.states for row in table.settings[name]}
    share = 1 - with_history[QUORUM] / with_history[SINGLE]
    plain = [run.verdict(QUORUM_SETTINGS[name], {}, quorum).statistics.states for quorum in (False, True)]
    return (
        f"Quorum transitions remove {share:.1%} of the states on {name} "
        f"({1 - plain[1] / plain[0]:.1%} of the states without history, {plain[0]:,} to {plain[1]:,})."
    )
