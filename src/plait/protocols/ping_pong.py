"""Ping-pong: two processes send a number back and forth. The smallest model that shows what a network can do.

The pinger begins with Ping(0). A process that receives the number that it expects sends it back: Ping(n) is answered
by Pong(n), and Pong(n) by Ping(n + 1). Each process counts what it received, up to `maximum`. Stateright tests its
networks with the same model (src/actor/actor_test_util.rs).

- `network="unordered"`: the number is in one place.
- `network="duplicating"`: old messages remain, and are recognised by their numbers.
- `lossy=True`: a message may be lost. Then the game ends.

The faulty twin, `faulty="ponger"`: the ponger answers each message, including old ones. The fault shows on a
duplicating network.

Simplified: the processes do not detect a lost message, and do not send it again.
"""

from __future__ import annotations

from typing import Literal, get_args

from plait import Message, Process, System, always, duplicating, init, on, reachable, unordered
from plait.model.view import View
from plait.protocols._parameters import at_least, one_of

Fault = Literal["none", "ponger"]
NetworkName = Literal["unordered", "duplicating"]


class Ping(Message):
    """The number, sent to the ponger."""

    number: int


class Pong(Message):
    """The number, sent back."""

    number: int


class Player(Process):
    """Counts the messages that it received."""

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
    """Sends the number back."""

    @on(Ping, where=lambda self, m: m.number == self.caught < self.maximum)
    def ping(self, m: Ping) -> None:
        self.caught += 1
        self.send(m.sender, Pong(m.number))


class FaultyPonger(Ponger):
    """Answers each message, including old ones."""

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
