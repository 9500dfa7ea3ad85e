"""UniformVoting: consensus by votes and the minimum (Charron-Bost, Schiper, "The Heard-Of Model", 2009; paper 002).

Processes start with a value each, and must agree on one of them. There is neither a leader nor a quorum: a process goes on
with whatever messages of a round it has heard. They go through phases of two rounds:

1. Estimate: everybody sends its estimate x to all. Who hears some takes the smallest for its own, and *votes* for it if all
   that it heard are the same.
2. Vote: everybody sends its estimate and its vote, if it has one, to all. Who hears a vote takes it for its estimate, who
   hears none takes the smallest estimate. Who hears only votes *decides*: all of them are for the same value.

For this to be right, no two processes may hear from disjoint sets of processes in a round. A *kernel* is a process that
everybody hears from in that round; if each round has one, the protocol is safe. It is also safe if everybody waits for
more than half of the messages, and this is the default here. With `least=1` a process goes on with any nonempty set of
messages: then agreement depends on the network (`plait check uniform-voting -p least=1 --rounds --assume kernel`).

Faulty twins, each of which breaks agreement:

- `estimate`: a process that decides does not take what it decided for its estimate. It takes three phases to notice.
- `split`: processes go on with any nonempty set of messages (`least=1`), and the network promises nothing.

Simplified: the number of phases is bounded. A process chooses at the beginning of a round how many messages it will go on
with, instead of having a clock. A message that is never delivered is lost.
"""

from __future__ import annotations

from typing import Literal, get_args

from plait import Message, ModelError, Process, System, action, always, on, reachable, tagged
from plait.model.view import View
from plait.protocols._parameters import at_least, one_of

Fault = Literal["none", "estimate", "split"]


@tagged(phase="phase", round="Estimate")
class Estimate(Message):
    """The sender's estimate."""

    phase: int
    x: int


@tagged(phase="phase", round="Vote")
class Vote(Message):
    """The sender's estimate and its vote, if it has one."""

    phase: int
    x: int
    vote: int | None


class Voter(Process):
    """Has an estimate, and decides at some time."""

    phases: int
    """So many phases there are."""
    least: int
    most: int
    """It goes on with no fewer messages than `least`, and with no more than `most`."""
    x: int
    phase: int = 0
    stage: Literal["Estimate", "Vote"] = "Vote"
    """The round of the phase: what it is waiting for."""
    wait: int = 1
    """It goes on when it has heard so many messages."""
    decisions: tuple[int, ...] = ()
    """What it decided, without repetitions: more than one is a fault already."""

    @action(when=lambda self: self.phase == 0)
    def start(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begin the next phase, unless it was the last."""
        self.phase += 1
        self.stage = "Estimate"
        if self.phase <= self.phases:
            self.wait = self.choose(range(self.least, self.most + 1))
            self.broadcast(Voter, Estimate(self.phase, self.x))

    @on(
        Estimate,
        quorum=lambda self: self.wait,
        where=lambda self, m: m.phase == self.phase and self.stage == "Estimate",
    )
    def vote(self, estimates: tuple[Estimate, ...]) -> None:
        heard = {m.x for m in estimates}
        self.x = min(heard)
        self.stage = "Vote"
        self.wait = self.choose(range(self.least, self.most + 1))
        self.broadcast(Voter, Vote(self.phase, self.x, self.x if len(heard) == 1 else None))

    @on(
        Vote,
        quorum=lambda self: self.wait,
        where=lambda self, m: m.phase == self.phase and self.stage == "Vote",
    )
    def conclude(self, votes: tuple[Vote, ...]) -> None:
        heard = [m.vote for m in votes if m.vote is not None]
        decided = len(heard) == len(votes)
        if decided and heard[0] not in self.decisions:
            self.decisions += (heard[0],)
        if not heard:
            self.x = min(m.x for m in votes)
        elif self.takes(decided):
            self.x = heard[0]
        self.begin()

    def takes(self, decided: bool) -> bool:
        """Whether it takes a vote that it hears for its estimate."""
        return True


class StubbornVoter(Voter):
    """Keeps its estimate when it decides."""

    def takes(self, decided: bool) -> bool:
        """Whether it takes a vote that it hears for its estimate."""
        return not decided


# -- properties ------------------------------------------------------------------------------------------------------


@always
def agreement(s: View) -> bool:
    """No two different values are decided."""
    return len({value for voter in s[Voter] for value in voter.decisions}) <= 1


@reachable
def decision(s: View) -> bool:
    """Everybody can decide."""
    return all(voter.decisions for voter in s[Voter])


# -- the model -------------------------------------------------------------------------------------------------------


def uniform_voting(
    inputs: tuple[int, ...] = (0, 1, 1),
    phases: int = 1,
    least: int | None = None,
    most: int | None = None,
    faulty: Fault = "none",
) -> System:
    """Processes with these inputs go through so many phases, and hear `least` (more than half) to `most` (all) others."""
    at_least(1, phases=phases)
    one_of(get_args(Fault), faulty=faulty)
    n = len(inputs)
    if least is None:
        least = 1 if faulty == "split" else n // 2 + 1
    if most is None:
        most = n
    if not 1 <= least <= most <= n:
        raise ModelError(
            f"least={least} and most={most}: expected numbers of messages from 1 to {n}, one for each input",
            hint="for example -p inputs=0,1,1 -p least=1 -p most=3",
        )
    voter = StubbornVoter if faulty == "estimate" else Voter

    @always
    def validity(s: View) -> bool:
        """What is decided is the input of some process."""
        return all(value in inputs for voter in s[Voter] for value in voter.decisions)

    return System(
        [voter(phases=phases, least=least, most=most, x=x) for x in inputs],
        properties=[agreement, validity, decision],
        rounds=["Estimate", "Vote"],
        name="uniform_voting",
    )
