"""Termination detection: never too early, and always in the end."""

from __future__ import annotations

from typing import Any

import pytest

from plait import ModelError
from plait.protocols.dijkstra_scholten import FickleNode, Node, dijkstra_scholten
from tests.protocols.agreeing import assert_holds, assert_oracle, assert_violated, last


@pytest.mark.parametrize(("nodes", "sends", "states"), [(2, 2, 215), (3, 1, 191), (3, 2, 18_277), (4, 1, 1_491)])
def test_it_detects_termination(nodes: int, sends: int, states: int) -> None:
    assert_holds(dijkstra_scholten(nodes, sends), states)


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(2, 1), (3, 2)])
def test_hasty(sizes: tuple[int, int]) -> None:
    """The root has announced, and somebody is active, or about to be."""
    shortest = {"nobody_active": 5, "nothing_in_transit": 6}
    traces = assert_violated(dijkstra_scholten(*sizes, faulty="hasty"), shortest)
    for trace in traces.values():
        assert last(trace, "announced") == [True]
    assert any(last(traces["nobody_active"], "active"))
    trace = traces["nothing_in_transit"]
    pending = {i for queue in trace.events[-1].state.pending.values() for i in queue}
    assert any(m.type == "Work" for m in trace.messages if m.id in pending)


@pytest.mark.slow
@pytest.mark.parametrize(("sizes", "shortest"), [((2, 2), 8), ((3, 1), 9), ((3, 2), 8)])
def test_fickle(sizes: tuple[int, int], shortest: int) -> None:
    """All is quiet, but the root waits for an acknowledgement that nobody will send."""
    trace = assert_violated(dijkstra_scholten(*sizes, faulty="fickle"), {"announced": shortest})["announced"]
    assert not any(last(trace, "active"))
    assert not any(trace.events[-1].state.pending.values())
    assert trace.events[-1].state.fields["Root0"]["deficit"] == 1


def test_who_gets_work_once_is_not_fickle() -> None:
    """With one work message each, a second node gets no second one before it has left the tree."""
    assert_oracle(dijkstra_scholten(2, 1, faulty="fickle"), 31)


@pytest.mark.slow
def test_the_oracle_agrees() -> None:
    assert_oracle(dijkstra_scholten(2, 2), 215)
    assert_oracle(dijkstra_scholten(3, 1), 191)
    assert_oracle(dijkstra_scholten(3, 1, faulty="hasty"), 516, {"nobody_active": 5, "nothing_in_transit": 6})
    assert_oracle(dijkstra_scholten(2, 2, faulty="fickle"), 267, {"announced": 8})


def test_symmetric_roles() -> None:
    assert dijkstra_scholten(3).symmetric == [Node]
    assert dijkstra_scholten(3, faulty="fickle").symmetric == [FickleNode]
    assert dijkstra_scholten(2).symmetric == []


@pytest.mark.parametrize("wrong", [{"nodes": 1}, {"sends": 0}, {"faulty": "x"}])
def test_wrong_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=next(iter(wrong))):
        dijkstra_scholten(**wrong)
