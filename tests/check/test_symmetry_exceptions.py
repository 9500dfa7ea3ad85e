"""Exceptions of user code under symmetry: found with a real run; and raised for all of the processes or for none."""

from __future__ import annotations

from typing import Any

import pytest

from plait import Message, Monitor, Pid, Process, System, action, always, crash_recovery, durable, on, recovery
from plait.check.api import check
from plait.check.reduce.asymmetry import AsymmetryError
from tests.oracle.explorer import explore
from tests.oracle.orbits import orbits
from tests.support.agreement import check_traces
from tests.support.configurations import WAYS, run, violated


def divide(by: int) -> bool:
    """True, or an exception."""
    return 1 // by == 1


class Word(Message): ...


class Speaker(Process):
    """Speaks to all others. One of its functions raises an exception after it has heard one word."""

    breaks: str
    heard: int = durable(0)
    spoken: bool = False

    def works(self, what: str, who: Pid) -> bool:
        return divide(self.breaks != what or self.heard != 1)

    @action(when=lambda self: self.works("action guard", self.id) and not self.spoken)
    def speak(self) -> None:
        self.spoken = True
        self.broadcast(Speaker, Word(), myself=False)

    @on(Word, where=lambda self, m: self.works("guard", m.sender))
    def hear(self, m: Word) -> None:
        self.works("handler", m.sender)
        self.announce("word" if self.breaks != "monitor" or self.heard != 1 else "noise")
        self.heard = min(2, self.heard + 1)

    @recovery
    def recover(self) -> None:
        self.works("recovery", self.id)


class Picky(Speaker):
    """Only what the second speaker does raises an exception."""

    def works(self, what: str, who: Pid) -> bool:
        return divide(self.breaks != what or self.heard != 1 or who.index != 1)


class Spelling(Monitor):
    last: str = ""

    def observe(self, process: Pid, event: str) -> None:
        self.last = {"word": "known"}[event]


class Prejudice(Monitor):
    last: int = 0

    def observe(self, process: Pid, event: str) -> None:
        self.last = {0: 0, 2: 0}[process.index]


def speakers(breaks: str, speaker: type[Speaker] = Speaker, **more: Any) -> System:
    faults = [crash_recovery(Speaker)] if breaks == "recovery" else []
    return System([speaker(breaks=breaks) for _ in range(3)], symmetric=[Speaker], faults=faults, **more)


@pytest.mark.slow
@pytest.mark.parametrize("breaks", ["action guard", "guard", "handler", "monitor", "recovery"])
@pytest.mark.parametrize("without", [None, "listing"])
def test_the_same_exceptions_as_without_symmetry(breaks: str, without: str | None) -> None:
    system = speakers(breaks, monitors=[Spelling()])
    truth = explore(system)
    assert truth.violated == {"no_exceptions"}
    there = orbits(system, truth)
    assert there.closed
    assert there.states < truth.states
    for way in WAYS:
        for reduce in ("symmetry", "por,symmetry"):
            verdict = run(system, way, reduce, without=without)
            assert violated(verdict) == truth.violated
            if reduce == "symmetry":
                assert verdict.statistics.states == there.states
            check_traces(system, verdict, truth, shortest=way.search == "bfs" and reduce == "symmetry")


@always
def nobody_hears_two_words(s: Any) -> bool:
    return all(divide(speaker.heard < 2) for speaker in s[Speaker])


@always
def the_second_hears_one_word(s: Any) -> bool:
    return divide(s[Speaker][1].heard < 2)


@pytest.mark.parametrize("without", [None, "listing"])
def test_a_property_that_raises(without: str | None) -> None:
    system = speakers("", properties=[nobody_hears_two_words])
    full, reduced = (run(system, WAYS[0], reduce, without=without) for reduce in ("none", "symmetry"))
    assert violated(full) == violated(reduced) == {"no_exceptions"}
    lengths = [[len(p.trace) for p in verdict.properties if p.trace] for verdict in (full, reduced)]
    assert lengths[0] == lengths[1] == [4], "two others speak, and one hears both"


ODD: dict[str, tuple[System, str]] = {
    "action guard": (speakers("action guard", Picky), "Picky.speak"),
    "guard": (speakers("guard", Picky), "Picky.hear"),
    "handler": (speakers("handler", Picky), "Picky.hear"),
    "recovery": (speakers("recovery", Picky), "Picky"),
    "monitor": (speakers("", monitors=[Prejudice()]), r"observe\(\) of monitor Prejudice"),
    "property": (speakers("", properties=[the_second_hears_one_word]), "property the_second_hears_one_word"),
}


@pytest.mark.parametrize("without", [None, "listing"])
@pytest.mark.parametrize("case", ODD)
def test_an_exception_for_one_of_them_is_no_symmetry(case: str, without: str | None) -> None:
    system, what = ODD[case]
    for way in WAYS[::2]:
        with pytest.raises(AsymmetryError, match=f"are not symmetric: {what} treats them differently") as caught:
            run(system, way, "symmetry", without=without)
    if case == "property":
        assert "it is True in a state, and raises an exception after an exchange" in str(caught.value)
    found = check(system, reduce="auto", search="bfs")
    assert violated(found) == {"no_exceptions"}
    assert not {r.name: r for r in found.statistics.reductions}["symmetry"].applied
