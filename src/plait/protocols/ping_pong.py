"""Ping-pong: two processes throw a number to and fro. The smallest model in which a network can misbehave.

The pinger begins with Ping(0). Who receives the number it expects throws it back: Ping(n) is answered by Pong(n), and
Pong(n) by Ping(n + 1). Each counts what it caught, up to `maximum`. Stateright tests its networks with the same model
(src/actor/actor_test_util.rs).

- `network="unordered"`: the ball is in one place.
- `network="duplicating"`: old balls stay around, and are recognised by their numbers.
- `lossy=True`: a ball may be lost, and then the game is over.

The faulty twin, `faulty="ponger"`: the ponger throws back every ball, also those it caught before. It takes a duplicating
network to notice.

Simplified: nobody notices that a ball was lost, and there is no second one.
"""

from __future__ import annotations

from typing import Literal, get_args

from plait import Message, Process, System, always, duplicating, init, on, reachable, unordered
from plait.model.view import View
from plait.protocols._parameters import at_least, one_of

Fault = Literal["none", "ponger"]
NetworkName = Literal["unordered", "duplicating"]


class Ping(Message):
    """The ball on its way to the ponger."""

    number: int


class Pong(Message):
    """The ball on its way back."""

    number: int


class Player(Process):
    """Counts what it caught."""

    maximum: int
    caught: int = 0


class Pinger(Player):
    """Begins."""

    @init
    def serve(self) -> None:
        self.broadcast(Ponger, Ping(0))

    @on(Pong, where=lambda self, m: m.number == self.caught < self.maximum)
    def pong(self, m: Pong) -> None:
        self.caught += 1
        self.send(m.sender, Ping(m.number + 1))


class Ponger(Player):
    """Throws back."""

    @on(Ping, where=lambda self, m: m.number == self.caught < self.maximum)
    def ping(self, m: Ping) -> None:
        self.caught += 1
        self.send(m.sender, Pong(m.number))


class FaultyPonger(Ponger):
    """Throws back any ball."""

    @on(Ping, where=lambda self, m: self.caught < self.maximum)
    def ping(self, m: Ping) -> None:
        self.caught += 1
        self.send(m.sender, Pong(m.number))


@always
def in_step(s: View) -> bool:
    """The two counts differ by at most one."""
    caught = [player.caught for player in s[Player]]
    return bool(max(caught) - min(caught) <= 1)


@reachable
def played(s: View) -> bool:
    """The game can be played to the end."""
    return all(player.caught == player.maximum for player in s[Player])


def ping_pong(
    maximum: int = 5, network: NetworkName = "unordered", lossy: bool = False, faulty: Fault = "none"
) -> System:
    """A game up to `maximum` on this network."""
    at_least(1, maximum=maximum)
    one_of(get_args(NetworkName), network=network)
    one_of(get_args(Fault), faulty=faulty)
    ponger = FaultyPonger if faulty == "ponger" else Ponger
    return System(
        [Pinger(maximum=maximum), ponger(maximum=maximum)],
        network=(duplicating if network == "duplicating" else unordered)(lossy=lossy),
        properties=[in_step, played],
        name="ping_pong",
    )
