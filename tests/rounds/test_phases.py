"""The last phase of a sequential program: a process leaves it once, in an action that may do more than send."""

from __future__ import annotations

from typing import Any

import pytest

from plait import Message, ModelError, Process, System, action, always, check, on, reachable, tagged
from plait.check.explain.replay import replay
from plait.protocols.uniform_voting import uniform_voting
from plait.rounds.check import check_rounds
from plait.rounds.sequential import sequentialize


@tagged(phase="k", round="Only")
class Item(Message):
    """Of a phase."""

    k: int


class Getter(Process):
    """Takes items of later and later phases."""

    got: int = 0

    @on(Item, where=lambda self, m: m.k > self.got)
    def take(self, m: Item) -> None:
        self.got = m.k


@pytest.mark.slow
def test_an_action_that_decides_and_begins_the_next_phase_runs_in_the_last_phase() -> None:
    """UniformVoting decides in such an action: one phase is enough to disagree."""
    protocol = uniform_voting(faulty="split", phases=1)
    assert check(protocol, properties=["agreement"]).status == "violated"
    verdict = check_rounds(protocol, phases=1, properties=["agreement"])
    assert (verdict.status, verdict.warnings) == ("violated", [])
    assert verdict.trace is not None
    assert len(list(replay(protocol, verdict.trace))) == len(verdict.trace)
    assert (verdict.trace.events[-1].label, verdict.trace.marks[-1].label) == ("conclude", "phase 2, round Estimate")


class Restless(Process):
    """Goes on to a new phase without end, or skips a phase."""

    k: int = 0
    rests: int = 0

    @action
    def go(self) -> None:
        self.k += self.choose([1, 2])
        self.send(Getter.pid(0), Item(self.k))

    @action(when=lambda self: self.k == 5 and self.rests < 3)
    def rest(self) -> None:
        self.rests += 1


@pytest.mark.slow
def test_a_process_leaves_the_last_phase_once() -> None:
    """So the program of a protocol without end is finite. After that, the process may take steps that send nothing."""

    @reachable
    def rested(s: Any) -> bool:
        return bool(s[Restless][0].k == 5 and s[Restless][0].rests == 3)

    @always
    def once(s: Any) -> bool:
        return bool(s[Restless][0].k <= 5 and s[Getter][0].got <= 3)

    protocol = System([Restless(), Getter()], properties=[rested, once], rounds=["Only"])
    assert check(sequentialize(protocol, phases=3)).status == "holds"
    verdict = check_rounds(protocol, phases=3)
    assert (verdict.status, verdict.bound) == ("holds", "of 3 phases, 2 processes, any message may be lost")


class Teller(Process):
    """Tells one process after the other, all in one round, and counts."""

    told: int = 0

    @action(when=lambda self: self.told < 2)
    def tell(self) -> None:
        self.send(Getter.pid(self.told), Item(2))
        self.told += 1

    @action(when=lambda self: self.told == 2)
    def tell_again(self) -> None:
        self.told += 1
        self.send(Getter.pid(0), Item(3))


def test_a_process_may_leave_in_several_actions_of_one_round() -> None:
    @always
    def told_all(s: Any) -> bool:
        return bool(s[Teller][0].told <= 2)

    @reachable
    def told_both(s: Any) -> bool:
        return bool(s[Teller][0].told == 2)

    protocol = System([Teller(), Getter(), Getter()], properties=[told_all, told_both], rounds=["Only"])
    assert check_rounds(protocol, phases=1).status == "holds"
    assert check_rounds(protocol, phases=2).property == "told_all"


class Twice(Process):
    """Sends a second message of one round, after the last phase that is searched."""

    sent: int = 0

    @action
    def go(self) -> None:
        self.sent += 1
        self.send(Getter.pid(0), Item(2))


def test_a_second_message_after_the_last_phase_is_noticed() -> None:
    with pytest.raises(ModelError, match="sends Getter0 a second message of phase 2, round Only"):
        check_rounds(System([Twice(), Getter()], rounds=["Only"]), phases=1)
