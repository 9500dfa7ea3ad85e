"""OneThirdRule: consensus in one round per phase (Charron-Bost, Schiper, "The Heard-Of Model", 2009).

Each process starts with a value. All must agree on one of these values, although messages may be late or lost. There is
no leader. A phase has a single round, *Estimate*: each process sends its estimate x to all, and hears from some of them.
If it hears from more than two thirds of all processes, then

1. its estimate becomes the value that it received most often (of several such values, the smallest), and
2. it *decides* this value if it received it from more than two thirds of all processes.

Otherwise it does nothing in this phase. After a decision, more than two thirds of the processes have the decided value
as their estimate, and any set of more than two thirds of the messages has it more often than any other value. So the
protocol is safe on every network.

Faulty twin:

- `half`: more than half of all processes are enough, in both places. With three processes, the fault shows after two
  phases.

Simplified: the number of phases is bounded. A process has no clock: it may continue at any time, with what it has heard.
A lost message is one that is never delivered.
"""

from __future__ import annotations

from typing import Literal, get_args

from plait import Message, ModelError, Process, System, action, always, init, on, reachable, tagged
from plait.model.view import View
from plait.protocols._parameters import at_least, one_of

Fault = Literal["none", "half"]


@tagged(phase="phase", round="Estimate")
class Estimate(Message):
    """The sender's estimate."""

    phase: int
    x: int


class Peer(Process):
    """Has an estimate, and eventually decides."""

    phases: int
    """The number of phases."""
    enough: int
    """The number of messages that is more than two thirds (or half) of all."""
    x: int
    phase: int = 1
    heard: tuple[int, ...] = ()
    """The estimates that it has heard in this phase, sorted."""
    decisions: tuple[int, ...] = ()
    """The values that it decided, without repetitions: more than one is a violation."""

    @init
    def start(self) -> None:
        self.broadcast(Peer, Estimate(self.phase, self.x))

    @on(Estimate, where=lambda self, m: m.phase == self.phase and self.phase <= self.phases)
    def hear(self, m: Estimate) -> None:
        self.heard = tuple(sorted((*self.heard, m.x)))

    @action(when=lambda self: self.phase <= self.phases)
    def conclude(self) -> None:
        if len(self.heard) >= self.enough:
            most = max(self.heard.count(x) for x in self.heard)
            self.x = min(x for x in self.heard if self.heard.count(x) == most)
            if most >= self.enough and self.x not in self.decisions:
                self.decisions += (self.x,)
        self.phase += 1
        self.heard = ()
        if self.phase <= self.phases:
            self.broadcast(Peer, Estimate(self.phase, self.x))


# -- properties ------------------------------------------------------------------------------------------------------


@always
def agreement(s: View) -> bool:
    """No two different values are decided."""
    return len({value for peer in s[Peer] for value in peer.decisions}) <= 1


@reachable
def decision(s: View) -> bool:
    """All processes can decide."""
    return all(peer.decisions for peer in s[Peer])


# -- the model -------------------------------------------------------------------------------------------------------


def one_third_rule(inputs: tuple[int, ...] = (0, 1), phases: int = 2, faulty: Fault = "none") -> System:
    """Processes with these inputs, in `phases` phases."""
    at_least(1, phases=phases)
    one_of(get_args(Fault), faulty=faulty)
    n = len(inputs)
    if not inputs:
        raise ModelError("inputs=(): expected the value of at least one process", hint="for example -p inputs=0,1,1")

    @always
    def validity(s: View) -> bool:
        """Each decided value is the input of some process."""
        return all(value in inputs for peer in s[Peer] for value in peer.decisions)

    enough = n // 2 + 1 if faulty == "half" else 2 * n // 3 + 1
    return System(
        [Peer(phases=phases, enough=enough, x=x) for x in inputs],
        properties=[agreement, validity, decision],
        rounds=["Estimate"],
        name="one_third_rule",
    )
