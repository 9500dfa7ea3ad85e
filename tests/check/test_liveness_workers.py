"""Graphs whose layers are large enough for several workers: the verdicts and counts of one, and runs that are runs."""

from __future__ import annotations

from typing import Any

import pytest

from plait import (
    F,
    G,
    Process,
    System,
    action,
    always,
    always_eventually,
    check,
    eventually,
    leads_to,
    ltl,
    predicate,
    weak,
)
from plait.check.explain.replay import replay
from plait.model.temporal import Temporal


class Wheel(Process):
    x: int = 0

    @action
    def turn(self) -> None:
        self.x = (self.x + 1) % 8


@predicate
def low(s: Any) -> bool:
    return s[Wheel][0].x == 5


@predicate
def other(s: Any) -> bool:
    return s[Wheel][1].x == 7


def wheels(*properties: Any) -> System:
    return System([Wheel() for _ in range(5)], properties=properties)


FAIR = [weak(Wheel)]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize(
    ("prop", "expected"),
    [
        (eventually(low, name="it", fairness=FAIR), "holds"),
        (eventually(low, name="it"), "violated"),
        (leads_to(low, other, name="it", fairness=FAIR), "holds"),
        (leads_to(low, other, name="it"), "violated"),
        (always_eventually(low, name="it", fairness=FAIR), "holds"),
        (ltl(F(G(low)), name="it", fairness=FAIR), "violated"),
    ],
    ids=lambda value: str(value.formula) if isinstance(value, Temporal) else value,
)
def test_any_number_of_workers(prop: Any, expected: str, workers: int) -> None:
    system = wheels(prop)
    verdict = check(system, workers=workers)
    assert verdict.status == expected
    statistics = verdict.statistics
    assert (statistics.states, statistics.transitions, statistics.depth) == (8**5, 5 * 8**5, 35)
    assert statistics.workers == workers
    if verdict.trace is not None:
        assert len(list(replay(system, verdict.trace))) == len(verdict.trace)


@pytest.mark.parametrize("workers", [1, 3])
def test_a_violation_in_a_state_is_found_by_a_shortest_run(workers: int) -> None:
    """All wheels have turned six times: in 30 steps."""

    @always
    def apart(s: Any) -> bool:
        return any(w.x != 6 for w in s[Wheel])

    verdict = check(wheels(apart, eventually(low, name="it", fairness=FAIR)), workers=workers)
    assert verdict.property == "apart"
    assert verdict.trace is not None
    assert len(verdict.trace) == 30


@pytest.mark.parametrize("workers", [1, 3])
def test_a_predicate_that_fails_ends_it(workers: int) -> None:
    @predicate
    def late(s: Any) -> bool:
        return bool(1 / (14 - s[Wheel][0].x - s[Wheel][1].x))

    verdict = check(wheels(eventually(late, name="it")), workers=workers)
    assert verdict.property == "no_exceptions"
    assert verdict.trace is not None
    assert verdict.trace.exception is not None
    assert (verdict.trace.exception.where, verdict.trace.exception.type) == ("property late", "ZeroDivisionError")


class Fan(Process):
    """Chooses once among many."""

    x: int = -1

    @action(when=lambda self: self.x < 0)
    def choose_one(self) -> None:
        self.x = self.choose(range(1100))


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 3])
def test_states_with_many_successors(workers: int) -> None:
    """More than are looked up together, in layers of as many states."""
    chosen = eventually(predicate(lambda s: s[Fan][0].x >= 0), name="it", fairness=[weak(Fan)])
    verdict = check(System([Wheel(), Fan()], properties=[chosen]), workers=workers)
    assert verdict.status == "holds"
    assert (verdict.statistics.states, verdict.statistics.transitions) == (8 * 1101, 8 * 1100 + 8 * 1101)


@pytest.mark.parametrize("workers", [1, 3])
def test_a_limit_ends_it(workers: int) -> None:
    verdict = check(wheels(eventually(low, name="it")), workers=workers, max_states=9000)
    assert verdict.status == "inconclusive"
    assert verdict.bound == "max-states"
