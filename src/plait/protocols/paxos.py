"""Paxos: single-decree consensus (Lamport, "The Part-Time Parliament", TOCS 1998; "Paxos Made Simple", 2001).

Proposers compete to get a value chosen. Acceptors vote. Learners learn the value for which a majority of acceptors
voted.

- A proposer has one ballot number and one value, and proposes once. Phase 1: it asks all acceptors to *read* what
  they have accepted. An acceptor that answers promises to ignore all smaller ballots. Phase 2: when a majority has
  answered, the proposer asks all acceptors to *write* the value that was accepted with the greatest ballot, or its
  own value if there is none.
- An acceptor accepts a write unless it promised a greater ballot, and tells the learners.
- A learner learns a value when a majority of acceptors accepted it with the same ballot.

Two variants of the same protocol (MP-Basset compares them, and calls the messages READ, READ_REPL, …):

- `quorum=True`: a majority of replies is consumed in one quorum transition.
- `quorum=False`: each message is consumed alone, and processes count. There is also a Spin model of this variant
  (src/plait/bench/peers/models/paxos.pml), with the same states and transitions.

Faulty twins, each of which breaks agreement:

- `acceptor`: one acceptor accepts each write and ignores its promise (Faulty-Paxos in Table I of DBSS).
- `memory`: one acceptor raises its promise only on reads, and remembers the *last* write that it accepted instead of
  the one with the greatest ballot. The fault shows with three proposers (Faulty-Paxos2 in the same table).
- `learner`: the learners do not compare the votes of a majority (Faulty Paxos of MP-Basset).

Simplified: a proposer tries once and never retries with a greater ballot. Processes do not crash: a crashed process
cannot be told from a slow one, and no process here waits for all others.
"""

from __future__ import annotations

import enum
from typing import Literal, get_args

from plait import Message, Process, System, action, always, field, majority, on, reachable
from plait.model.view import View
from plait.protocols._parameters import at_least, one_of, several

Vote = tuple[int, int]
"""A ballot and the value accepted with it."""

Fault = Literal["none", "acceptor", "memory", "learner"]


class Read(Message):
    """Phase 1a: tell what you have accepted, and promise to ignore smaller ballots."""

    ballot: int


class ReadReply(Message):
    """Phase 1b: I promise; this is what I accepted."""

    ballot: int
    accepted: Vote | None


class Write(Message):
    """Phase 2a: accept this value."""

    ballot: int
    value: int


class Accept(Message):
    """Phase 2b: I accepted this value."""

    ballot: int
    value: int


class Phase(enum.Enum):
    """What a proposer is doing."""

    IDLE = enum.auto()
    READING = enum.auto()
    DONE = enum.auto()


# -- acceptors, sound and faulty -------------------------------------------------------------------------------------


class Acceptor(Process):
    """Votes, and remembers its greatest promise and its vote with the greatest ballot."""

    promised: int = 0
    accepted: Vote | None = None

    @on(Read, where=lambda self, m: m.ballot > self.promised)
    def promise(self, m: Read) -> None:
        self.promised = m.ballot
        self.send(m.sender, ReadReply(m.ballot, self.accepted))

    @on(Write, where=lambda self, m: m.ballot >= self.promised)
    def accept(self, m: Write) -> None:
        self.promised = m.ballot
        self.accepted = (m.ballot, m.value)
        self.broadcast(AnyLearner, Accept(m.ballot, m.value))


class FaultyAcceptor(Acceptor):
    """Accepts every write, regardless of its promise."""

    @on(Write)
    def accept(self, m: Write) -> None:
        self.accepted = (m.ballot, m.value)
        self.broadcast(AnyLearner, Accept(m.ballot, m.value))


class ForgetfulAcceptor(Acceptor):
    """Remembers the last write it accepted instead of the one with the greatest ballot.

    In "Paxos Made Simple" an acceptor may accept (2, x) and then (1, y) if it promised neither: accepting is not a
    promise. But then it must remember (2, x).
    """

    @on(Write, where=lambda self, m: m.ballot >= self.promised)
    def accept(self, m: Write) -> None:
        self.accepted = (m.ballot, m.value)
        self.broadcast(AnyLearner, Accept(m.ballot, m.value))


# -- proposers -------------------------------------------------------------------------------------------------------


class AnyProposer(Process):
    """Proposes its value once, with its own ballot."""

    ballot: int
    value: int
    phase: Phase = Phase.IDLE

    @action(when=lambda self: self.phase is Phase.IDLE)
    def start(self) -> None:
        self.phase = Phase.READING
        self.broadcast(Acceptor, Read(self.ballot))

    def write(self, best: Vote | None) -> None:
        """Propose the value of the best vote of a majority, which may have been chosen; otherwise its own value."""
        self.phase = Phase.DONE
        self.broadcast(Acceptor, Write(self.ballot, self.value if best is None else best[1]))


