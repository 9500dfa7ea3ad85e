"""What the source of handlers proves: that a protocol is never late; and what it must not be taken to prove."""

from __future__ import annotations

from typing import Any

import pytest

from plait import Message, Process, System, action, init, on, tagged
from plait.cli.sequential import conditions
from plait.protocols.ben_or import ben_or
from plait.protocols.commit_rounds import commit_rounds
from plait.protocols.raft_membership import raft_membership
from plait.protocols.uniform_voting import uniform_voting
from plait.protocols.view_change import view_change
from plait.rounds.offsets import never_late


@tagged(phase="k", round="Ask")
class Ask(Message):
    k: int


@tagged(phase="k", round="Answer")
class Answer(Message):
    k: int


ROUNDS = ["Ask", "Answer"]


class Base(Process):
    """Asks in each phase, and answers."""

    k: int = 0
    kept: Any = None

    def other(self) -> Any:
        return type(self).pid(1 - self.id.index)

    @action(when=lambda self: self.k < 2)
    def ask(self) -> None:
        self.k += 1
        self.send(self.other(), Ask(self.k))

    @on(Ask, where=lambda self, m: m.k > self.k)
    def answer(self, m: Ask) -> None:
        self.k = m.k
        self.send(m.sender, Answer(m.k))

    @on(Answer, where=lambda self, m: m.k == self.k)
    def take(self, m: Answer) -> None:
        pass


# -- in time, and seen to be ---------------------------------------------------------------------------------------------


class ByVariable(Base):
    def answer(self, m: Ask) -> None:
        number = m.k
        self.k = number
        reply = Answer(k=number)
        self.send(m.sender, reply)


class ByMethod(Base):
    def answer(self, m: Ask) -> None:
        if m.k == 1:
            self.follow(m)
        else:
            self.k, self.kept = m.k, None
            self.send(m.sender, Answer(self.k))

    def follow(self, m: Ask) -> None:
        self.k = m.k
        self.send(m.sender, Answer(m.k))


class GoesOn(Base):
    def take(self, m: Answer) -> None:
        if self.k < 3:
            self.k += 1
            self.broadcast(type(self), Ask(self.k), myself=False)


class OnlyAnswers(Base):
    """Sends when it takes something only, so that it needs no phase."""

    ask = None  # type: ignore[assignment]

    @init
    def begin(self) -> None:
        self.send(self.other(), Ask(2))

    def answer(self, m: Ask) -> None:
        self.send(m.sender, Answer(m.k))


# -- late, or not to be seen through -------------------------------------------------------------------------------------


class SameRound(Base):
    def answer(self, m: Ask) -> None:
        self.k = m.k
        self.send(m.sender, Ask(m.k))


class EarlierRound(Base):
    def take(self, m: Answer) -> None:
        self.send(m.sender, Ask(m.k))


class EarlierPhase(Base):
    def answer(self, m: Ask) -> None:
        self.k = m.k
        if m.k > 1:
            self.send(m.sender, Answer(m.k - 1))


class Forwards(Base):
    def answer(self, m: Ask) -> None:
        self.k = m.k
        self.send(m.sender, m)


class KeepsMessage(Base):
    def answer(self, m: Ask) -> None:
        if self.kept is not None:
            self.send(m.sender, self.kept)
        self.k, self.kept = m.k, Answer(m.k)


class AsksAgain(Base):
    def ask(self) -> None:
        if self.k > 0:
            self.send(self.other(), Ask(self.k))
        self.k += 1


class Forgets(Base):
    """Its phase is behind what it answered, so that it may ask an old question."""

    def answer(self, m: Ask) -> None:
        self.send(m.sender, Answer(m.k))


class GoesBack(Base):
    def take(self, m: Answer) -> None:
        self.k -= 1


class GoesBackSometimes(Base):
    def take(self, m: Answer) -> None:
        if self.kept:
            return
        self.kept = True
        self.k = 0


class Shadows(Base):
    def answer(self, m: Ask) -> None:
        self.k = m.k
        for reply in [Answer(m.k) for m in (Ask(0),)]:
            self.send(self.other(), reply)


class Reassigns(Base):
    def answer(self, m: Ask) -> None:
        self.k = m.k
        sender, m = m.sender, Ask(m.k + 1)
        m = Ask(1)
        self.send(sender, Answer(m.k))


def _elsewhere(process: Any) -> None:
    process.k = 0


class Elsewhere(Base):
    def take(self, m: Answer) -> None:
        _elsewhere(self)


class Loops(Base):
    def answer(self, m: Ask) -> None:
        self.k = m.k
        for _ in range(2):
            self.send(m.sender, Answer(self.k))
            self.k -= 1


class Anything(Base):
    """Whose guard lets any message through."""

    @on(Ask)
    def answer(self, m: Ask) -> None:
        self.k = m.k
        self.send(m.sender, Answer(m.k))


PROVEN = [Base, ByVariable, ByMethod, GoesOn, OnlyAnswers]
LATE = [SameRound, EarlierRound, EarlierPhase, Forwards, KeepsMessage, AsksAgain, Forgets, GoesBack, GoesBackSometimes]
UNCLEAR = [Shadows, Reassigns, Elsewhere, Loops, Anything]


def protocol(cls: type[Process]) -> System:
    return System([cls(), cls()], rounds=ROUNDS)


@pytest.mark.parametrize("cls", PROVEN)
def test_what_is_in_time_is_seen_to_be(cls: type[Process]) -> None:
    assert never_late(protocol(cls))
    verdict = conditions(protocol(cls))
    for number in (1, 2, 5):
        found = verdict.properties[number - 1]
        assert found.status == "holds"
        assert "by the source of the handlers" in (found.note or "")


@pytest.mark.parametrize("cls", LATE)
def test_what_is_late_is_not_proven(cls: type[Process]) -> None:
    assert not never_late(protocol(cls))
    assert any(conditions(protocol(cls)).properties[number - 1].status == "violated" for number in (1, 2, 3, 5))


@pytest.mark.parametrize("cls", UNCLEAR)
def test_what_is_not_understood_is_not_proven(cls: type[Process]) -> None:
    assert not never_late(protocol(cls))


@pytest.mark.parametrize(
    ("system", "proven"),
    [
        (ben_or(), True),
        (view_change(), True),
        (commit_rounds(), True),
        (uniform_voting(inputs=(0, 1), least=1), False),
        (raft_membership(), False),
    ],
)
def test_the_zoo(system: System, proven: bool) -> None:
    """Whatever is proven, the search does not refute."""
    assert never_late(system) == proven
    assert conditions(system, max_states=20_000).status != "violated"
