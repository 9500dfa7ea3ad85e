"""Counterexamples that people can read: fewest switches by brute force, nothing needed is left out, still a run."""

from __future__ import annotations

import runpy
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from plait import (
    Message,
    Process,
    System,
    Trace,
    action,
    always,
    always_eventually,
    check,
    crash_recovery,
    durable,
    on,
    tagged,
)
from plait._native import Transition
from plait.check.explain import tidy
from plait.check.explain.replay import replay
from plait.check.explain.tidy import switches
from plait.check.runner import Runner
from plait.kernel.trace import Event
from plait.protocols.paxos import paxos
from plait.rounds.check import check_rounds
from tests.oracle.explorer import Exploration, evaluate
from tests.oracle.random_systems import explored_systems
from tests.oracle.replay import replay as oracle_replay
from tests.support.markdown import ROOT


def found(system: System, **options: Any) -> dict[str, Trace]:
    return {p.name: p.trace for p in check(system, keep_going=True, **options).properties if p.trace is not None}


def step(event: Event, trace: Trace) -> tuple[Any, ...]:
    """A step by what it is, not by where it stands."""
    messages = {m.id: (m.sender, m.receiver, m.type, repr(m.fields)) for m in trace.messages}
    consumed = sorted(messages[i] for i in event.consumed)
    return event.lane, event.kind, event.label, tuple(consumed), repr(event.choices)


def fewest(events: Sequence[Event]) -> int:
    """The fewest switches of all orders that keep what depends on each other in order, by trying all."""

    def depends(a: Event, b: Event) -> bool:
        return (
            a.lane == b.lane
            or bool({*a.sent} & {*b.consumed})
            or bool(a.announced and b.announced)
            or bool(a.spawned and (b.spawned or b.lane in a.spawned))
            or bool(b.note)
        )

    pairs = [(i, j) for j in range(len(events)) for i in range(j) if depends(events[i], events[j])]
    orders = (
        order for order in permutations(range(len(events))) if all(order.index(i) < order.index(j) for i, j in pairs)
    )
    return min(switches([events[i].lane for i in order]) for order in orders)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(explored_systems(limit=60))
def test_the_same_steps_with_the_fewest_switches(pair: tuple[System, Exploration]) -> None:
    system, _ = pair
    raw, tidy = found(system, raw=True), found(system)
    assert raw.keys() == tidy.keys()
    for name, trace in tidy.items():
        before = raw[name]
        assert Counter(step(e, trace) for e in trace.events) == Counter(step(e, before) for e in before.events)
        assert switches([e.lane for e in trace.events]) <= switches([e.lane for e in before.events])
        assert (trace.tidied is None) == (
            switches([e.lane for e in trace.events]) == switches([e.lane for e in before.events])
        )
        if len(before.events) <= 6:
            assert switches([e.lane for e in trace.events]) == fewest(before.events)
        if trace.events and not trace.events[-1].note:
            assert trace.events[-1].state.fields == before.events[-1].state.fields


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(explored_systems(limit=60))
def test_shorter_runs_still_show_the_violation(pair: tuple[System, Exploration]) -> None:
    system, truth = pair
    raw, tidy = found(system, search="dfs", raw=True), found(system, search="dfs")
    assert raw.keys() == tidy.keys()
    for name, trace in tidy.items():
        assert len(trace) <= len(raw[name])
        assert len(trace) >= (truth.properties[name].length or 0)
        end = oracle_replay(system, trace)
        prop = next((p for p in system.properties if p.name == name), None)
        if prop is None:
            assert end is None
        else:
            assert end is not None
            assert evaluate(system, end, prop) == (prop.kind == "reachable")
        assert len(list(replay(system, trace))) == len(trace)


class Ticker(Process):
    """Goes up to its limit."""

    limit: int = 3
    n: int = 0

    @action(when=lambda self: self.n < self.limit)
    def up(self) -> None:
        self.n += 1


def test_what_does_not_matter_is_left_out() -> None:
    @always
    def small(s: Any) -> bool:
        return bool(s[Ticker][1].n < 2)

    system = System([Ticker(), Ticker(), Ticker()], properties=[small])
    trace = found(system, search="dfs")["small"]
    assert [(e.lane, e.label) for e in trace.events] == [("Ticker1", "up")] * 2
    raw = found(system, search="dfs", raw=True)["small"]
    assert len(raw) > 2
    assert raw.tidied is None
    assert trace.tidied == f"left out {len(raw) - 2} of {len(raw)} steps that are not needed"


