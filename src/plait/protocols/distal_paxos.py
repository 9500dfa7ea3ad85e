"""Paxos that agrees on a log, ballot after ballot, and the bug ZOOKEEPER-2832 (Sequentialization, Fig. 1).

All processes are replicas of a state machine. In each ballot, the *primary* of the ballot tries to add a command to
the log. A ballot has four rounds, each with one type of message:

1. Prepare: the primary asks all replicas to join its ballot.
2. Ack: a replica that joins sends the primary its log, and the *last* ballot in which it took a log.
3. Propose: with the answers of more than half of the replicas, the primary takes the log with the highest `last`,
   adds a command, and sends the new log to all.
4. Promise: a replica that takes the new log tells all. A replica that receives this from more than half of the
   replicas *outputs* the log: from then on the log only grows.

After a timeout, a replica starts the next ballot if it is the primary of that ballot. Messages may be late or lost: a
lost message is one that is never delivered. Of any two logs that were output, one must be a prefix of the other.

Faulty twins, both of the kind of ZOOKEEPER-2832:

- `early`: a replica sets `last` when it joins a ballot instead of when it takes a log. So a log that was never
  confirmed counts as recent, because its owner joined a recent ballot. With three replicas, the shortest violation
  takes four ballots. In the first, replica 0 creates the log "a", and no other replica receives it. In the second,
  replicas 1 and 2 output "b". In the third, replica 0 receives the Prepare and nothing more. In the fourth, it leads,
  and prefers its own "a" to the "b" of another replica.
- `printed`: the same, but `last` becomes the ballot that the replica *leaves*, because Fig. 1 assigns `last` before
  `ballot` (lines 9 and 10). This breaks agreement within two ballots.

The paper leaves some points open. Here, the primary of ballot b is replica b - 1 modulo the number of replicas. It
enters its ballot when it starts it, and acknowledges its own Prepare like the other replicas. `times n/2` means more
than half. Of the logs with the highest `last` the primary takes the longest; if several are longest, it prefers its
own. The command of ballot 1 is "a", of ballot 2 "b", and so on. A timeout may come at any time.

Simplified: the number of ballots is bounded. There are no clients. Messages contain whole logs.
"""

from __future__ import annotations

import itertools
from typing import Literal, get_args

from plait import Message, Process, System, action, always, init, majority, on, reachable, tagged
from plait.model.view import View
from plait.protocols._parameters import at_least, one_of

Log = tuple[str, ...]
"""Commands, in order."""

Fault = Literal["none", "early", "printed"]


@tagged(phase="ballot", round="Prepare")
class Prepare(Message):
    """The primary of this ballot asks to join it."""

    ballot: int


@tagged(phase="ballot", round="Ack")
class Ack(Message):
    """The sender joined, and has this log, which it took in the ballot `last`."""

    ballot: int
    last: int
    log: Log


@tagged(phase="ballot", round="Propose")
class Propose(Message):
    """The primary's new log."""

    ballot: int
    log: Log


@tagged(phase="ballot", round="Promise")
class Promise(Message):
    """The sender took this log."""

    ballot: int
    log: Log


