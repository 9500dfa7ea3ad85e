"""The settings of MP-Basset: single messages, quorum transitions, and splits of quorum transitions."""

from __future__ import annotations

from plait.bench.options import Options
from plait.bench.papers.search import COLUMNS, LAST, Setting, Way, conditions, fill, search, verdicts
from plait.bench.table import Plot, Table

SINGLE, SINGLE_POR = "single", "single + POR"
QUORUM, QUORUM_POR = "quorum", "quorum + POR"


def _split(kind: str) -> dict[str, str]:
    return LAST | {"reduce": "por", "split": kind}


WAYS = {
    SINGLE: Way(LAST),
    QUORUM: Way(LAST, (SINGLE,)),
    SINGLE_POR: Way(_split("none"), (SINGLE,)),
    QUORUM_POR: Way(_split("none"), (QUORUM, SINGLE_POR)),
    **{f"{QUORUM_POR}, {kind} split": Way(_split(kind), (QUORUM_POR,)) for kind in ("reply", "quorum", "combined")},
}


def _echo(hr: int, hi: int, br: int, bi: int) -> dict[str, str]:
    names = ("honest_receivers", "honest_initiators", "byzantine_receivers", "byzantine_initiators")
    return dict(zip(names, map(str, (hr, hi, br, bi)), strict=True))


SETTINGS = {
    "Paxos (2, 3, 1)": Setting("paxos", {"proposers": "2"}, "holds"),
    "Faulty Paxos (2, 3, 1)": Setting("paxos", {"proposers": "2", "faulty": "learner"}, "violated"),
    "Echo multicast (3, 0, 1, 1)": Setting("echo_multicast", _echo(3, 0, 1, 1), "holds"),
    "Echo multicast (2, 1, 0, 1)": Setting("echo_multicast", _echo(2, 1, 0, 1), "holds"),
    "Echo multicast (2, 1, 2, 1)": Setting("echo_multicast", _echo(2, 1, 2, 1), "violated", large=True),
    "Register, 3 base objects": Setting("regular_register", {"base_objects": "3"}, "holds"),  # as in DBSS
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
