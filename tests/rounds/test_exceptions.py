"""An exception of user code under rounds is one of the protocol: it comes with a run that can be replayed."""

from __future__ import annotations

import pytest

from plait import Message, Process, System, action, check, init, on, tagged
from plait.check.explain.replay import replay
from plait.rounds.check import check_rounds


@tagged(phase="k", round="Only")
class Item(Message):
    """Of a phase."""

    k: int


class Broken(Process):
    """Its handler raises."""

    @init
    def start(self) -> None:
        self.send(self.id, Item(1))

    @on(Item)
    def take(self, m: Item) -> None:
        {}[m.k]


@pytest.mark.parametrize("assume", ["none", "reliable"])
def test_an_exception_is_one_of_the_handler_of_the_protocol(assume: str) -> None:
    verdict = check_rounds(System([Broken()], rounds=["Only"]), phases=1, assume=assume)
    assert (verdict.status, verdict.property) == ("violated", "no_exceptions")
    assert verdict.trace is not None
    assert "Broken.take raised KeyError: 1" in (verdict.trace.explanation or "")
    assert [e.label for e in verdict.trace.events] == ["take"]


def test_an_assertion_in_a_guard_is_an_exception_as_without_rounds() -> None:
    def refuses(self: Process, m: Item) -> bool:
        raise AssertionError

    class Doubts(Process):
        @init
        def start(self) -> None:
            self.send(self.id, Item(1))

        @on(Item, where=refuses)
        def take(self, m: Item) -> None: ...

    for verdict in (check_rounds(System([Doubts()], rounds=["Only"]), phases=1), check(System([Doubts()]))):
        assert (verdict.status, verdict.property) == ("violated", "no_exceptions")


def test_an_action_that_raises_after_it_has_sent() -> None:
    class Late(Process):
        done: bool = False

        @action(when=lambda self: not self.done)
        def act(self) -> None:
            self.done = True
            self.broadcast(Late, Item(1))
            {}[0]

        @on(Item)
        def take(self, m: Item) -> None: ...

    protocol = System([Late(), Late()], rounds=["Only"])
    verdict = check_rounds(protocol, phases=1)
    assert (verdict.status, verdict.property) == ("violated", "no_exceptions")
    assert verdict.trace is not None
    assert len(list(replay(protocol, verdict.trace))) == 1
