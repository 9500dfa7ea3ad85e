"""Practical Byzantine fault tolerance (Castro, Liskov, OSDI 1999): the normal case of one view.

3f + 1 replicas execute requests in the same order, although f of them may be Byzantine. One replica is the *primary*
and proposes an order; the others are *backups*. For each sequence number:

1. *Pre-prepare*: the primary assigns a request to the number, and tells the backups. A backup accepts the first
   assignment that it receives for a number.
2. *Prepare*: a backup that has accepted tells all replicas. A replica is *prepared* when it has the primary's
   pre-prepare and 2f prepares of backups for the same request: 2f + 1 replicas support the request.
3. *Commit*: a prepared replica tells all replicas. It executes the request when it is prepared and has 2f + 1 commits
   for it.

Any two sets of 2f + 1 replicas have f + 1 in common, so at least one honest replica, which supports only one request.
Hence **agreement**: no two honest replicas execute different requests with the same number. Within one view, one of
the two phases would be enough; the second lets a view change find the requests that were executed.

`byzantine` says which replicas do not follow the protocol:

- `primary`: it chooses a request for each backup, and commits to all of them.
- `backup`: it supports all requests to all replicas, or is silent. The honest replicas still execute the primary's
  request in each terminal state.
- `both`: two Byzantine replicas are more than f = 1. Together they break agreement.
- `none`.

Two variants, as in `paxos`: with `quorum=True` the 2f prepares and the 2f + 1 commits are consumed in one quorum
transition each; with `quorum=False` one by one.

The faulty twin, `faulty="small"`: quorums of f + 1 instead of 2f + 1 replicas, in both phases. Two such quorums may
have only a Byzantine replica in common, and a Byzantine primary uses this.

Simplified: there are no clients (the primary knows all requests), no view changes, no checkpoints and no watermarks.
The sender of a message is known (the paper signs messages). Messages carry requests instead of digests.
Requests are executed in any order of their numbers.
"""

from __future__ import annotations

from typing import Literal, get_args

from plait import Message, Pid, Process, System, action, always, field, final, on, reachable
from plait.model.view import View
from plait.protocols._parameters import at_least, one_of, several

Fault = Literal["none", "small"]
Traitors = Literal["none", "primary", "backup", "both"]


class PrePrepare(Message):
    """The primary assigns this request to this number."""

    number: int
    request: str


class Prepare(Message):
    """The sender has accepted this assignment."""

    number: int
    request: str


class Commit(Message):
    """The sender is prepared to execute this request with this number."""

    number: int
    request: str


# -- honest replicas -------------------------------------------------------------------------------------------------


class Replica(Process):
    """The role of all replicas, and what honest replicas remember for each number."""

    quorum: int
    """The number of replicas that have to support a request in each phase."""
    accepted: dict[int, str] = field(default_factory=dict)
    """The request that the primary assigned."""
    prepared: dict[int, str] = field(default_factory=dict)
    """The request that a quorum accepted."""
    executed: dict[int, str] = field(default_factory=dict)
    """The request that a quorum is prepared for."""

    def prepare(self, number: int) -> None:
        """Enough replicas support the assignment."""
        self.prepared[number] = self.accepted[number]
        self.broadcast(Replica, Commit(number, self.accepted[number]))

    def execute(self, number: int) -> None:
        """Enough replicas are prepared."""
        self.executed[number] = self.prepared[number]


class Primary(Replica):
    """Assigns requests to numbers."""

    requests: tuple[str, ...]
    numbers: int

    @action(when=lambda self: len(self.accepted) < self.numbers)
    def assign(self) -> None:
        number = len(self.accepted) + 1
        self.accepted[number] = self.choose([r for r in self.requests if r not in self.accepted.values()])
        self.broadcast(Backup, PrePrepare(number, self.accepted[number]))


class Backup(Replica):
    """Accepts the first assignment of the primary."""

    @on(PrePrepare, where=lambda self, m: m.number not in self.accepted)
    def accept(self, m: PrePrepare) -> None:
        self.accepted[m.number] = m.request
        self.broadcast(Replica, Prepare(m.number, m.request))


class QuorumReplica(Replica):
    """Takes the prepares and the commits of a quorum at once. The primary's pre-prepare counts as its prepare."""

    @on(
        Prepare,
        quorum=lambda self: self.quorum - 1,
        same=("number", "request"),
        where=lambda self, m: m.number not in self.prepared and self.accepted.get(m.number) == m.request,
    )
    def prepares(self, messages: tuple[Prepare, ...]) -> None:
        self.prepare(messages[0].number)

    @on(
        Commit,
        quorum=lambda self: self.quorum,
        same=("number", "request"),
        where=lambda self, m: m.number not in self.executed and self.prepared.get(m.number) == m.request,
    )
    def commits(self, messages: tuple[Commit, ...]) -> None:
        self.execute(messages[0].number)


