"""Propositions 1 to 4 of Sequentialization: the sequential program and the protocol have the same local behaviours.

Both are searched exhaustively by the oracle, up to the same number of phases. Without a network assumption more is true: the
same combinations of local states are reached. Under an assumption the program is compared with the round-based semantics.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plait import System
from plait.protocols.ben_or import ben_or
from plait.protocols.commit_rounds import commit_rounds
from plait.protocols.distal_paxos import distal_paxos
from plait.protocols.uniform_voting import uniform_voting
from plait.protocols.view_change import view_change
from plait.rounds.assumptions import Custom
from plait.rounds.sequential import sequentialize
from tests.rounds.languages import Graph, TooLargeError, difference, graph_of
from tests.rounds.protocols import Node, Rule, Spec, specs, system
from tests.rounds.semantics import all_but, common, everything, kernel, phase_graph, round_graph

FIELDS = list(Node.__plait_fields__)


def drawing(examples: int) -> settings:
    return settings(
        max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), database=None, derandomize=True
    )


def agree(one: Graph, other: Graph, processes: int) -> None:
    for process in range(processes):
        assert difference(one, other, process) is None


def compare(protocol: System, phases: int, fields: list[str] = FIELDS, *, limit: int = 150) -> bool:
    """Whether both were small enough to be compared; raises where they differ."""
    try:
        asynchronous = phase_graph(protocol, phases, fields, limit)
        sequential = graph_of(sequentialize(protocol, phases=phases), fields, 3 * limit)
    except TooLargeError:
        return False
    agree(asynchronous, sequential, len(protocol.processes))
    assert asynchronous.reachable == sequential.reachable
    return True


@pytest.mark.slow
@pytest.mark.parametrize("number", [30, pytest.param(100, marks=pytest.mark.long)])
def test_many_protocols(number: int) -> None:
    compared: set[Spec] = set()

    def one(spec: Spec) -> None:
        if spec not in compared and compare(system(spec), spec.phases):
            compared.add(spec)

    drawing(number * 17 // 10)(given(specs(processes=2))(one))()
    drawing(max(2, number // 25))(given(specs(processes=3, most_rounds=2))(one))()
    assert len(compared) >= number


@pytest.mark.slow
def test_actions_that_decide_and_send() -> None:
    """In first, middle and last rounds; up to fewer phases than the protocol has, too."""
    compared: Counter[Any] = Counter()

    def one(spec: Spec) -> None:
        for phases in range(1, spec.phases + 1):
            if (spec, phases) not in compared and compare(system(spec), phases, limit=80):
                deciding = [number for number, rule in enumerate(spec.rules) if rule.decides is not None]
                compared.update([(spec, phases), *((len(spec.rules), number) for number in deciding)])

    drawing(40)(given(specs(processes=2, decides=True))(one))()
    assert {(1, 0), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2)} <= set(compared)


@pytest.mark.slow
@drawing(10)
@given(specs(processes=2, most_rounds=2, decides=True))
def test_crashes(spec: Spec) -> None:
    compare(system(spec, crashes=1), spec.phases)


@pytest.mark.slow
@drawing(15)
@given(specs(processes=2, most_rounds=2, grows=True, decides=True))
def test_processes_that_are_created(spec: Spec) -> None:
    """Both nodes may create one; which of the two is the first does not matter."""
    _compare_unnumbered(system(spec), spec.phases + 1)


@pytest.mark.slow
def test_processes_that_are_created_in_the_last_round() -> None:
    """They take steps that send nothing, and no others; the protocol itself may go on for another phase."""
    idled = []

    def one(spec: Spec, phases: int) -> None:
        starts = tuple(2 if number == 0 else number for number in spec.starts)
        late = dataclasses.replace(spec, rules=(Rule(), Rule(), *spec.rules), starts=starts, phases=phases)
        found = _compare_unnumbered(system(late), 1)
        at = FIELDS.index("idled") + 1
        idled.append(any(child[at] == (bool, True) for states in found for child in states[2:]))

    drawing(15)(given(specs(processes=2, most_rounds=1, grows=True, decides=True), st.integers(1, 2))(one))()
    assert any(idled)


def _compare_unnumbered(protocol: System, phases: int) -> set[Any]:
    """The combinations of local states that both reach; none if there are too many."""
    try:
        asynchronous = phase_graph(protocol, phases, FIELDS, 300)
        sequential = graph_of(sequentialize(protocol, phases=phases), FIELDS, 1_000)
    except TooLargeError:
        return set()
    agree(asynchronous, sequential, 2)
    assert _unnumbered(asynchronous) == _unnumbered(sequential)
    return _unnumbered(sequential)


def _unnumbered(graph: Graph) -> set[Any]:
    return {(*found[:2], *sorted(found[2:], key=repr)) for found in graph.reachable}


def _mutual(hears: Any) -> bool:
    """Whoever hears somebody is heard by him."""
    return all(p in hears[q] for p in hears for q in hears[p])


def _mutual_by_number(hears: dict[int, set[int]], senders: Any) -> bool:
    return all(p in hears[q] for p in hears for q in hears[p])


ASSUMPTIONS: dict[str, tuple[Any, Any]] = {
    "none": ("none", lambda hears, senders: True),
    "reliable": ("reliable", everything),
    "n-1": ("n-1", all_but(1)),
    "majority": ("majority", all_but(0)),  # of two, a majority is both
    "kernel": ("kernel", kernel),
    "common": ("common", common),
    "mutual": (Custom("mutual", _mutual), _mutual_by_number),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ASSUMPTIONS)
@drawing(5)
@given(spec=specs(processes=2, most_rounds=2, decides=True))
def test_assumptions(name: str, spec: Spec) -> None:
    assume, predicate = ASSUMPTIONS[name]
    protocol = system(spec)
    try:
        rounds = round_graph(protocol, spec.phases, predicate, FIELDS, 300)
        sequential = graph_of(sequentialize(protocol, phases=spec.phases, assume=assume), FIELDS, 300)
    except TooLargeError:
        return
    if name == "none":  # a process that need not react has more behaviours, not fewer: it may stop in between
        rounds = phase_graph(protocol, spec.phases, FIELDS, 300)
    agree(rounds, sequential, 2)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "predicate"), [("kernel", kernel), ("common", common), ("n-1", all_but(1))])
def test_assumptions_among_three(name: str, predicate: Any) -> None:
    """Where a kernel is neither everybody nor anybody."""
    spec = Spec((Rule(count=2, factor=0),), phases=1, starts=(0, 0, -1))
    protocol = system(spec)
    rounds = round_graph(protocol, 1, predicate, FIELDS, 20_000)
    sequential = graph_of(sequentialize(protocol, phases=1, assume=name), FIELDS, 20_000)
    agree(rounds, sequential, 3)
    assert difference(sequential, graph_of(sequentialize(protocol, phases=1), FIELDS, 20_000), 2) is None


SMALL = {
    "distal_paxos": (distal_paxos(replicas=2, ballots=2), 2),
    "distal_paxos, early": (distal_paxos(replicas=2, ballots=2, faulty="early"), 2),
    "ben_or": (ben_or(inputs=(0, 1), f=0, phases=2), 2),
    "ben_or, shorter": (ben_or(inputs=(0, 1), f=0, phases=2), 1),
    "uniform_voting": (uniform_voting(inputs=(0, 1), least=1, phases=1), 1),  # a decision begins the next phase
    "uniform_voting, longer": (uniform_voting(inputs=(0, 1), least=1, phases=1), 2),
    "view_change": (view_change(replicas=3, views=1), 1),
    "commit_rounds": (commit_rounds(participants=2, transactions=1), 1),
    "commit_rounds, doubt": (commit_rounds(participants=2, transactions=1, faulty="doubt"), 1),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_protocols_of_the_zoo(name: str) -> None:
    protocol, phases = SMALL[name]
    fields = sorted({field for cls in protocol.classes for field in cls.__plait_fields__})
    assert compare(protocol, phases, fields, limit=10_000)
