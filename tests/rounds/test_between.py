"""The search between rounds reaches what the protocol reaches, and proves only conditions that hold.

It is compared with the asynchronous protocol and with the sequential program turn by turn, both searched by the oracle.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plait import Message, Process, System, always, init, on, tagged
from plait.check.explain.replay import replay
from plait.check.options import Options
from plait.check.progress import Progress
from plait.check.runner import Runner
from plait.protocols.ben_or import ben_or
from plait.protocols.commit_rounds import commit_rounds
from plait.protocols.distal_paxos import distal_paxos
from plait.protocols.raft_membership import raft_membership
from plait.protocols.uniform_voting import uniform_voting
from plait.protocols.view_change import view_change
from plait.rounds.between import applies, report_of, search_between
from plait.rounds.check import check_rounds
from plait.rounds.conditions.decision import conditions
from plait.rounds.sequential import program_of, sequentialize
from tests.oracle.relation import freeze
from tests.rounds.languages import TooLargeError, graph_of
from tests.rounds.protocols import Node, Rule, Spec, specs, system
from tests.rounds.semantics import phase_graph
from tests.support.patience import PATIENCE

FIELDS = list(Node.__plait_fields__)


def drawing(examples: int) -> settings:
    return settings(
        max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), database=None, derandomize=True
    )


def combinations(protocol: System, phases: int, fields: list[str], native: Any = "auto") -> set[Any] | None:
    """The combinations of local states between rounds; None if the protocol is not supported."""
    program = program_of(protocol, phases=phases)
    options = Options(explore=True, native=native).completed()
    assert native == "off" or applies(program, options)
    runner = Runner(protocol, native=native)
    report = report_of(program, runner, options, collect=True)
    if report.unsupported is not None:
        return None
    found = set()
    for locals_ in report.combinations:
        state = []
        for index, local in enumerate(locals_):
            status, values = runner.tabulation.local_value(index, local)
            state.append((status, *(freeze(values[name]) if name in values else None for name in fields)))
        found.add(tuple(state))
    return found


def unnumbered(states: set[Any]) -> set[Any]:
    """Without the names of created processes."""
    return {(*state[:2], *sorted(state[2:], key=repr)) for state in states}


@pytest.mark.slow
@pytest.mark.parametrize("number", [30, pytest.param(150, marks=pytest.mark.long)])
def test_random_protocols(number: int) -> None:
    """Also with actions that decide in a last round, and up to fewer phases than the protocol has."""
    compared: Counter[Any] = Counter()

    def one(spec: Spec) -> None:
        for phases in range(1, spec.phases + 1):
            protocol = system(spec)
            try:
                asynchronous = phase_graph(protocol, phases, FIELDS, 150).reachable
            except TooLargeError:
                continue
            between = combinations(protocol, phases, FIELDS)
            assert between == asynchronous
            assert between == graph_of(sequentialize(protocol, phases=phases), FIELDS, 2_000).reachable
            compared[(spec, phases)] += 1

    drawing(number)(given(specs(processes=2))(one))()
    drawing(number)(given(specs(processes=2, decides=True))(one))()
    drawing(number // 10)(given(specs(processes=3, most_rounds=2))(one))()
    assert len(compared) >= number


@pytest.mark.slow
def test_created_processes() -> None:
    """Two nodes may create one each; which of the two is the first does not matter."""
    compared = []

    def one(spec: Spec, late: int) -> None:
        # With more rounds before it, a process is created in the last round or after it.
        starts = tuple(2 if number == 0 and late else number for number in spec.starts)
        shifted = dataclasses.replace(
            spec, rules=(Rule(), Rule(), *spec.rules)[: 3 * late] or spec.rules, starts=starts
        )
        protocol = system(shifted)
        try:
            asynchronous = phase_graph(protocol, 1, FIELDS, 300).reachable
        except TooLargeError:
            return
        between = combinations(protocol, 1, FIELDS)
        assert between is not None
        assert unnumbered(between) == unnumbered(asynchronous)
        compared.append(any(child[0] == "up" for state in between for child in state[2:]))

    drawing(25)(given(specs(processes=2, most_rounds=1, grows=True, decides=True), st.integers(0, 1))(one))()
    assert sum(compared) >= 5


CASES: dict[str, tuple[System, int]] = {
    "paxos": (distal_paxos(replicas=2, ballots=2), 2),
    "paxos, printed": (distal_paxos(ballots=2, faulty="printed"), 2),
    "ben_or": (ben_or(inputs=(0, 0), f=0, faulty="impatient", phases=3), 3),
    "view_change": (view_change(views=1), 1),
    "view_change, quorum": (view_change(views=2, faulty="quorum"), 2),
    "uniform_voting": (uniform_voting(inputs=(0, 1)), 2),
    "uniform_voting, split": (uniform_voting(inputs=(0, 1), phases=2, faulty="split"), 2),
    "commit": (commit_rounds(participants=2), 2),
    "commit, hasty": (commit_rounds(participants=2, faulty="hasty"), 2),
    "raft": (raft_membership(servers=3, terms=2, candidates=(0, 1)), 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_verdicts_are_those_of_the_search_turn_by_turn(name: str) -> None:
    """Of all properties; and each run is one of the protocol."""
    protocol, phases = CASES[name]
    between = check_rounds(protocol, phases=phases, keep_going=True)
    turns = check_rounds(protocol, phases=phases, keep_going=True, native="off")
    assert [(p.name, p.status) for p in between.properties] == [(p.name, p.status) for p in turns.properties]
    assert (between.status, between.bound) == (turns.status, turns.bound)
    assert between.statistics.states < turns.statistics.states
    for prop in between.properties:
        if prop.trace is not None:
            assert len(list(replay(protocol, prop.trace))) == len(prop.trace)


@pytest.mark.slow
def test_conditions_that_are_proven_hold_on_all_states() -> None:
    """Of random protocols, some without guards: what the audit proves, the asynchronous search does not refute."""
    proven, refuted = 0, 0

    def one(spec: Spec, loose: bool) -> None:
        nonlocal proven, refuted
        protocol = loosened(system(spec)) if loose else system(spec)
        decided = conditions(protocol, max_states=2_000, phases=spec.phases, audited=2_000)
        program = program_of(protocol, phases=spec.phases)
        report = report_of(program, Runner(protocol, native="auto"), Options(explore=True).completed())
        broken = {p.name for p in decided.properties if p.status == "violated"} - {"condition 4"}
        if broken:
            assert report.unsupported is not None or report.suspects
            refuted += 1
        elif report.suspects is False:
            proven += 1

    drawing(30)(given(specs(processes=2, decides=True), st.booleans())(one))()
    assert proven >= 5
    assert refuted >= 5


def loosened(protocol: System) -> System:
    """The protocol without guards on messages."""
    cls = protocol.classes[0]
    loose: Any = type(cls.__name__, (cls,), {"__module__": cls.__module__})
    loose.__plait_handlers__ = tuple(
        dataclasses.replace(h, where=lambda self, m: m.phase <= self.spec.phases) if h.kind == "message" else h
        for h in cls.__plait_handlers__
    )
    given_fields = [{name: getattr(p, name) for name in cls.__plait_fields__} for p in protocol.processes]
    return System([loose(**fields) for fields in given_fields], rounds=protocol.rounds)


@tagged(phase="k", round="Only")
class Tick(Message):
    k: int


class Walker(Process):
    """Counts the phases."""

    at: int = 0

    @init
    def start(self) -> None:
        self.send(self.id, Tick(1))

    @on(Tick)
    def advance(self, m: Tick) -> None:
        self.at = m.k
        self.send(self.id, Tick(m.k + 1))


def test_all_properties_of_a_state_are_decided_before_a_violation_ends_the_search() -> None:
    """Even if one of them takes so long that the model is no longer asked."""

    @always
    def quick(s: Any) -> bool:
        return bool(s[Walker][0].at < 2)

    @always
    def slow(s: Any) -> bool:
        if s[Walker][0].at == 2:
            time.sleep(0.15)  # the search learns within 20 ms that it has ended
        return bool(s[Walker][0].at < 2)

    @always
    def last(s: Any) -> bool:
        return bool(s[Walker][0].at < 2)

    protocol = System([Walker()], properties=[quick, slow, last], rounds=["Only"])
    found = search_between(program_of(protocol, phases=3), Options(explore=True).completed())
    assert found is not None
    assert {name: len(steps) for name, steps in found.runs.items()} == {"quick": 2, "slow": 2, "last": 2}
    assert [p.status for p in found.verdict.properties] == ["violated"] * 3


def test_what_was_found_before_an_interruption_is_kept() -> None:
    waiting, interrupted = threading.Event(), threading.Event()

    class Patient(Walker):
        def advance(self, m: Tick) -> None:
            super().advance(m)
            if m.k == 3:
                waiting.set()
                interrupted.wait(PATIENCE)
                time.sleep(0.15)  # from now on, the model is not asked any more

    @always
    def early(s: Any) -> bool:
        return bool(s[Patient][0].at != 1)

    @always
    def undecided(s: Any) -> bool:
        return bool(s[Patient][0].at < 20)

    def progress(_: Progress) -> None:
        if waiting.is_set():
            interrupted.set()
            raise KeyboardInterrupt

    protocol = System([Patient()], properties=[early, undecided], rounds=["Only"])
    options = Options(explore=True, keep_going=True).completed()
    found = search_between(program_of(protocol, phases=9), options, progress)
    assert found is not None
    assert [len(steps) for steps in found.runs.values()] == [1]
    assert found.verdict.status == "violated"


def test_a_violation_ends_the_search_at_once() -> None:
    """No other state of the same round is expanded: so always the same property is found."""

    @always
    def one(s: Any) -> bool:
        return bool(s[Walker][0].at != 2)

    @always
    def other(s: Any) -> bool:
        return not (s[Walker][0].at == 0 and s[Walker][1].at == 2)

    protocol = System([Walker(), Walker()], properties=[one, other], rounds=["Only"])
    program = program_of(protocol, phases=3)
    first = search_between(program, Options(explore=True).completed())
    both = search_between(program, Options(explore=True, keep_going=True).completed())
    assert first is not None
    assert both is not None
    assert (len(first.runs), len(both.runs)) == (1, 2)
