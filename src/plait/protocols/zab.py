"""Zab: atomic broadcast for primary-backup systems (Junqueira, Reed, Serafini, DSN 2011), as in ZooKeeper.

A leader broadcasts transactions, and its followers deliver them, all in the same order. Leaders fail and are
replaced. Each leads in its own *epoch*. The transactions of an epoch come after all transactions of earlier epochs,
and a new leader begins only when it has every transaction that may have been delivered. Each follower turns to a
prospective leader (an oracle chooses it, and may be wrong), and goes through three phases with it:

1. *Discovery.* A follower tells the leader the last epoch that it promised (CEPOCH). From the promises of a quorum,
   the leader derives a later epoch, and proposes it to that quorum (NEWEPOCH). A follower that has promised no later
   epoch promises it, and answers with its history and the last epoch whose leader it accepted (ACK-E).
2. *Synchronisation.* When the whole quorum has answered, the leader takes over the history of the follower that
   accepted the latest epoch (the longest history, if there are several), and sends it to the quorum (NEWLEADER). A
   follower that has not promised another epoch since replaces its own history and so accepts the leader (ACK-LD).
   When the whole quorum has accepted, the leader is *established*: it tells the followers to deliver the history
   (COMMIT-LD).
3. *Broadcast.* The leader proposes transactions (PROPOSE); followers append them to their history in order (ACK).
   When a quorum has a transaction, the leader tells the followers to deliver it (COMMIT). A follower that arrives now
   receives the epoch and the history at once, and may deliver the committed transactions after it has accepted.

A restless follower turns to another leader `changes` times, at any time (it lost the connection, it crashed and came
back, or the oracle changed its choice). The leader that it left does not know this, and continues.

Safety, in the words of the paper: *agreement* and *total order* together say that of any two followers, one delivered
a prefix of what the other delivered; *integrity*, *primary order* and *primary integrity* are as below.

Liveness is not guaranteed if several leaders divide the followers: then no leader has a quorum.
`specification="live"` still requires that a leader is established in each terminal state (Table I of DBSS, rows Zab
(6) and (7), has 3 and 4 leaders with 3 followers; no follower needs to be restless). It holds with one leader; and
with two, if the number of followers is odd and none is restless. `specification="eventual"` requires the same of
runs: on each run, a leader is established at some time. All runs are finite, and an established leader stays
established, so the verdicts are the same.

Two variants, as in `paxos`: with `quorum=True` a leader consumes the answers of a quorum in one transition, with
`quorum=False` one by one.

Faulty twins, each of which breaks primary integrity and prefix consistency:

- `hasty`: leaders take over the history of the first follower that answers NEWEPOCH, and do not wait for the quorum.
- `eager`: leaders let a follower that arrives late deliver their whole history, committed or not. The fault shows
  with two restless followers.
- `promise`: restless followers promise each epoch and ignore earlier promises. The fault shows with two changes: a
  follower must come back to a leader that it left.

Simplified: leaders and followers are different processes, as in DBSS; a leader leads once; processes do not crash
(for the other processes, crashing and coming back is the same as being restless: a follower remembers what it must
remember). The paper's channels keep the order of messages; here messages may overtake each other, and wait for their
turn. A follower that arrives late receives proposals and commits as soon as it has been sent the history, so it
misses nothing.
"""

from __future__ import annotations

import enum
from typing import Literal, NamedTuple, get_args

from plait import Message, Pid, Process, System, action, always, eventually, field, final, majority, on, reachable, some
from plait.model.view import View
from plait.protocols._parameters import at_least, one_of, several

Specification = Literal["safe", "live", "eventual"]
Fault = Literal["none", "hasty", "eager", "promise"]


class Transaction(NamedTuple):
    """A broadcast transaction. Epoch and number identify it (the paper's zxid); the leader represents the content."""

    epoch: int
    number: int
    leader: Pid


History = tuple[Transaction, ...]


class CurrentEpoch(Message):
    """CEPOCH: I want to follow you; this is the last epoch that I promised."""

    promised: int


class NewEpoch(Message):
    """NEWEPOCH: promise to follow no earlier epoch."""

    epoch: int


class AckEpoch(Message):
    """ACK-E: I promise; this is my history, and the last epoch whose leader I accepted."""

    accepted: int
    history: History


class NewLeader(Message):
    """NEWLEADER: this is the history that my epoch begins with; accept it."""

    epoch: int
    history: History


class AckLeader(Message):
    """ACK-LD: I accepted it."""


class CommitLeader(Message):
    """COMMIT-LD: deliver this number of transactions of the history."""

    length: int


