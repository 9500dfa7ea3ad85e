"""Paxos as in Lamport's TLA+ specification (tlaplus/Examples, PaxosHowToWinATuringAward, model MCPaxosTiny).

The specification does not say which process waits for which message. Messages are a set that never shrinks, each
ballot has its own leader, and a step may be taken whenever its condition holds.

- Phase 1a: the leader of a ballot begins it, at any time.
- Phase 1b: an acceptor that receives a ballot greater than all before (maxBal) joins it, and sends its last vote.
- Phase 2a: a leader that has answers from a quorum asks for votes for one value: the value of the greatest vote in
  the answers, or any value if there is no vote. It does so once.
- Phase 2b: an acceptor votes, unless it joined a greater ballot.

A value is chosen when a quorum voted for it in the same ballot. Here the votes go to an observer that never consumes
them, so they stay in the state like each message of the specification. Names are those of the specification.

The faulty twin, `faulty="leader"`: leaders ask for votes for any value and ignore the answers.

Simplified: there are few ballots, values and acceptors. Messages are not lost and processes do not crash; since no
step has to be taken, this makes no difference to the values that can be chosen. There is no variant without quorum
transitions: phase 2a reads a set of messages and consumes none.
"""

from __future__ import annotations

from typing import Literal, get_args

from plait import Message, Process, System, action, always, duplicating, majority, on, reachable
from plait.model.view import View
from plait.protocols._parameters import at_least, one_of, several

Fault = Literal["none", "leader"]

NEVER = -1
"""Less than all ballots."""


class Phase1a(Message):
    """A ballot begins."""

    bal: int


class Phase1b(Message):
    """The sender joined the ballot; its last vote was this (mbal is NEVER if it cast none)."""

    bal: int
    mbal: int
    mval: int | None


class Phase2a(Message):
    """Vote for this value."""

    bal: int
    val: int


class Phase2b(Message):
    """The sender voted."""

    bal: int
    val: int


class Acceptor(Process):
    """Joins ballots and votes."""

    max_bal: int = NEVER
    max_v_bal: int = NEVER
    max_val: int | None = None

    @on(Phase1a, where=lambda self, m: m.bal > self.max_bal)
    def phase1b(self, m: Phase1a) -> None:
        self.max_bal = m.bal
        self.send(m.sender, Phase1b(m.bal, self.max_v_bal, self.max_val))

    @on(Phase2a, where=lambda self, m: m.bal >= self.max_bal)
    def phase2b(self, m: Phase2a) -> None:
        self.max_bal = self.max_v_bal = m.bal
        self.max_val = m.val
        self.broadcast(Observer, Phase2b(m.bal, m.val))


class Leader(Process):
    """Leads one ballot."""

    bal: int
    values: int
    asked: bool = False

    @action
    def phase1a(self) -> None:
        self.broadcast(Acceptor, Phase1a(self.bal))  # sending twice changes nothing: messages are a set

    @on(Phase1b, quorum=majority(Acceptor), where=lambda self, m: not self.asked)
    def phase2a(self, quorum: tuple[Phase1b, ...]) -> None:
        self.asked = True
        self.broadcast(Acceptor, Phase2a(self.bal, self.choose(self.safe_values(quorum))))

    def safe_values(self, quorum: tuple[Phase1b, ...]) -> list[int]:
        """The values that are safe: no other value can be chosen in a smaller ballot."""
        last = max(quorum, key=lambda m: m.mbal)
        return list(range(self.values)) if last.mval is None else [last.mval]


class FaultyLeader(Leader):
    """Treats each value as safe."""

    def safe_values(self, quorum: tuple[Phase1b, ...]) -> list[int]:
        """All."""
        return list(range(self.values))


class Observer(Process):
    """Receives the votes."""


def chosen(s: View) -> set[int]:
    """The values for which a majority voted in one ballot."""
    (observer,) = s[Observer]
    votes = [(m.bal, m.val) for m in observer.inbox if isinstance(m, Phase2b)]
    return {val for bal, val in votes if 2 * votes.count((bal, val)) > len(s[Acceptor])}


@always
def consistency(s: View) -> bool:
    """At most one value is chosen."""
    return len(chosen(s)) <= 1


@reachable
def choosing(s: View) -> bool:
    """A value can be chosen."""
    return bool(chosen(s))


def mcpaxos(acceptors: int = 3, values: int = 2, ballots: int = 2, faulty: Fault = "none") -> System:
    """The specification with these numbers of acceptors and values, and ballots from 0."""
    at_least(1, acceptors=acceptors, values=values, ballots=ballots)
    one_of(get_args(Fault), faulty=faulty)
    leader = FaultyLeader if faulty == "leader" else Leader
    return System(
        [
            *(leader(bal=b, values=values) for b in range(ballots)),
            *(Acceptor() for _ in range(acceptors)),
            Observer(),
        ],
        network=duplicating(),
        properties=[consistency, choosing],
        symmetric=several({Acceptor: acceptors}),
        name="mcpaxos",
    )