class Proposer(AnyProposer):
    """Takes the replies of a majority at once."""

    @on(ReadReply, quorum=majority(Acceptor), same="ballot", where=lambda self, m: self.phase is Phase.READING)
    def read(self, replies: tuple[ReadReply, ...]) -> None:
        votes = [m.accepted for m in replies if m.accepted is not None]
        self.write(max(votes, default=None))


class CountingProposer(AnyProposer):
    """Takes the replies one by one."""

    count: int = 0
    best: Vote | None = None

    @on(ReadReply, where=lambda self, m: self.phase is Phase.READING)
    def read(self, m: ReadReply) -> None:
        self.count += 1
        if m.accepted is not None and (self.best is None or m.accepted[0] > self.best[0]):
            self.best = m.accepted
        if self.count == len(self.ids(Acceptor)) // 2 + 1:
            self.write(self.best)
            self.count, self.best = 0, None


# -- learners, sound and faulty --------------------------------------------------------------------------------------


class AnyLearner(Process):
    """Learns at most one value for each ballot. Paxos ensures that all these values are equal."""

    learned: dict[int, int] = field(default_factory=dict)


class Learner(AnyLearner):
    """Takes the votes of a majority at once."""

    @on(
        Accept,
        quorum=majority(Acceptor),
        same=("ballot", "value"),
        where=lambda self, m: m.ballot not in self.learned,
    )
    def learn(self, votes: tuple[Accept, ...]) -> None:
        self.learned[votes[0].ballot] = votes[0].value


class FaultyLearner(AnyLearner):
    """Takes the votes of any majority without comparing values."""

    @on(Accept, quorum=majority(Acceptor), where=lambda self, m: m.ballot not in self.learned)
    def learn(self, votes: tuple[Accept, ...]) -> None:
        self.learned[votes[0].ballot] = votes[0].value


class CountingLearner(AnyLearner):
    """Counts the votes for each ballot; an acceptor votes at most once for a ballot."""

    votes: dict[int, int] = field(default_factory=dict)

    @on(Accept, where=lambda self, m: m.ballot not in self.learned)
    def learn(self, m: Accept) -> None:
        self.votes[m.ballot] = self.votes.get(m.ballot, 0) + 1
        if self.votes[m.ballot] == len(self.ids(Acceptor)) // 2 + 1:
            self.learned[m.ballot] = m.value


class FaultyCountingLearner(AnyLearner):
    """Counts votes without comparing values."""

    votes: int = 0

    @on(Accept, where=lambda self, m: m.ballot not in self.learned)
    def learn(self, m: Accept) -> None:
        self.votes += 1
        if self.votes == len(self.ids(Acceptor)) // 2 + 1:
            self.learned[m.ballot] = m.value
            self.votes = 0


# -- properties ------------------------------------------------------------------------------------------------------


def learned_values(s: View) -> set[int]:
    """All values that some learner learned."""
    return {value for learner in s[AnyLearner] for value in learner.learned.values()}


@always
def agreement(s: View) -> bool:
    """No two different values are learned."""
    return len(learned_values(s)) <= 1


@always
def validity(s: View) -> bool:
    """Only values that were proposed are learned."""
    return learned_values(s) <= {p.value for p in s[AnyProposer]}


@reachable
def learning(s: View) -> bool:
    """A value can be learned."""
    return bool(learned_values(s))


# -- the model -------------------------------------------------------------------------------------------------------


def paxos(
    proposers: int = 2,
    acceptors: int = 3,
    learners: int = 1,
    quorum: bool = True,
    faulty: Fault = "none",
) -> System:
    """Paxos with these numbers of processes; `faulty` plants a fault."""
    at_least(1, proposers=proposers, acceptors=acceptors, learners=learners)
    one_of(get_args(Fault), faulty=faulty)
    proposer: type[AnyProposer] = Proposer if quorum else CountingProposer
    learner: type[AnyLearner]
    if faulty == "learner":
        learner = FaultyLearner if quorum else FaultyCountingLearner
    else:
        learner = Learner if quorum else CountingLearner
    first: type[Acceptor] = {"acceptor": FaultyAcceptor, "memory": ForgetfulAcceptor}.get(faulty, Acceptor)
    return System(
        [
            *(proposer(ballot=i + 1, value=i + 1) for i in range(proposers)),
            first(),
            *(Acceptor() for _ in range(acceptors - 1)),
            *(learner() for _ in range(learners)),
        ],
        properties=[agreement, validity, learning],
        # A FaultyLearner learns the vote of the first acceptor of a quorum, so acceptors are not symmetric.
        symmetric=several({AnyLearner: learners} | ({} if learner is FaultyLearner else {Acceptor: acceptors})),
        name="paxos",
    )