class CountingReplica(Replica):
    """Takes the prepares and the commits one by one."""

    prepares_of: dict[int, set[Pid]] = field(default_factory=dict)
    """The replicas that accepted the assignment, until there are enough."""
    commits_of: dict[int, set[Pid]] = field(default_factory=dict)
    """The replicas that are prepared, until there are enough."""

    @on(Prepare, where=lambda self, m: m.number not in self.prepared and self.accepted.get(m.number) == m.request)
    def prepares(self, m: Prepare) -> None:
        if self.enough(self.prepares_of, m, self.quorum - 1):
            self.prepare(m.number)

    @on(Commit, where=lambda self, m: m.number not in self.executed and self.prepared.get(m.number) == m.request)
    def commits(self, m: Commit) -> None:
        if self.enough(self.commits_of, m, self.quorum):
            self.execute(m.number)

    def enough(self, senders: dict[int, set[Pid]], m: Prepare | Commit, quorum: int) -> bool:
        """Count a message. Return whether there is a quorum; then the other senders can be forgotten."""
        senders.setdefault(m.number, set()).add(m.sender)
        if len(senders[m.number]) < quorum:
            return False
        del senders[m.number]
        return True


class QuorumPrimary(QuorumReplica, Primary):
    """A primary that takes the messages of a quorum at once."""


class QuorumBackup(QuorumReplica, Backup):
    """A backup that takes the messages of a quorum at once."""


class CountingPrimary(CountingReplica, Primary):
    """A primary that takes messages one by one."""


class CountingBackup(CountingReplica, Backup):
    """A backup that takes messages one by one."""


# -- Byzantine replicas ----------------------------------------------------------------------------------------------


class ByzantinePrimary(Process, role=Primary):
    """Chooses a request for each number and each backup, and is prepared for all of them.

    It sends no prepares: those of a primary do not count.
    """

    requests: tuple[str, ...]
    numbers: int
    lied: bool = False

    @action(when=lambda self: not self.lied)
    def lie(self) -> None:
        self.lied = True
        for number in range(1, self.numbers + 1):
            for backup in self.ids(Backup):
                self.send(backup, PrePrepare(number, self.choose(self.requests)))
            for request in self.requests:
                self.broadcast(Replica, Commit(number, request), myself=False)


class ByzantineBackup(Process, role=Backup):
    """Supports all requests at once, or is silent."""

    requests: tuple[str, ...]
    numbers: int
    lied: bool = False

    @action(when=lambda self: not self.lied)
    def lie(self) -> None:
        self.lied = True
        for number in range(1, self.numbers + 1):
            for request in self.choose([self.requests, ()]):
                self.broadcast(Replica, Prepare(number, request), myself=False)
                self.broadcast(Replica, Commit(number, request), myself=False)


# -- properties ------------------------------------------------------------------------------------------------------


def executions(s: View) -> list[dict[int, str]]:
    """What the honest replicas have executed."""
    return [r.executed for r in s[Replica] if not r.id.role.startswith("Byzantine")]


@always
def agreement(s: View) -> bool:
    """No two honest replicas execute different requests with the same number."""
    executed = {item for requests in executions(s) for item in requests.items()}
    return len(executed) == len({number for number, _ in executed})


@final
def execution(s: View) -> bool:
    """In the end, all honest replicas have executed requests with all numbers."""
    (primary,) = s[Primary]
    return all(len(requests) == primary.numbers for requests in executions(s))


@reachable
def executing(s: View) -> bool:
    """All honest replicas can execute the first request."""
    return all(1 in requests for requests in executions(s))


# -- the model -------------------------------------------------------------------------------------------------------


def pbft(
    f: int = 1,
    numbers: int = 1,
    requests: int = 2,
    quorum: bool = True,
    byzantine: Traitors = "primary",
    faulty: Fault = "none",
) -> System:
    """3f + 1 replicas, some of them Byzantine, that execute `requests` requests with `numbers` numbers."""
    at_least(1, f=f, numbers=numbers)
    at_least(numbers, requests=requests)
    one_of(get_args(Traitors), byzantine=byzantine)
    one_of(get_args(Fault), faulty=faulty)
    size = f + 1 if faulty == "small" else 2 * f + 1
    tasks = tuple(chr(ord("a") + i) for i in range(requests))
    leader, backup = (QuorumPrimary, QuorumBackup) if quorum else (CountingPrimary, CountingBackup)
    loyal_primary, loyal_backups = byzantine in ("none", "backup"), byzantine in ("none", "primary")
    return System(
        [
            leader(quorum=size, requests=tasks, numbers=numbers)
            if loyal_primary
            else ByzantinePrimary(requests=tasks, numbers=numbers),
            *(() if loyal_backups else (ByzantineBackup(requests=tasks, numbers=numbers),)),
            *(backup(quorum=size) for _ in range(3 * f if loyal_backups else 3 * f - 1)),
        ],
        properties=[agreement, executing, *([execution] if loyal_primary else [])],
        symmetric=several({backup: 3 * f if loyal_backups else 3 * f - 1}),
        name="pbft",
    )
