"""Lassos that people can read; that they stay fair and violate their formula is compared in `test_liveness.py`, too."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from plait import F, G, Process, System, Trace, action, check, eventually, ltl, predicate, weak
from plait.check.explain.replay import replay
from plait.check.explain.tidy import switches
from plait.check.live import search as liveness


class Flip(Process):
    """Goes to and fro for ever."""

    up: bool = False

    @action
    def flip(self) -> None:
        self.up = not self.up


class Worker(Process):
    """Could be done at once, or wait a little."""

    waits: int = 0
    done: bool = False

    @action(when=lambda self: not self.done)
    def work(self) -> None:
        self.done = True

    @action(when=lambda self: not self.done and self.waits < 2)
    def wait(self) -> None:
        self.waits += 1


@eventually
def finished(s: Any) -> bool:
    return bool(s[Worker][0].done)


def lasso(**options: Any) -> Trace:
    verdict = check(System([Flip(), Flip(), Worker()], properties=[finished], fairness=[weak(Flip)]), **options)
    assert verdict.status == "violated"
    assert verdict.trace is not None
    return verdict.trace


class Poller(Process):
    """Resets itself now and then, also where that changes nothing."""

    up: bool = False

    @action(when=lambda self: not self.up)
    def rise(self) -> None:
        self.up = True

    @action
    def reset(self) -> None:
        self.up = False


def test_a_step_that_changes_nothing_is_no_loop() -> None:
    risen = predicate(lambda s: s[Poller][0].up)
    found = check(System([Poller()], properties=[ltl(F(G(risen)))], fairness=[weak(Poller)])).trace
    assert found is not None
    assert ([e.label for e in found.events], found.loop) == (["rise", "reset"], 0)


class Lap(Process):
    """Counts to four and begins again."""

    n: int = 0

    @action
    def up(self) -> None:
        self.n = (self.n + 1) % 5


def test_the_loop_begins_as_early_as_it_can() -> None:
    found = check(System([Lap()], properties=[ltl(G(predicate(lambda s: s[Lap][0].n < 4)))])).trace
    assert found is not None
    assert (len(found.events), found.loop) == (5, 0)


class Wheel(Process):
    """Turns."""

    at: int = 0

    @action
    def turn(self) -> None:
        self.at = (self.at + 1) % 11


@pytest.mark.slow
def test_a_way_home_that_is_far_has_no_detours() -> None:
    """Each of six wheels has to turn, and that is eleven steps or none: 66, in 1.8 million states."""
    up = eventually(lambda s: s[Wheel][0].at < 0)
    trace = check(System([Wheel() for _ in range(6)], properties=[up], fairness=[weak(Wheel)])).trace
    assert trace is not None
    assert trace.loop == 0
    assert Counter(e.lane for e in trace.events) == {f"Wheel{i}": 11 for i in range(6)}


def test_the_loop_is_reordered_and_nothing_else_is_left() -> None:
    trace = lasso()
    assert [e.lane for e in trace.events] == ["Flip0", "Flip0", "Flip1", "Flip1"]
    assert trace.loop == 0
    assert len(list(replay(System([Flip(), Flip(), Worker()], properties=[finished]), trace))) == 4
    raw = lasso(raw=True)
    assert raw.tidied is None
    assert switches([e.lane for e in raw.events]) >= 1
    assert trace.explanation == "steps 1 to 4 repeat for ever, and F finished is false on this run"
    assert trace.why is not None
    assert [(c.text, c.value) for c in trace.why.clauses] == [("finished", "never true")]


def test_a_loop_that_is_not_fair_is_no_counterexample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the check of fairness, one of the two that must go on for ever would be left out."""
    assert {e.lane for e in lasso().events} == {"Flip0", "Flip1"}
    monkeypatch.setattr(liveness, "is_fair", lambda run, fairness: True)
    assert len({e.lane for e in lasso().events}) == 1


def test_a_run_that_ends() -> None:
    verdict = check(
        System([Worker(), Worker()], properties=[eventually(lambda s: s[Worker][0].waits == 1, name="waits")])
    )
    assert verdict.trace is not None
    assert verdict.trace.loop is None
    assert [e.label for e in verdict.trace.events] == ["work", "work"]


def test_when_a_predicate_is_true() -> None:
    @eventually
    def both(s: Any) -> bool:
        return all(f.up for f in s[Flip]) and s[Worker][0].done

    verdict = check(System([Flip(), Flip(), Worker()], properties=[both], fairness=[weak(Worker)]))
    assert verdict.trace is not None
    assert verdict.trace.why is not None
    assert verdict.trace.why.clauses[0].value == "never true"
