"""What a network assumption promises binds each action that is not a send: it waits for the messages of its round."""

from __future__ import annotations

from typing import Any

import pytest

from plait import Message, Process, System, action, on, reachable, tagged
from plait.rounds.check import check_rounds
from tests.rounds.flood_set import flood_set, overheard


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "assume", "status"),
    [
        (flood_set(phases=1), "reliable", "holds"),
        (flood_set(inputs=(0, 1), phases=2), "reliable", "holds"),
        (flood_set(phases=1), "n-1", "violated"),
        (flood_set(phases=1), "none", "violated"),
        (overheard(), "reliable", "holds"),
        (overheard(), "n-2", "violated"),
    ],
)
def test_actions_that_send_nothing(protocol: System, assume: str, status: str) -> None:
    """FloodSet decides in such an action, after what was promised has arrived."""
    verdict = check_rounds(protocol, phases=2, assume=assume)
    assert (verdict.status, verdict.property) == (status, None if status == "holds" else "agreement")


@tagged(round="Go")
class Go(Message):
    """Begins the only round."""


class Client(Process):
    """Takes two steps before it asks."""

    wants: int = 0
    asked: bool = False

    @action(when=lambda self: self.wants < 2)
    def want(self) -> None:
        self.wants += 1

    @action(when=lambda self: self.wants == 2 and not self.asked)
    def ask(self) -> None:
        self.asked = True
        self.send(Server.pid(0), Go())


class Server(Process):
    """Is asked."""

    got: bool = False

    @on(Go)
    def take(self, m: Go) -> None:
        self.got = True


@pytest.mark.parametrize("assume", ["none", "reliable"])
def test_a_silent_action_may_prepare_a_message(assume: str) -> None:
    @reachable
    def asked(s: Any) -> bool:
        return bool(s[Server][0].got)

    protocol = System([Client(), Server()], properties=[asked], rounds=["Go"])
    assert check_rounds(protocol, phases=1, assume=assume).status == "holds"


@pytest.mark.parametrize("assume", ["none", "reliable"])
@pytest.mark.parametrize("sends", [False, True])
def test_an_action_that_fails(assume: str, sends: bool) -> None:
    class Careless(Process):
        sent: bool = False

        @action(when=lambda self: not self.sent)
        def go(self) -> None:
            self.sent = True
            if sends:
                self.broadcast(Careless, Go())
            raise AssertionError("fallen")

        @on(Go)
        def take(self, m: Go) -> None: ...

    verdict = check_rounds(System([Careless()], rounds=["Go"]), phases=1, assume=assume)
    assert (verdict.status, verdict.property) == ("violated", "assertions")
