"""Message classes and those below them."""

from __future__ import annotations

from plait import Message, Process, System, always, check, init, on
from plait.model.message import subclasses


class Note(Message):
    level: int


class Alarm(Note):
    """A handler of Note takes this too."""


class Fire(Alarm): ...


class Guard(Process):
    heard: int = 0

    @init
    def ring(self) -> None:
        self.broadcast(Guard, Fire(2))

    @on(Note, where=lambda self, m: m.level > self.heard)
    def hear(self, m: Note) -> None:
        self.heard = m.level


def test_subclasses_are_those_of_all_levels() -> None:
    assert subclasses(Note) == [Alarm, Fire]
    assert subclasses(Fire) == []


def test_classes_that_a_check_derives_do_not_count() -> None:
    """A check with coverage reads messages through classes of its own, which outlive it."""
    verdict = check(System([Guard(), Guard()], properties=[always(lambda s: True)]), coverage=True)
    assert verdict.status == "holds"
    assert Fire.__subclasses__() != []
    assert subclasses(Note) == [Alarm, Fire]
