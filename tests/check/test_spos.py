"""Selective push-on-stack: the same search with fewer stack operations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from plait import Process, action, always, final
from plait.check.api import check
from plait.kernel.verdict import Verdict
from plait.model.system import System
from plait.protocols.ping_pong import ping_pong
from tests.oracle.explorer import Exploration, explore
from tests.oracle.random_systems import explored_systems
from tests.support.agreement import ZOO, check_traces


def facts(verdict: Verdict) -> tuple[int, int, int, str | None, list[tuple[str, str]]]:
    s = verdict.statistics
    decided = [(p.name, p.status) for p in verdict.properties]
    return s.states, s.transitions, s.terminal_states, verdict.bound, decided


def compare(system: System, truth: Exploration, search: Any, **limits: Any) -> None:
    with_it = check(system, search=search, workers=1, keep_going=True, **limits)
    without = check(system, search=search, workers=1, keep_going=True, spos=False, **limits)
    check_traces(system, with_it, truth, shortest=False)
    assert facts(with_it) == facts(without)
    assert with_it.statistics.depth == without.statistics.depth
    for ours, theirs in zip(with_it.properties, without.properties, strict=True):
        assert (ours.trace is None) == (theirs.trace is None)
        if ours.trace is not None and theirs.trace is not None:
            assert ours.trace.events == theirs.trace.events
    if without.statistics.states >= limits.get("max_states", math.inf):
        return  # the limit was reached, perhaps after another one: what is on the stack is not popped
    # Every push has its pop, so what is spared is spared twice.
    s, everything = with_it.statistics, without.statistics
    assert (s.stack_operations + s.stack_operations_saved, 0) == (
        everything.stack_operations,
        everything.stack_operations_saved,
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ZOO)
def test_the_zoo(name: str) -> None:
    system = ZOO[name]()
    truth = explore(system)
    compare(system, truth, "dfs")
    compare(system, truth, "dfs", max_depth=7)
    parallel = check(system, search="dfs", workers=3, keep_going=True)
    assert facts(parallel)[:3] == (truth.states, truth.transitions, truth.terminal)
    check_traces(system, parallel, truth, shortest=False)


@pytest.mark.slow
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(explored_systems(limit=300))
def test_random_systems(pair: tuple[System, Exploration]) -> None:
    system, truth = pair
    compare(system, truth, "dfs")
    compare(system, truth, "stateless", max_states=5_000, max_depth=25)


class Fork(Process):
    """A chain, a fork, and a chain in each branch: the states are the sequences of steps."""

    path: tuple[int, ...] = ()

    @action(when=lambda self: len(self.path) < 6)
    def go(self) -> None:
        self.path = (*self.path, self.choose([0, 1]) if len(self.path) == 2 else 0)


@pytest.mark.parametrize("search", ["dfs", "stateless"])
def test_the_operations_of_a_fork(search: Any) -> None:
    @always
    def right(s: Any) -> bool:
        return bool(s[Fork][0].path != (0, 0, 1, 0, 0))

    @final
    def left(s: Any) -> bool:
        return bool(s[Fork][0].path[2] == 0)

    def verdict(**options: Any) -> Verdict:
        return check(System([Fork()], properties=[right, left]), search=search, workers=1, keep_going=True, **options)

    # The first state, one after each of two steps, then two branches of four: of these 11, only the fork and the two ends
    # are pushed; an end has no successor at all.
    s = verdict().statistics
    assert (s.states, s.stack_operations, s.stack_operations_saved) == (11, 6, 16)
    s = verdict(spos=False).statistics
    assert (s.states, s.stack_operations, s.stack_operations_saved) == (11, 22, 0)
    # The runs have the skipped states, and only those of their own branch.
    lengths = {p.name: len(p.trace) for p in verdict().properties if p.trace is not None}
    assert lengths == {"right": 5, "left": 6}


@pytest.mark.parametrize("make", [ping_pong])
def test_a_run_without_choices_needs_almost_no_stack(make: Callable[[], System]) -> None:
    s = check(make(), search="dfs", workers=1).statistics
    assert s.stack_operations == 2
    assert s.stack_operations_saved == 2 * (s.states - 1)


def test_the_report_tells() -> None:
    text = str(check(ping_pong(), search="dfs", workers=1))
    assert "stack operations" in text
    assert "saved" in text
    assert "stack operations" not in str(check(ping_pong()))