class Propose(Message):
    """PROPOSE: accept this transaction at this position of the history."""

    position: int
    transaction: Transaction


class Ack(Message):
    """ACK: I accepted the transaction at this position."""

    position: int


class Commit(Message):
    """COMMIT: deliver the transaction at this position."""

    position: int


class Phase(enum.Enum):
    """The phase of a process."""

    ELECTION = enum.auto()
    DISCOVERY = enum.auto()
    SYNCHRONISATION = enum.auto()
    BROADCAST = enum.auto()


# -- followers, sound and faulty --------------------------------------------------------------------------------------


class Follower(Process):
    """Turns to a leader, and stays with it."""

    leader: Pid | None = None
    phase: Phase = Phase.ELECTION
    promised: int = 0
    """The last epoch of which it acknowledged NEWEPOCH (the paper's f.p)."""
    accepted: int = 0
    """The last epoch of which it acknowledged NEWLEADER (f.a)."""
    history: History = ()
    """The transactions that it accepted."""
    delivered: History = ()

    @action(when=lambda self: self.leader is None)
    def elect(self) -> None:
        self.turn_to(self.choose(self.ids(AnyLeader)))

    def turn_to(self, leader: Pid) -> None:
        """Begin with discovery."""
        self.leader = leader
        self.phase = Phase.DISCOVERY
        self.send(leader, CurrentEpoch(self.promised))

    @on(
        NewEpoch,
        where=lambda self, m: self.phase is Phase.DISCOVERY and m.sender == self.leader and m.epoch > self.promised,
    )
    def promise(self, m: NewEpoch) -> None:
        self.phase = Phase.SYNCHRONISATION
        self.promised = m.epoch
        self.send(m.sender, AckEpoch(self.accepted, self.history))

    @on(
        NewLeader,
        where=lambda self, m: (
            self.phase is Phase.SYNCHRONISATION
            and m.sender == self.leader
            and m.epoch == self.promised
            and m.epoch != self.accepted
        ),
    )
    def accept_leader(self, m: NewLeader) -> None:
        self.accepted = m.epoch
        self.history = m.history
        self.send(m.sender, AckLeader())

    @on(
        CommitLeader,
        where=lambda self, m: (
            self.phase is Phase.SYNCHRONISATION and m.sender == self.leader and self.accepted == self.promised
        ),
    )
    def deliver_history(self, m: CommitLeader) -> None:
        self.phase = Phase.BROADCAST
        self.delivered += tuple(t for t in self.history[: m.length] if t not in self.delivered)

    @on(
        Propose,
        where=lambda self, m: (
            self.phase is Phase.BROADCAST and m.sender == self.leader and m.position == len(self.history)
        ),
    )
    def accept(self, m: Propose) -> None:
        self.history += (m.transaction,)
        self.send(m.sender, Ack(m.position))

    @on(
        Commit,
        where=lambda self, m: (
            self.phase is Phase.BROADCAST
            and m.sender == self.leader
            and m.position == len(self.delivered)
            and m.position < len(self.history)
        ),
    )
    def deliver(self, m: Commit) -> None:
        self.delivered += (self.history[m.position],)


class RestlessFollower(Follower):
    """Turns to another leader several times."""

    changes: int

    @action(when=lambda self: self.leader is not None and self.changes > 0)
    def leave(self) -> None:
        self.changes -= 1
        self.turn_to(self.choose([leader for leader in self.ids(AnyLeader) if leader != self.leader]))


class UnfaithfulFollower(RestlessFollower):
    """Promises each epoch and ignores earlier promises."""

    @on(NewEpoch, where=lambda self, m: self.phase is Phase.DISCOVERY and m.sender == self.leader)
    def promise(self, m: NewEpoch) -> None:
        self.phase = Phase.SYNCHRONISATION
        self.promised = m.epoch
        self.send(m.sender, AckEpoch(self.accepted, self.history))


# -- leaders, sound and faulty ----------------------------------------------------------------------------------------


