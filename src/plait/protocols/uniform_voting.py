"""UniformVoting: consensus by votes and the minimum (Charron-Bost, Schiper, "The Heard-Of Model", 2009; Sequentialization).

Each process starts with a value. All must agree on one of these values. There is no leader and no quorum: a process
continues with the messages of a round that it has received. A phase has two rounds:

1. Estimate: each process sends its estimate x to all. A process takes the smallest estimate that it receives as its
   own, and *votes* for it if all received estimates are the same.
2. Vote: each process sends its estimate and its vote, if it has one, to all. A process that receives a vote takes it
   as its estimate; otherwise it takes the smallest estimate. A process that receives only votes *decides*: all votes
   are for the same value.

This is correct if no two processes hear from disjoint sets of processes in a round. A *kernel* is a process that all
others hear from in a round. If each round has a kernel, the protocol is safe. It is also safe if each process waits
for more than half of the messages, which is the default here. With `least=1` a process continues with any nonempty
set of messages: then agreement depends on the network (`plait check uniform-voting -p least=1 -p phases=2 --rounds
--assume kernel`).

Faulty twins, each of which breaks agreement:

- `estimate`: a process that decides does not take the decided value as its estimate. The fault shows after three
  phases.
- `split`: processes continue with any nonempty set of messages (`least=1`), and the network guarantees nothing.

Simplified: the number of phases is bounded (0: it is not, for `plait check --rounds --phases any`). A process has no
clock: when it has received enough, it may continue at any time. A lost message is one that is never delivered.
"""

from __future__ import annotations

from typing import Literal, get_args

from plait import Message, ModelError, Process, System, action, always, init, on, reachable, tagged
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
    """Has an estimate, and eventually decides."""

    phases: int
    """The number of phases; 0 for no limit."""
    least: int
    """The number of messages that it waits for, at least."""
    x: int
    phase: int = 1
    stage: Literal["Estimate", "Vote"] = "Estimate"
    """The round of the phase."""
    heard: tuple[tuple[int, int | None], ...] = ()
    """The estimates that it has heard in this round, each with the vote, if there was one; sorted."""
    decisions: tuple[int, ...] = ()
    """The values that it decided, without repetitions: more than one is a violation."""

    @init
    def start(self) -> None:
        self.broadcast(Voter, Estimate(self.phase, self.x))

    def hears(self, m: Estimate | Vote, stage: str) -> bool:
        """Whether a message is for this round."""
        return m.phase == self.phase and self.stage == stage and (self.phases == 0 or self.phase <= self.phases)

    def enough(self, stage: str) -> bool:
        """Whether it may continue to the next round."""
        return self.stage == stage and len(self.heard) >= self.least

    def hear(self, x: int, vote: int | None) -> None:
        """Remember an estimate and a vote."""
        self.heard = tuple(sorted((*self.heard, (x, vote)), key=str))

    @on(Estimate, where=lambda self, m: self.hears(m, "Estimate"))
    def hear_estimate(self, m: Estimate) -> None:
        self.hear(m.x, None)

    @action(when=lambda self: self.enough("Estimate"))
    def vote(self) -> None:
        values = {x for x, _ in self.heard}
        self.x = min(values)
        self.stage = "Vote"
        self.heard = ()
        self.broadcast(Voter, Vote(self.phase, self.x, self.x if len(values) == 1 else None))

    @on(Vote, where=lambda self, m: self.hears(m, "Vote"))
    def hear_vote(self, m: Vote) -> None:
        self.hear(m.x, m.vote)

    @action(when=lambda self: self.enough("Vote"))
    def conclude(self) -> None:
        votes = [vote for _, vote in self.heard if vote is not None]
        decided = len(votes) == len(self.heard)
        if decided and votes[0] not in self.decisions:
            self.decisions += (votes[0],)
        if not votes:
            self.x = min(x for x, _ in self.heard)
        elif self.takes(decided):
            self.x = votes[0]
        self.phase += 1
        self.stage = "Estimate"
        self.heard = ()
        self.broadcast(Voter, Estimate(self.phase, self.x))

    def takes(self, decided: bool) -> bool:
        """Whether it takes a vote as its estimate."""
        return True


class StubbornVoter(Voter):
    """Keeps its estimate when it decides."""

    def takes(self, decided: bool) -> bool:
        """Whether it takes a vote as its estimate."""
        return not decided


# -- properties ------------------------------------------------------------------------------------------------------


@always
def agreement(s: View) -> bool:
    """No two different values are decided."""
    return len({value for voter in s[Voter] for value in voter.decisions}) <= 1


@reachable
def decision(s: View) -> bool:
    """All processes can decide."""
    return all(voter.decisions for voter in s[Voter])


# -- the model -------------------------------------------------------------------------------------------------------


def uniform_voting(
    inputs: tuple[int, ...] = (0, 1, 1), phases: int = 1, least: int | None = None, faulty: Fault = "none"
) -> System:
    """Processes with these inputs; in each round of a phase, each waits for `least` messages (default: more than half)."""
    at_least(0, phases=phases)
    one_of(get_args(Fault), faulty=faulty)
    n = len(inputs)
    if least is None:
        least = 1 if faulty == "split" else n // 2 + 1
    if not 1 <= least <= n:
        raise ModelError(
            f"least={least}: expected a number of messages from 1 to {n}, one for each input",
            hint="for example -p inputs=0,1,1 -p least=1",
        )
    voter = StubbornVoter if faulty == "estimate" else Voter

    @always
    def validity(s: View) -> bool:
        """Each decided value is the input of some process."""
        return all(value in inputs for voter in s[Voter] for value in voter.decisions)

    return System(
        [voter(phases=phases, least=least, x=x) for x in inputs],
        properties=[agreement, validity, decision],
        rounds=["Estimate", "Vote"],
        name="uniform_voting",
    )