class Replica(Process):
    """Takes part in ballots, and leads some."""

    replicas: int
    ballots: int
    """The number of ballots."""
    ballot: int = 0
    leading: bool = False
    """Whether it has sent a Prepare that it has not acknowledged."""
    last: int = 0
    """The last ballot in which it took a log."""
    promised: bool = False
    """Whether it has output the log of its ballot."""
    log: Log = ()
    outputs: tuple[Log, ...] = ()
    """The logs that it has output."""

    def leads_next(self) -> bool:
        """Whether it is the primary of the next ballot."""
        return self.ballot < self.ballots and self.id.index == self.ballot % self.replicas

    def lead(self) -> None:
        """Start the next ballot."""
        self.ballot += 1
        self.leading = True
        self.broadcast(Replica, Prepare(self.ballot))

    def join(self, m: Prepare) -> None:
        """Enter the ballot of a Prepare."""
        self.ballot = m.ballot

    def take(self, m: Propose) -> None:
        """Enter the ballot of a Propose, and take its log."""
        self.ballot = m.ballot
        self.log = m.log
        self.last = self.ballot

    def newest(self, acks: tuple[Ack, ...]) -> Log:
        """The longest log of those with the highest `last`; its own log if several are longest."""
        return max(acks, key=lambda ack: (ack.last, len(ack.log), ack.sender == self.id, ack.log)).log

    @init
    def start(self) -> None:
        if self.leads_next():
            self.lead()

    @on(Prepare, where=lambda self, m: m.ballot > self.ballot or (m.ballot == self.ballot and self.leading))
    def acknowledge(self, m: Prepare) -> None:
        self.join(m)
        self.leading = False
        self.promised = False
        self.send(m.sender, Ack(self.ballot, self.last, self.log))

    @on(Ack, quorum=majority(Process), where=lambda self, m: m.ballot == self.ballot)
    def propose(self, acks: tuple[Ack, ...]) -> None:
        self.leading = False
        self.log = (*self.newest(acks), command(self.ballot))
        self.broadcast(Replica, Propose(self.ballot, self.log))

    @on(Propose, where=lambda self, m: m.ballot >= self.ballot and not self.promised)
    def promise(self, m: Propose) -> None:
        self.take(m)
        self.leading = False
        self.broadcast(Replica, Promise(self.ballot, self.log))

    @on(Promise, quorum=majority(Process), where=lambda self, m: m.ballot >= self.ballot and m.log == self.log)
    def output(self, promises: tuple[Promise, ...]) -> None:
        self.ballot = promises[0].ballot
        self.leading = False
        self.promised = True
        self.outputs += (self.log,)
        if self.leads_next():
            self.lead()

    @action(when=lambda self: self.leads_next())
    def timeout(self) -> None:
        self.lead()


class EarlyReplica(Replica):
    """Sets `last` when it joins a ballot, not when it takes a log."""

    def join(self, m: Prepare) -> None:
        """Enter the ballot of a Prepare."""
        self.ballot = m.ballot
        self.last = self.ballot

    def take(self, m: Propose) -> None:
        """Enter the ballot of a Propose, and take its log."""
        self.ballot = m.ballot
        self.log = m.log


class PrintedReplica(EarlyReplica):
    """The same, with the two statements in the order of Fig. 1."""

    def join(self, m: Prepare) -> None:
        """Enter the ballot of a Prepare."""
        self.last = self.ballot
        self.ballot = m.ballot


REPLICAS: dict[Fault, type[Replica]] = {"none": Replica, "early": EarlyReplica, "printed": PrintedReplica}


def command(ballot: int) -> str:
    """The command that the primary adds in a ballot."""
    return chr(ord("a") + ballot - 1)


# -- properties ------------------------------------------------------------------------------------------------------


@always
def agreement(s: View) -> bool:
    """Of any two logs that were output, one is a prefix of the other."""
    logs = sorted({log for replica in s[Replica] for log in replica.outputs}, key=len)
    return all(longer[: len(log)] == log for log, longer in itertools.pairwise(logs))


@always
def validity(s: View) -> bool:
    """A log that was output has at most one command of each ballot, in the order of ballots."""
    logs = {log for replica in s[Replica] for log in replica.outputs}
    return all(list(log) == sorted(set(log)) for log in logs)


@reachable
def progress(s: View) -> bool:
    """A log with a command of every ballot can be output."""
    return any(len(log) == replica.ballots for replica in s[Replica] for log in replica.outputs)


# -- the model -------------------------------------------------------------------------------------------------------


def distal_paxos(replicas: int = 3, ballots: int = 2, faulty: Fault = "none") -> System:
    """`replicas` replicas that go through `ballots` ballots."""
    at_least(2, replicas=replicas)
    at_least(1, ballots=ballots)
    one_of(get_args(Fault), faulty=faulty)
    return System(
        [REPLICAS[faulty](replicas=replicas, ballots=ballots) for _ in range(replicas)],
        properties=[agreement, validity, progress],
        rounds=["Prepare", "Ack", "Propose", "Promise"],
        name="distal_paxos",
    )