class AnyLeader(Process):
    """Tries to lead once. Subclasses differ in how they take the answers of a quorum."""

    proposals: int
    """The number of transactions that it may still propose."""
    phase: Phase = Phase.ELECTION
    epoch: int = 0
    followers: set[Pid] = field(default_factory=set)
    """The followers to which it sends: the first quorum, and those that arrived later (the paper's Q)."""
    history: History = ()
    committed: int = 0
    """The length of the history that a quorum has accepted."""

    def propose_epoch(self) -> None:
        """A quorum wants to follow."""
        self.phase = Phase.DISCOVERY
        self.send(self.followers, NewEpoch(self.epoch))

    def take_over(self, history: History) -> None:
        """The quorum has promised, and may have delivered this history."""
        self.phase = Phase.SYNCHRONISATION
        self.history = history
        self.send(self.followers, NewLeader(self.epoch, history))

    def establish(self) -> None:
        """The quorum has accepted the history."""
        self.phase = Phase.BROADCAST
        self.committed = len(self.history)
        self.send(self.followers, CommitLeader(self.committed))

    @action(when=lambda self: self.phase is Phase.BROADCAST and self.proposals > 0)
    def propose(self) -> None:
        self.proposals -= 1
        number = sum(t.epoch == self.epoch for t in self.history) + 1
        transaction = Transaction(self.epoch, number, self.id)
        self.send(self.followers, Propose(len(self.history), transaction))
        self.history += (transaction,)

    def commit(self) -> None:
        """A quorum has accepted the next transaction."""
        self.send(self.followers, Commit(self.committed))
        self.committed += 1

    @on(CurrentEpoch, where=lambda self, m: self.phase is Phase.BROADCAST)
    def invite_late(self, m: CurrentEpoch) -> None:
        self.followers.add(m.sender)
        self.send(m.sender, NewEpoch(self.epoch))
        self.send(m.sender, NewLeader(self.epoch, self.history))

    @on(AckLeader, where=lambda self, m: self.phase is Phase.BROADCAST)
    def admit_late(self, m: AckLeader) -> None:
        self.send(m.sender, CommitLeader(self.committed))


class Leader(AnyLeader):
    """Takes the answers of a quorum at once."""

    @on(CurrentEpoch, quorum=majority(Follower), where=lambda self, m: self.phase is Phase.ELECTION)
    def discover(self, answers: tuple[CurrentEpoch, ...]) -> None:
        self.followers = {m.sender for m in answers}
        self.epoch = max(m.promised for m in answers) + 1
        self.propose_epoch()

    @on(AckEpoch, quorum=majority(Follower), where=lambda self, m: self.phase is Phase.DISCOVERY)
    def promised(self, answers: tuple[AckEpoch, ...]) -> None:
        self.take_over(max(answers, key=lambda m: (m.accepted, len(m.history))).history)

    @on(AckLeader, quorum=majority(Follower), where=lambda self, m: self.phase is Phase.SYNCHRONISATION)
    def acknowledged(self, answers: tuple[AckLeader, ...]) -> None:
        self.establish()

    @on(
        Ack,
        quorum=majority(Follower),
        where=lambda self, m: self.phase is Phase.BROADCAST and m.position == self.committed,
    )
    def accepted(self, answers: tuple[Ack, ...]) -> None:
        self.commit()


class HastyLeader(Leader):
    """Takes over the first history that it receives."""

    @on(AckEpoch, quorum=some(1, Follower), where=lambda self, m: self.phase is Phase.DISCOVERY)
    def promised(self, answers: tuple[AckEpoch, ...]) -> None:
        self.take_over(answers[0].history)


class EagerLeader(Leader):
    """Lets a late follower deliver the whole history."""

    def admit_late(self, m: AckLeader) -> None:
        self.send(m.sender, CommitLeader(len(self.history)))


class CountingLeader(AnyLeader):
    """Takes the answers one by one."""

    count: int = 0
    best: tuple[int, History] = (0, ())
    """The latest accepted epoch in the answers to NEWEPOCH so far, and its longest history."""

    @on(CurrentEpoch, where=lambda self, m: self.phase is Phase.ELECTION and m.sender not in self.followers)
    def discover(self, m: CurrentEpoch) -> None:
        self.followers.add(m.sender)
        self.epoch = max(self.epoch, m.promised + 1)
        if len(self.followers) == self.quorum():
            self.propose_epoch()

    @on(AckEpoch, where=lambda self, m: self.phase is Phase.DISCOVERY)
    def promised(self, m: AckEpoch) -> None:
        if (m.accepted, len(m.history)) > (self.best[0], len(self.best[1])):
            self.best = (m.accepted, m.history)
        if self.enough():
            history, self.best = self.best[1], (0, ())
            self.take_over(history)

    @on(AckLeader, where=lambda self, m: self.phase is Phase.SYNCHRONISATION)
    def acknowledged(self, m: AckLeader) -> None:
        if self.enough():
            self.establish()

    @on(Ack, where=lambda self, m: self.phase is Phase.BROADCAST and m.position == self.committed)
    def accepted(self, m: Ack) -> None:
        if self.enough():
            self.commit()

    def enough(self) -> bool:
        """Count an answer. Return whether there is a quorum; then the count starts again."""
        self.count = (self.count + 1) % self.quorum()
        return self.count == 0

    def quorum(self) -> int:
        """More than half of the followers."""
        return len(self.ids(Follower)) // 2 + 1


