"""The protocols that ship in Distal, each against its twin in Python: the same verdicts, and the same local states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from plait import Pid, System, always, check
from plait.model.loading.loader import load
from plait.model.system import with_properties
from plait.rounds.check import check_rounds
from tests.rounds.distal_texts import SHIPPED
from tests.support.further import further


class Pair(NamedTuple):
    """A protocol with parameters of both texts."""

    name: str
    distal: dict[str, Any]
    python: dict[str, Any]

    def texts(self) -> tuple[System, System]:
        return load(f"{self.name}.distal", self.distal), load(self.name, self.python)


def named(pair: Pair) -> str:
    return f"{pair.name}-" + ",".join(f"{name}={value}" for name, value in pair.python.items())


SMALL = [
    Pair("distal_paxos", {"n": 2, "phases": 2}, {"replicas": 2, "ballots": 2}),
    Pair("distal_paxos", {"n": 2, "phases": 2, "early": True}, {"replicas": 2, "ballots": 2, "faulty": "early"}),
    Pair("ben_or", {"inputs": (0, 1), "f": 0, "phases": 2}, {"inputs": (0, 1), "f": 0, "phases": 2}),
    Pair("ben_or", {"inputs": (0, 1, 1), "impatient": True}, {"inputs": (0, 1, 1), "faulty": "impatient"}),
    Pair("view_change", {}, {}),
    Pair("view_change", {"confused": True, "few": True, "n": 2}, {"leaders": "any", "faulty": "quorum", "replicas": 2}),
    Pair("raft_membership", {}, {}),
    Pair("raft_membership", {"early": True, "n": 2}, {"faulty": "early", "servers": 2}),
    Pair("uniform_voting", {"inputs": (0, 1)}, {"inputs": (0, 1)}),
    Pair("uniform_voting", {"inputs": (0, 1), "least": 1}, {"inputs": (0, 1), "faulty": "split"}),
    Pair("commit_rounds", {"participants": 2}, {"participants": 2}),
    Pair("commit_rounds", {"participants": 2, "hasty": True}, {"participants": 2, "faulty": "hasty"}),
    Pair("commit_rounds", {"participants": 2, "doubt": True}, {"participants": 2, "faulty": "doubt"}),
    Pair("one_third_rule", {}, {}),
]
LARGER = [
    Pair("distal_paxos", {"n": 3, "phases": 2}, {"replicas": 3, "ballots": 2}),
    Pair("ben_or", {}, {}),
    Pair(
        "ben_or", {"inputs": (0, 1), "f": 0, "phases": 3, "stubborn": True},
        {"inputs": (0, 1), "f": 0, "phases": 3, "faulty": "estimate"},
    ),
    Pair("view_change", {"phases": 2}, {"views": 2}),
    Pair("view_change", {"confused": True}, {"leaders": "any"}),
    Pair("raft_membership", {"n": 3, "phases": 2}, {"servers": 3, "terms": 2}),
    Pair("uniform_voting", {}, {}),
    Pair("uniform_voting", {"stubborn": True, "least": 2}, {"faulty": "estimate", "least": 2}),
    Pair("commit_rounds", {"participants": 3, "phases": 3}, {"participants": 3, "transactions": 3}),
    Pair("one_third_rule", {"inputs": (0, 1, 1), "phases": 1}, {"inputs": (0, 1, 1), "phases": 1}),
    Pair("one_third_rule", {"inputs": (0, 1, 1), "half": True}, {"inputs": (0, 1, 1), "faulty": "half"}),
]  # fmt: skip


def plain(value: Any) -> Any:
    """A value in which processes are numbers, as the roles of the two texts have different names."""
    if isinstance(value, Pid):
        return ("pid", value.index)
    if isinstance(value, tuple):
        return tuple(plain(part) for part in value)
    return value


def locals_of(system: System, fields: Callable[[str], list[str]]) -> tuple[Any, set[Any]]:
    """The verdict of an exhaustive search without reductions, and all local states: fields of each process."""
    seen = set()
    classes = list(dict.fromkeys(cls.__name__ for cls in system.classes))

    @always
    def spy(s: Any) -> bool:
        for p in s:
            number = p.id.index + sum(cls.__name__ == classes[0] for cls in system.classes) * classes.index(p.id.role)
            seen.add((number, *((f, plain(getattr(p, f))) for f in fields(p.id.role))))
        return True

    verdict = check(with_properties(system, [*system.properties, spy]), keep_going=True)
    return verdict, seen


def compared(pair: Pair) -> None:
    distal, python = pair.texts()
    own = {cls.__name__: set(cls.__plait_fields__) for cls in python.classes}
    shared = {
        role: sorted(names & set(distal.classes[0].__plait_fields__) - {"n", "phases"}) for role, names in own.items()
    }
    assert all(shared.values())
    one, mine = locals_of(distal, lambda _: sorted({f for names in shared.values() for f in names}))
    other, theirs = locals_of(python, shared.__getitem__)
    wanted = {number: {f for n, *values in theirs for f, _ in values if n == number} for number, *_ in theirs}
    assert {(n, *(v for v in values if v[0] in wanted[n])) for n, *values in mine} == theirs
    for prop in python.properties:
        assert next(p.status for p in one.properties if p.name == prop.name) == next(
            p.status for p in other.properties if p.name == prop.name
        )
    if pair.name != "one_third_rule" or len(python.processes) == 2:
        counts = [(v.statistics.states, v.statistics.transitions, v.statistics.terminal_states) for v in (one, other)]
        assert counts[0] == counts[1]


def test_the_seven_protocols_ship() -> None:
    assert SHIPPED == [
        "ben_or", "commit_rounds", "distal_paxos", "one_third_rule", "raft_membership", "uniform_voting", "view_change",
    ]  # fmt: skip
    assert {pair.name for pair in SMALL} == set(SHIPPED)


@pytest.mark.slow
@pytest.mark.parametrize("pair", [*(pytest.param(p, id=named(p)) for p in SMALL), *further(*LARGER, name=named)])
def test_same_local_states(pair: Pair) -> None:
    compared(pair)


ROUNDS = [
    (
        Pair(
            "ben_or", {"inputs": (0, 1), "f": 0, "impatient": True}, {"inputs": (0, 1), "f": 0, "faulty": "impatient"}
        ),
        1,
        "none",
    ),
    (Pair("view_change", {"few": True}, {"faulty": "quorum"}), 1, "none"),
    (Pair("commit_rounds", {"participants": 2, "hasty": True}, {"participants": 2, "faulty": "hasty"}), 2, "reliable"),
    (Pair("one_third_rule", {"phases": 1}, {"phases": 1}), 1, "none"),
]
MORE_ROUNDS = [
    (Pair("ben_or", {"impatient": True, "phases": 2}, {"faulty": "impatient", "phases": 2}), 2, "none"),
    (Pair("ben_or", {"stubborn": True, "phases": 3}, {"faulty": "estimate", "phases": 3}), 3, "n-f"),
    (Pair("view_change", {"few": True, "phases": 2}, {"faulty": "quorum", "views": 2}), 2, "none"),
    (Pair("one_third_rule", {"inputs": (0, 1, 1)}, {"inputs": (0, 1, 1)}), 2, "none"),
    (Pair("one_third_rule", {"inputs": (0, 1, 1), "half": True}, {"inputs": (0, 1, 1), "faulty": "half"}), 2, "none"),
    (Pair("raft_membership", {"early": True, "phases": 3}, {"faulty": "early", "terms": 3}), 3, "none"),
    (Pair("uniform_voting", {"least": 1, "phases": 2}, {"faulty": "split", "phases": 2}), 2, "none"),
    (Pair("uniform_voting", {"least": 1, "phases": 2}, {"least": 1, "phases": 2}), 2, "kernel"),
    (Pair("distal_paxos", {"early": True, "phases": 4}, {"faulty": "early", "ballots": 4}), 4, "none"),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pair", "phases", "assume"),
    [
        *(pytest.param(*case, id=named(case[0])) for case in ROUNDS),
        *(pytest.param(*case, id=named(case[0]), marks=pytest.mark.long) for case in MORE_ROUNDS),
    ],
)
def test_same_verdict_by_rounds(pair: Pair, phases: int, assume: str) -> None:
    distal, python = pair.texts()
    one, other = (check_rounds(system, phases=phases, assume=assume) for system in (distal, python))
    assert one.status == other.status != "inconclusive"
    assert {p.name: p.status for p in one.properties} == {p.name: p.status for p in other.properties}
