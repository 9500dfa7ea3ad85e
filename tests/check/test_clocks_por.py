"""Partial-order reduction of models with clocks: in a set with an urgent step that is possible, no tick is missed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from plait import Clock, Message, Process, System, UsageError, action, always, check, eventually, fifo, final, on
from tests.oracle.clock_systems import Timed, timed_systems, urgent_specs
from tests.oracle.explorer import Exploration, explore
from tests.support.configurations import WAYS, Way, agrees, compare, run, ways

RANDOM = settings(deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.slow
@settings(RANDOM, max_examples=16)
@given(timed_systems(300, urgent_specs()), ways())
def test_random_systems(made: Timed, way: Way) -> None:
    compare(made.system, made.truth, way)


# -- a system with something to leave out ------------------------------------------------------------------------------


class Job(Process):
    """Has three things to do at once, and then waits."""

    timer: Clock = Clock(bound=2)
    left: int = 3
    late: bool = False

    @action(when=lambda self: self.left > 0, urgent=True)
    def work(self) -> None:
        self.left -= 1

    @action(when=lambda self: self.left == 0 and self.timer >= 2 and not self.late)
    def give_up(self) -> None:
        self.late = True


@always
def nobody_is_late_at_once(s: Any) -> bool:
    return all(not p.late or p.left == 0 for p in s[Job][:1])


@final
def all_are_late(s: Any) -> bool:
    return all(p.late for p in s[Job])


def jobs(drift: int = 0) -> tuple[System, Exploration]:
    system = System([Job(), Job(), Job()], properties=[nobody_is_late_at_once, all_are_late], drift=drift)
    return system, explore(system, limit=5_000)


@pytest.mark.slow
@pytest.mark.parametrize("drift", [0, 1])
def test_urgent_steps_are_reduced(drift: int) -> None:
    system, truth = jobs(drift)
    for way in WAYS:
        verdict = compare(system, truth, way)
        assert verdict.statistics.states < truth.states - 40


# -- each rule is needed -----------------------------------------------------------------------------------------------


class Chooser(Process):
    """Chooses early or late, and never both."""

    timer: Clock = Clock(bound=1)
    chosen: str = ""

    @action(when=lambda self: self.timer < 1 and not self.chosen)
    def early(self) -> None:
        self.chosen = "early"

    @action(when=lambda self: self.timer >= 1 and not self.chosen)
    def late(self) -> None:
        self.chosen = "late"

    @action(when=lambda self: False, urgent=True)
    def never(self) -> None:
        pass


class Idler(Process):
    """The tick is a transition of the first process with a clock."""

    timer: Clock = Clock(bound=1)
    done: bool = False

    @action(when=lambda self: not self.done)
    def act(self) -> None:
        self.done = True


@final
def everybody_is_early(s: Any) -> bool:
    return all(p.chosen == "early" for p in s[Chooser])


class Item(Message):
    pass


class Producer(Process):
    """Sends two items without a pause. The second one is blocked until the first one is taken."""

    left: int = 2

    @action(when=lambda self: self.left > 0, urgent=True)
    def produce(self) -> None:
        self.left -= 1
        self.broadcast(Consumer, Item())


class Consumer(Process):
    timer: Clock = Clock(bound=1)
    early: int = 0

    @on(Item)
    def consume(self, m: Item) -> None:
        self.early += self.timer < 1


@final
def all_items_come_early(s: Any) -> bool:
    return all(p.early == 2 for p in s[Consumer])


NEEDED = {
    "time": lambda: System([Idler(), Chooser(), Chooser()], properties=[everybody_is_early]),
    "blocked": lambda: System(
        [Idler(), Producer(), Consumer()], network=fifo(capacity=1, full="block"), properties=[all_items_come_early]
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("rule", NEEDED)
def test_each_rule_is_needed(rule: str) -> None:
    system = NEEDED[rule]()
    truth = explore(system)
    for way in WAYS:
        compare(system, truth, way)
    assert not all(agrees(run(NEEDED[rule](), way, without=rule), truth) for way in WAYS)


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_what_is_refused() -> None:
    done = eventually(lambda s: all(p.late for p in s[Job]), name="done")
    with pytest.raises(UsageError, match=r"por.*clocks, and done is about whole runs"):
        check(System([Job()], properties=[done]), reduce="por")
    with pytest.raises(UsageError, match=r"dpor.*the model has clocks"):
        check(jobs()[0], reduce="dpor", search="stateless")

    class Waiting(Process):
        timer: Clock = Clock(bound=1)

        @action(when=lambda self: self.timer == 1)
        def act(self) -> None:
            self.timer.reset()

    with pytest.raises(UsageError, match=r"por.*clocks and no urgent step"):
        check(System([Waiting()]), reduce="por", explore=True)