class HastyCountingLeader(CountingLeader):
    """Takes over the first history that it receives."""

    def promised(self, m: AckEpoch) -> None:
        self.take_over(m.history)


class EagerCountingLeader(CountingLeader):
    """Lets a late follower deliver the whole history."""

    def admit_late(self, m: AckLeader) -> None:
        self.send(m.sender, CommitLeader(len(self.history)))


LEADERS: dict[str, tuple[type[AnyLeader], type[AnyLeader]]] = {
    "hasty": (HastyLeader, HastyCountingLeader),
    "eager": (EagerLeader, EagerCountingLeader),
}
"""The faulty leaders: with quorum transitions, and without."""


# -- properties -------------------------------------------------------------------------------------------------------


@always
def prefix_consistency(s: View) -> bool:
    """Of any two followers, one delivered a prefix of what the other delivered (agreement and total order)."""
    longest = max((follower.delivered for follower in s[Follower]), key=len)
    return all(follower.delivered == longest[: len(follower.delivered)] for follower in s[Follower])


@always
def integrity(s: View) -> bool:
    """Each delivered transaction was broadcast by a leader."""
    return all(t in s[t.leader].history for follower in s[Follower] for t in follower.delivered)


@always
def primary_order(s: View) -> bool:
    """Transactions are delivered in the order of epochs, and within an epoch in the order of broadcast, without gaps."""
    return all(
        t.number == 1 if before is None or before.epoch < t.epoch else t[:2] == (before.epoch, before.number + 1)
        for follower in s[Follower]
        for before, t in zip((None, *follower.delivered), follower.delivered, strict=False)
    )


@always
def primary_integrity(s: View) -> bool:
    """An established leader has all transactions of earlier epochs that are ever delivered."""
    return all(
        t.epoch >= leader.epoch or t in leader.history
        for leader in s[AnyLeader]
        if leader.phase is Phase.BROADCAST
        for follower in s[Follower]
        for t in follower.delivered
    )


@reachable
def delivery(s: View) -> bool:
    """All followers can deliver a transaction."""
    return all(follower.delivered for follower in s[Follower])


@reachable
def succession(s: View) -> bool:
    """A second leader can be established, and its transactions can be delivered."""
    return any(t.epoch > 1 for follower in s[Follower] for t in follower.delivered)


@final
def establishment(s: View) -> bool:
    """In the end, some leader is established."""
    return any(leader.phase is Phase.BROADCAST for leader in s[AnyLeader])


@eventually
def eventual_establishment(s: View) -> bool:
    """On each run, some leader is established at some time."""
    return bool(establishment.predicate(s))


# -- the model --------------------------------------------------------------------------------------------------------


def zab(
    leaders: int = 2,
    followers: int = 3,
    proposals: int = 1,
    restless: int = 1,
    changes: int = 1,
    quorum: bool = True,
    specification: Specification = "safe",
    faulty: Fault = "none",
) -> System:
    """Leaders with `proposals` proposals each; `restless` of the followers change their leader `changes` times."""
    at_least(1, leaders=leaders, followers=followers, changes=changes)
    at_least(0, proposals=proposals, restless=restless)
    one_of(get_args(Specification), specification=specification)
    one_of(get_args(Fault), faulty=faulty)
    at_once, one_by_one = LEADERS.get(faulty, (Leader, CountingLeader))
    leader = at_once if quorum else one_by_one
    wanderer = UnfaithfulFollower if faulty == "promise" else RestlessFollower
    if leaders == 1:
        restless = 0  # there is no other leader to turn to
    restless = min(restless, followers)
    succeeds = restless >= 2 * (followers // 2 + 1) - followers  # the number that a second quorum needs
    return System(
        [
            *(leader(proposals=proposals) for _ in range(leaders)),
            *(wanderer(changes=changes) for _ in range(restless)),
            *(Follower() for _ in range(followers - restless)),
        ],
        properties=[
            prefix_consistency,
            integrity,
            primary_order,
            primary_integrity,
            *([delivery] if proposals else []),
            *([succession] if proposals and succeeds else []),
            *([establishment] if specification == "live" else []),
            *([eventual_establishment] if specification == "eventual" else []),
        ],
        # Of equally good histories, a leader takes the one of the first follower. In a correct protocol they are equal.
        symmetric=several({AnyLeader: leaders} | ({Follower: followers} if faulty == "none" else {})),
        name="zab",
    )
