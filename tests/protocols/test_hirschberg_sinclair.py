"""Leader election on a ring that messages travel both ways: for every order of few nodes."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from plait import ModelError, check
from plait.protocols.hirschberg_sinclair import hirschberg_sinclair, most_messages
from tests.oracle.explorer import explore


def orders(nodes: int) -> list[str]:
    """All orders of a ring: turned so that 1 comes first."""
    return [",".join(map(str, (1, *rest))) for rest in itertools.permutations(range(2, nodes + 1))]


@pytest.mark.slow
@pytest.mark.parametrize("order", [order for nodes in range(1, 5) for order in orders(nodes)])
@pytest.mark.parametrize("reduce", ["none", "auto"])
def test_the_largest_is_elected(order: str, reduce: str) -> None:
    verdict = check(hirschberg_sinclair(nodes=order.count(",") + 1, order=order), reduce=reduce)
    assert verdict.status == "holds", str(verdict)
    assert verdict.bound is None
    assert verdict.statistics.terminal_states == 1  # so the number of messages is the same in all runs


@pytest.mark.slow
@pytest.mark.parametrize(("nodes", "states", "transitions"), [(1, 7, 9), (2, 108, 276), (3, 1_656, 6_348)])
def test_size(nodes: int, states: int, transitions: int) -> None:
    system = hirschberg_sinclair(nodes=nodes)
    truth, found = explore(system), check(system).statistics
    assert truth.violated == set()
    assert (truth.states, truth.transitions) == (found.states, found.transitions) == (states, transitions)


def test_size_of_larger_rings() -> None:
    assert check(hirschberg_sinclair()).statistics.states == 13_392
    assert check(hirschberg_sinclair(order="1,3,2,4")).statistics.states == 25_296


@pytest.mark.parametrize("nodes", range(1, 40))
def test_the_bound_is_of_order_n_log_n(nodes: int) -> None:
    assert most_messages(nodes) <= 8 * nodes * (1 + math.ceil(math.log2(nodes))) + nodes


@pytest.mark.parametrize("nodes", [2, 3])
@pytest.mark.parametrize(("faulty", "elected"), [("meek", None), ("reversed", 1)])
def test_a_smaller_one_is_elected(nodes: int, faulty: Any, elected: int | None) -> None:
    verdict = check(hirschberg_sinclair(nodes=nodes, faulty=faulty))
    assert verdict.property == "largest"
    assert verdict.trace is not None
    last = verdict.trace.events[-1]
    winner = last.state.fields[last.lane]
    assert last.label == "win"
    assert winner["elected"]
    assert winner["identity"] < nodes
    assert elected in (None, winner["identity"])


def test_meek_nodes_are_all_elected() -> None:
    verdict = check(hirschberg_sinclair(nodes=2, faulty="meek"), properties=["one_leader"])
    assert verdict.property == "one_leader"
    assert verdict.trace is not None
    assert all(fields["elected"] for fields in verdict.trace.events[-1].state.fields.values())


@pytest.mark.parametrize(
    "wrong", [{"nodes": 0}, {"order": "1,2"}, {"order": "1,2,3,3"}, {"order": "a,b,c,d"}, {"faulty": "deaf"}]
)
def test_wrong_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=next(iter(wrong))):
        hirschberg_sinclair(**wrong)
