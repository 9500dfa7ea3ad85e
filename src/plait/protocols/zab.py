"""Zab: atomic broadcast for primary-backup systems (Junqueira, Reed, Serafini, DSN 2011), as in ZooKeeper.

A leader broadcasts transactions, and its followers deliver them, all in the same order. Leaders fail and are replaced,
and each leads in an *epoch* of its own. The transactions of an epoch come after all of the epochs before, and a new
leader begins only when it has everything that may have been delivered. Each follower turns to a prospective leader (who
that is, an oracle tells it, which may be wrong), and goes with it through three phases:

1. *Discovery.* A follower tells the leader the last epoch that it promised (CEPOCH). From the promises of a quorum, the
   leader derives a later epoch, and proposes it to that quorum (NEWEPOCH). A follower that has not promised as much
   promises it now, and answers with its history, and the last epoch whose leader it accepted (ACK-E).
2. *Synchronisation.* Once the whole quorum has answered, the leader takes over the history of who accepted the latest
   epoch, and of these the longest, and sends it to the quorum (NEWLEADER). A follower that has not promised another
   epoch since replaces its own history by it and so accepts the leader (ACK-LD). When the whole quorum has, the leader is
   *established*: it tells the followers to deliver the history (COMMIT-LD).
3. *Broadcast.* The leader proposes transactions (PROPOSE); followers append them to their history in order (ACK). What a
   quorum has, the leader lets them deliver (COMMIT). A follower that comes now is sent the epoch and the history at once,
   and once it has accepted, may deliver what has been committed.

A restless follower turns to another leader `changes` times, at any moment (it lost the connection, it crashed and came
back, the oracle changed its mind). The leader that it left knows nothing of it, and goes on as if it were the only one.

Safety, in the words of the paper: *agreement* and *total order* together say that of any two followers, what one
delivered is a prefix of what the other did; *integrity*, *primary order* and *primary integrity* are as below.

Liveness is not promised if several leaders divide the followers: then nobody gets a quorum. `specification="live"`
requires all the same that a leader is established in every terminal state (paper 000, Table I, rows Zab (6) and (7), has
3 and 4 leaders with 3 followers; nobody needs to be restless). It holds with one leader; with two, if the number of
followers is odd and none of them is restless. `specification="eventual"` requires it of runs: on every run, a leader is
established some time. Every run ends, and who is established stays so: the verdicts are the same.

Two variants, as of `paxos`: with `quorum=True` a leader takes the answers of a quorum in one transition, with
`quorum=False` one by one.

Faulty twins, each of which breaks primary integrity and prefix consistency:

- `hasty`: leaders take over the history of the first follower that answers NEWEPOCH, and do not wait for the quorum.
- `eager`: leaders let a follower that comes late deliver all of their history, committed or not. It takes two restless
  followers to notice.
- `promise`: restless followers promise every epoch, whatever they promised before. It takes two changes to notice: one
  must come back to a leader that it left.

Simplified: leaders and followers are different processes, as in paper 000; a leader leads once; processes do not crash
(for the others, to crash and come back is to be restless: what a follower must remember, it remembers). The paper's
channels keep the order of messages; here messages may overtake each other, and wait until it is their turn. A follower
that comes late is sent proposals and commits as soon as it has been sent the history, so that it misses nothing.
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
    """What is broadcast. Epoch and number are its identifier (the paper's zxid), the leader stands for the content."""

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
    """COMMIT-LD: deliver so many transactions of the history."""

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
    """Where a process is in the protocol."""

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
    """Turns to another leader so many times."""

    changes: int

    @action(when=lambda self: self.leader is not None and self.changes > 0)
    def leave(self) -> None:
        self.changes -= 1
        self.turn_to(self.choose([leader for leader in self.ids(AnyLeader) if leader != self.leader]))


class UnfaithfulFollower(RestlessFollower):
    """Promises what it is asked to, regardless of what it promised before."""

    @on(NewEpoch, where=lambda self, m: self.phase is Phase.DISCOVERY and m.sender == self.leader)
    def promise(self, m: NewEpoch) -> None:
        self.phase = Phase.SYNCHRONISATION
        self.promised = m.epoch
        self.send(m.sender, AckEpoch(self.accepted, self.history))


# -- leaders, sound and faulty ----------------------------------------------------------------------------------------


class AnyLeader(Process):
    """Tries to lead once. What differs is how it takes the answers of a quorum."""

    proposals: int
    """How many transactions it may still propose."""
    phase: Phase = Phase.ELECTION
    epoch: int = 0
    followers: set[Pid] = field(default_factory=set)
    """Whom it sends to: the quorum that it began with, and who came later (the paper's Q)."""
    history: History = ()
    committed: int = 0
    """How much of its history a quorum has accepted."""

    def propose_epoch(self) -> None:
        """A quorum wants to follow."""
        self.phase = Phase.DISCOVERY
        self.send(self.followers, NewEpoch(self.epoch))

    def take_over(self, history: History) -> None:
        """The quorum has promised, and this is what it may have delivered."""
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
    """Takes over the first history that it is sent."""

    @on(AckEpoch, quorum=some(1, Follower), where=lambda self, m: self.phase is Phase.DISCOVERY)
    def promised(self, answers: tuple[AckEpoch, ...]) -> None:
        self.take_over(answers[0].history)


class EagerLeader(Leader):
    """Lets who comes late deliver the whole history."""

    def admit_late(self, m: AckLeader) -> None:
        self.send(m.sender, CommitLeader(len(self.history)))


class CountingLeader(AnyLeader):
    """Takes the answers one by one."""

    count: int = 0
    best: tuple[int, History] = (0, ())
    """Of the answers to NEWEPOCH so far, the last epoch that was accepted, and the longest history with it."""

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
        """Count one more answer. Is that a quorum? Then begin anew."""
        self.count = (self.count + 1) % self.quorum()
        return self.count == 0

    def quorum(self) -> int:
        """More than half of the followers."""
        return len(self.ids(Follower)) // 2 + 1


class HastyCountingLeader(CountingLeader):
    """Takes over the first history that it is sent."""

    def promised(self, m: AckEpoch) -> None:
        self.take_over(m.history)


class EagerCountingLeader(CountingLeader):
    """Lets who comes late deliver the whole history."""

    def admit_late(self, m: AckLeader) -> None:
        self.send(m.sender, CommitLeader(len(self.history)))


LEADERS: dict[str, tuple[type[AnyLeader], type[AnyLeader]]] = {
    "hasty": (HastyLeader, HastyCountingLeader),
    "eager": (EagerLeader, EagerCountingLeader),
}
"""The faulty ones: those that take the answers of a quorum at once, and those that take them one by one."""


# -- properties -------------------------------------------------------------------------------------------------------


@always
def prefix_consistency(s: View) -> bool:
    """Of any two followers, one delivered what the other did, or the beginning of it (agreement and total order)."""
    longest = max((follower.delivered for follower in s[Follower]), key=len)
    return all(follower.delivered == longest[: len(follower.delivered)] for follower in s[Follower])


@always
def integrity(s: View) -> bool:
    """What is delivered has been broadcast by a leader."""
    return all(t in s[t.leader].history for follower in s[Follower] for t in follower.delivered)


@always
def primary_order(s: View) -> bool:
    """Transactions are delivered in the order of their epochs, and within an epoch as they were broadcast, without gaps."""
    return all(
        t.number == 1 if before is None or before.epoch < t.epoch else t[:2] == (before.epoch, before.number + 1)
        for follower in s[Follower]
        for before, t in zip((None, *follower.delivered), follower.delivered, strict=False)
    )


@always
def primary_integrity(s: View) -> bool:
    """An established leader has everything that is ever delivered of earlier epochs."""
    return all(
        t.epoch >= leader.epoch or t in leader.history
        for leader in s[AnyLeader]
        if leader.phase is Phase.BROADCAST
        for follower in s[Follower]
        for t in follower.delivered
    )


@reachable
def delivery(s: View) -> bool:
    """All followers can deliver something."""
    return all(follower.delivered for follower in s[Follower])


@reachable
def succession(s: View) -> bool:
    """A second leader can be established, and what it broadcasts be delivered."""
    return any(t.epoch > 1 for follower in s[Follower] for t in follower.delivered)


@final
def establishment(s: View) -> bool:
    """In the end, some leader is established."""
    return any(leader.phase is Phase.BROADCAST for leader in s[AnyLeader])


@eventually
def eventual_establishment(s: View) -> bool:
    """On every run, some leader is established at some time."""
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
    """So many leaders with so many proposals each; so many of the followers are restless, and change so many times."""
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
    succeeds = restless >= 2 * (followers // 2 + 1) - followers  # so many does it take for a second quorum
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
        # Of equally good histories, a leader takes that of the first follower. In a sound protocol they are equal.
        symmetric=several({AnyLeader: leaders} | ({Follower: followers} if faulty == "none" else {})),
        name="zab",
    )