def test_processes_take_turns_as_little_as_possible() -> None:
    @always
    def apart(s: Any) -> bool:
        return sum(c.n for c in s[Ticker]) < 6

    trace = found(System([Ticker(), Ticker()], properties=[apart]))["apart"]
    assert switches([e.lane for e in trace.events]) == 1


class Turner(Process):
    n: int = 0

    @action
    def turn(self) -> None:
        self.n = (self.n + 1) % 9


@tagged(round="Go")
class Go(Message):
    pass


class Sender(Process):
    sent: bool = False

    @action(when=lambda self: not self.sent)
    def go(self) -> None:
        self.sent = True
        self.broadcast(Fragile, Go())


class Fragile(Process):
    got: int = 0

    @on(Go)
    def count(self, m: Go) -> None:
        self.got += 1
        assert self.got < 3


LONG_RUNS: dict[str, Callable[[], Any]] = {
    "a run": lambda: check(
        System([Ticker(limit=9) for _ in range(3)], properties=[always(lambda s: s[Ticker][2].n < 8, name="it")]),
        search="dfs",
        workers=1,
    ),
    "a lasso": lambda: check(
        System([Turner(), Turner()], properties=[always_eventually(lambda s: s[Turner][0].n == 5, name="it")]),
        search="dfs",
        workers=1,
    ),
    "a run of rounds": lambda: check_rounds(
        System([*(Sender() for _ in range(4)), Fragile()], rounds=["Go"]), phases=1, search="dfs", workers=1
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG_RUNS)
def test_shortening_ends_after_a_number_of_steps(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []
    followed = tidy.followed

    def counting(runner: Runner, start: Sequence[int], steps: Sequence[Transition]) -> Any:
        counted.append(len(steps))
        return followed(runner, start, steps)

    monkeypatch.setattr(tidy, "followed", counting)
    assert LONG_RUNS[name]().status == "violated"
    whole, longest = sum(counted), max(counted)
    counted.clear()
    monkeypatch.setattr(tidy, "MOST_EXECUTED", 2 * longest)
    assert LONG_RUNS[name]().status == "violated"
    most = 2 * longest + 5 * longest  # three ways to leave out the last step, without repeats, in another order
    assert sum(counted) <= most < whole


@pytest.mark.slow
def test_a_counterexample_of_paxos() -> None:
    raw = found(paxos(faulty="acceptor"), search="random", raw=True)["agreement"]
    tidy = found(paxos(faulty="acceptor"), search="random")["agreement"]
    assert len(tidy) <= len(raw)
    assert switches([e.lane for e in tidy.events]) < switches([e.lane for e in raw.events])


class Clerk(Process):
    """Files each paper by itself, after it was down or not."""

    kept: int = durable(0)

    @action(when=lambda self: self.kept < 3)
    def file(self) -> None:
        self.kept += 1


@pytest.mark.slow
def test_steps_of_the_same_process_are_left_out_by_themselves() -> None:
    """A crash and what follows from it go, although the process goes on afterwards."""

    @always
    def few(s: Any) -> bool:
        return bool(s[Clerk][0].kept < 3)

    system = System([Clerk()], properties=[few], faults=[crash_recovery(Clerk, budget=2)])
    for seed in range(20):
        raw = found(system, search="random", seed=seed, walks=1, raw=True)["few"]
        tidy = found(system, search="random", seed=seed, walks=1)["few"]
        assert [e.kind for e in tidy.events] == ["step"] * 3
        assert len(raw) >= 3


@pytest.mark.slow
def test_what_leads_back_to_a_state_is_left_out() -> None:
    """However far a search went round before, the deadlock of three philosophers takes twelve steps."""
    philosophers = runpy.run_path(str(ROOT / "examples" / "philosophers.py"))["philosophers"]
    for search in ("bfs", "dfs", "stateless"):
        verdict = check(philosophers(polite=False), search=search, properties=["deadlock_free"])
        assert verdict.trace is not None
        assert len(verdict.trace) == 12
