"""The state graph as data, against the oracle: the same states, transitions, depths and violations."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from plait import Process, System, UsageError, action, always, final
from plait.check.explain.graph import state_graph
from plait.kernel.graph import StateGraph
from plait.protocols.paxos import paxos
from plait.protocols.two_phase_commit import two_phase_commit
from tests.oracle.explorer import Exploration
from tests.oracle.random_systems import explored_systems


@pytest.mark.slow
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(explored_systems(limit=200))
def test_random_systems(pair: tuple[System, Exploration]) -> None:
    system, truth = pair
    graph = state_graph(system, max_states=100_000)
    assert graph.complete
    assert (len(graph.states), len(graph.edges)) == (truth.states, truth.transitions)
    assert sorted(s.depth for s in graph.states) == sorted(truth.seen.values())
    assert sum(s.terminal for s in graph.states) == truth.terminal
    found = {name for s in graph.states for name in s.violated}
    assert found == {n for n in truth.violated if truth.properties[n].kind != "reachable"}
    shown = {name for s in graph.states for name in s.examples}
    assert shown == {n for n, r in truth.properties.items() if r.kind == "reachable" and not r.violated}


def test_numbers_and_depths() -> None:
    graph = state_graph(two_phase_commit(2))
    assert [s.number for s in graph.states] == list(range(1, 57))
    depths = [s.depth for s in graph.states]
    assert depths == sorted(depths)
    for state in graph.states[1:]:
        assert state.predecessor is not None
        assert graph.states[state.predecessor - 1].depth == state.depth - 1
        assert any((m.source, m.target) == (state.predecessor, state.number) for m in graph.edges)
    assert graph.states[0].predecessor is None


def test_the_limit_keeps_the_nearest_states() -> None:
    whole, part = state_graph(two_phase_commit(2)), state_graph(two_phase_commit(2), max_states=10)
    assert [(s.number, s.depth, s.snapshot.fields) for s in part.states] == [
        (s.number, s.depth, s.snapshot.fields) for s in whole.states[:10]
    ]
    inner = [m for m in whole.edges if m.source <= 10 and m.target is not None and m.target <= 10]
    assert [(m.source, m.target, m.label) for m in part.edges] == [(m.source, m.target, m.label) for m in inner]
    left_out = sum(m.source <= 10 for m in whole.edges) - len(inner)
    assert sum(s.hidden for s in part.states) == left_out
    assert state_graph(two_phase_commit(2), max_states=56).complete
    assert not state_graph(two_phase_commit(2), max_states=55).complete


def test_it_is_plain_data() -> None:
    graph = state_graph(paxos(), max_states=30)
    assert msgspec.json.decode(msgspec.json.encode(graph), type=StateGraph) == graph


class Faller(Process):
    height: int = 2

    @action(when=lambda self: self.height > 0)
    def fall(self) -> None:
        self.height -= 1
        assert self.height, "hit the ground"


@always
def high(s: object) -> bool:
    return s[Faller][0].height > 1  # type: ignore[index, no-any-return]


@final
def never(s: object) -> bool:
    return False


def test_violations_and_failed_assertions() -> None:
    graph = state_graph(System([Faller()], properties=[high, never]))
    assert [s.violated for s in graph.states] == [[], ["assertions", "high"]]
    assert [s.terminal for s in graph.states] == [False, False], "a step that fails is a step"
    assert [(m.source, m.target) for m in graph.edges] == [(1, 2), (2, None)]
    assert "hit the ground" in (graph.edges[1].note or "")


def test_an_exception_is_an_edge_without_a_target() -> None:
    class Bad(Process):
        @action
        def go(self) -> None:
            raise KeyError("x")

    graph = state_graph(System([Bad()]))
    assert [s.violated for s in graph.states] == [["no_exceptions"]]
    assert [(m.source, m.target) for m in graph.edges] == [(1, None)]
    assert "Bad.go raised KeyError: 'x'" in (graph.edges[0].note or "")


@pytest.mark.parametrize("wrong", [{"max_states": 0}, {"max_states": True}, {"reduce": "frob"}])
def test_wrong_calls_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        state_graph(two_phase_commit(2), **wrong)  # type: ignore[arg-type]
