"""The settings of MP-Basset: single messages, quorum transitions, and splits of quorum transitions.

Published counts: those with dynamic partial-order reduction are in Table I of MP-Basset. Its other columns are not available
to us; those of single messages are the ones that DBSS reports for the same tool.
"""

from __future__ import annotations

from plait.bench.options import Options
from plait.bench.papers import dbss
from plait.bench.papers.search import COLUMNS, LAST, Setting, Way, conditions, fill, search, verdicts
from plait.bench.table import Plot, Table

SINGLE, SINGLE_DPOR, SINGLE_POR = "single", "single + DPOR", "single + POR"
QUORUM, QUORUM_POR = "quorum", "quorum + POR"


def _split(kind: str) -> dict[str, str]:
    return LAST | {"reduce": "por", "split": kind}


WAYS = {
    SINGLE: Way(LAST),
    QUORUM: Way(LAST, (SINGLE,)),
    SINGLE_DPOR: Way({"search": "stateless", "reduce": "dpor"}),  # it stores no states, and counts visits
    SINGLE_POR: Way(_split("none"), (SINGLE,)),
    QUORUM_POR: Way(_split("none"), (QUORUM, SINGLE_POR)),
    **{f"{QUORUM_POR}, {kind} split": Way(_split(kind), (QUORUM_POR,)) for kind in ("reply", "quorum", "combined")},
}


def _echo(hr: int, hi: int, br: int, bi: int) -> dict[str, str]:
    names = ("honest_receivers", "honest_initiators", "byzantine_receivers", "byzantine_initiators")
    return dict(zip(names, map(str, (hr, hi, br, bi)), strict=True))


def _published(dpor: int | None = None, *, as_in: str | None = None) -> dict[str, int]:
    """The published counts: with DPOR, and those of a setting of DBSS."""
    found = {} if dpor is None else {SINGLE_DPOR: dpor}
    if as_in is not None:
        states = dbss.SETTINGS[as_in].states
        found |= {SINGLE: states[dbss.STATEFUL], SINGLE_POR: states[dbss.POR]}
    return found


SETTINGS = {
    "Paxos (2, 3, 1)": Setting(
        "paxos", {"proposers": "2"}, "holds", _published(16_087_468, as_in="Paxos (2, 3, 1)"), (SINGLE_DPOR,)
    ),
    "Faulty Paxos (2, 3, 1)": Setting("paxos", {"proposers": "2", "faulty": "learner"}, "violated", _published(162)),
    "Echo multicast (3, 0, 1, 1)": Setting("echo_multicast", _echo(3, 0, 1, 1), "holds", _published(2_911)),
    "Echo multicast (2, 1, 0, 1)": Setting("echo_multicast", _echo(2, 1, 0, 1), "holds", _published(2_010)),
    "Echo multicast (2, 1, 2, 1)": Setting("echo_multicast", _echo(2, 1, 2, 1), "violated", _published(66), large=True),
    **{
        name: dbss.SETTINGS[name]._replace(states=_published(as_in=name), seconds={})
        for name in ("Register, 3 base objects", "Register, 3, wrong regularity")
    },
}


def measure(options: Options) -> Table:
    """Check every setting with single messages and with quorum transitions, both with and without reduction."""
    table = Table(
        "quorum",
        "Quorum transitions and their splits (MP-Basset)",
        COLUMNS,
        "reduction",
        conditions("single messages against quorum transitions", options),
        plot=Plot("states", "states"),
    )
    removed = None
    with table.measuring():
        fill(table, SETTINGS, WAYS, options, lambda label: label.startswith(QUORUM))
        removed = _removed(table, options)
    table.summary += [verdicts(table.rows, "the papers"), *filter(None, [removed])]
    return table


def _removed(table: Table, options: Options) -> str:
    """The share of states that quorum transitions remove on Paxos, with history and without (Plait's default)."""
    name = "Paxos (2, 3, 1)"
    with_history = {row.variant: row.value("states") for row in table.settings[name]}
    share = 1 - with_history[QUORUM] / with_history[SINGLE]
    plain = [search(SETTINGS[name], {}, options, quorum=quorum).statistics.states for quorum in (False, True)]
    return (
        f"Quorum transitions remove {share:.1%} of the states on {name} "
        f"({1 - plain[1] / plain[0]:.1%} of the states without history, {plain[0]:,} to {plain[1]:,})."
    )
