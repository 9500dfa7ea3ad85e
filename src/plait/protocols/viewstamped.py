"""Viewstamped Replication, the normal case (Oki, Liskov 1988; Liskov, Cowling, "Viewstamped Replication Revisited", 2012).

One of 2f + 1 replicas is the *primary*, the others are *backups*. All execute the same operations in the same order.

- A client sends a numbered request to the primary, and may send it again. The primary has a *client table*: the last
  request of each client, and its result. It gives a new request the next *op number*, appends it to its log and sends
  it to the backups in a Prepare. It takes no request twice; if it has the result, it answers once more.
- A backup takes Prepares in the order of op numbers: it waits until its log has all earlier requests. It appends the
  request and sends a PrepareOk.
- When f backups have sent a PrepareOk, f + 1 replicas have the request. It is *committed*, with all requests before
  it. The primary executes it and answers the client.
- Backups learn what is committed from the next Prepare, or from a Commit if there is none. They execute in order,
  too.

The operations are those of a counter: the result of each is the number of operations executed so far, itself
included.

Two variants, as in `paxos`:

- `quorum=True`: the PrepareOks of f backups are consumed in one quorum transition.
- `quorum=False`: each PrepareOk is consumed alone, and the primary remembers how far each backup is prepared.

Faulty twins:

- `order`: backups take Prepares in the order in which they arrive.
- `hasty`: the primary executes requests and answers without waiting for the backups.
- `table`: the primary has no client table, and takes a repeated request again.

Simplified: the view never changes (so messages do not carry its number), replicas do not crash, and messages are not
lost: a client repeats a request without need.
"""

from __future__ import annotations

import itertools
from typing import Literal, NamedTuple, get_args

from plait import Message, Pid, Process, System, action, always, field, final, init, on, reachable
from plait.model.view import View
from plait.protocols._parameters import at_least, one_of, several

Fault = Literal["none", "order", "hasty", "table"]


class Entry(NamedTuple):
    """A request in a log: the client, and the number of the request."""

    client: Pid
    number: int


class Request(Message):
    """The sender's request with this number."""

    number: int


class Reply(Message):
    """The result of the request with this number."""

    number: int
    result: int


class Prepare(Message):
    """The request with this op number; all up to the commit number are committed."""

    op: int
    entry: Entry
    commit: int


class PrepareOk(Message):
    """The sender's log has all requests up to this op number."""

    op: int


class Commit(Message):
    """All requests up to the commit number are committed."""

    commit: int


# -- replicas --------------------------------------------------------------------------------------------------------


class Replica(Process):
    """Executes the committed requests in the order of its log."""

    log: tuple[Entry, ...] = ()
    commit: int = 0
    """The commit number: how many requests of the log are executed."""


class Backup(Replica):
    """Follows the primary."""

    @on(Prepare, where=lambda self, m: m.op == len(self.log) + 1)
    def prepare(self, m: Prepare) -> None:
        self.log += (m.entry,)
        self.commit = max(self.commit, m.commit)
        self.send(m.sender, PrepareOk(m.op))

    @on(Commit, where=lambda self, m: self.commit < m.commit <= len(self.log))
    def execute(self, m: Commit) -> None:
        self.commit = m.commit


class AnyPrimary(Replica):
    """Puts the requests in order."""

    f: int
    """The number of backups that make a majority with the primary."""
    told: int = 0
    """The last commit number that was sent to the backups."""
    table: dict[Pid, tuple[int, int | None]] = field(default_factory=dict)
    """The last request of each client, and its result once there is one."""

    @on(Request)
    def request(self, m: Request) -> None:
        number, result = self.table.get(m.sender, (0, None))
        if m.number > number:
            self.table[m.sender] = (m.number, None)
            self.order(Entry(m.sender, m.number))
        elif m.number == number and result is not None:
            self.send(m.sender, Reply(number, result))

    def order(self, entry: Entry) -> None:
        """Give a request the next op number."""
        self.log += (entry,)
        self.told = self.commit
        self.broadcast(Backup, Prepare(len(self.log), entry, self.commit))

    def execute(self, op: int) -> None:
        """Execute all requests up to this op number, and answer the clients."""
        for result in range(self.commit + 1, op + 1):
            client, number = self.log[result - 1]
            if self.table.get(client, (0, None))[0] == number:
                self.table[client] = (number, result)
            self.send(client, Reply(number, result))
        self.commit = op

    @action(when=lambda self: self.told < self.commit)
    def idle(self) -> None:
        self.told = self.commit
        self.broadcast(Backup, Commit(self.commit))


class Primary(AnyPrimary):
    """Takes the PrepareOks of f backups at once."""

    @on(PrepareOk, quorum=lambda self: self.f, same="op", where=lambda self, m: m.op > self.commit)
    def prepared(self, replies: tuple[PrepareOk, ...]) -> None:
        self.execute(replies[0].op)


class CountingPrimary(AnyPrimary):
    """Takes the PrepareOks one by one."""

    backups: dict[Pid, int] = field(default_factory=dict)
    """The op number up to which each backup is prepared; 0 if missing."""

    @on(PrepareOk)
    def prepared(self, m: PrepareOk) -> None:
        self.backups[m.sender] = max(m.op, self.backups.get(m.sender, 0))
        if len(self.backups) >= self.f:
            op = sorted(self.backups.values(), reverse=True)[self.f - 1]
            if op > self.commit:
                self.execute(op)


# -- faulty replicas -------------------------------------------------------------------------------------------------


class DisorderlyBackup(Backup):
    """Takes Prepares in the order of arrival."""

    @on(Prepare)
    def prepare(self, m: Prepare) -> None:
        super().prepare(m)


class HastyPrimary(Primary):
    """Does not wait for the backups."""

    def order(self, entry: Entry) -> None:
        """Give a request the next op number, and execute it."""
        super().order(entry)
        self.execute(len(self.log))


class HastyCountingPrimary(CountingPrimary):
    """Does not wait for the backups."""

    def order(self, entry: Entry) -> None:
        """Give a request the next op number, and execute it."""
        super().order(entry)
        self.execute(len(self.log))


class ForgetfulPrimary(Primary):
    """Treats each request as a new one."""

    def request(self, m: Request) -> None:
        self.order(Entry(m.sender, m.number))


class ForgetfulCountingPrimary(CountingPrimary):
    """Treats each request as a new one."""

    def request(self, m: Request) -> None:
        self.order(Entry(m.sender, m.number))


PRIMARIES: dict[Fault, tuple[type[AnyPrimary], type[AnyPrimary]]] = {
    "none": (Primary, CountingPrimary),
    "order": (Primary, CountingPrimary),
    "hasty": (HastyPrimary, HastyCountingPrimary),
    "table": (ForgetfulPrimary, ForgetfulCountingPrimary),
}
"""The primary of each twin: with quorum transitions, and without."""


# -- clients ---------------------------------------------------------------------------------------------------------


class Client(Process):
    """Makes its requests one after the other."""

    requests: int
    """The number of requests."""
    repeats: int
    """The number of times that it may still repeat a request."""
    number: int = 1
    results: tuple[int, ...] = ()
    """The results of its requests, in order."""

    @init
    def request(self) -> None:
        self.broadcast(AnyPrimary, Request(self.number))

    @action(when=lambda self: self.repeats > 0 and len(self.results) < self.number)
    def repeat(self) -> None:
        self.repeats -= 1
        self.broadcast(AnyPrimary, Request(self.number))

    @on(Reply, where=lambda self, m: m.number == len(self.results) + 1)
    def answer(self, m: Reply) -> None:
        self.results += (m.result,)
        if self.number < self.requests:
            self.number += 1
            self.broadcast(AnyPrimary, Request(self.number))


# -- properties ------------------------------------------------------------------------------------------------------


@always
def agreement(s: View) -> bool:
    """The executed requests of one of any two replicas are a prefix of those of the other."""
    executed = [replica.log[: replica.commit] for replica in s[Replica]]
    return all(one[: len(other)] == other[: len(one)] for one, other in itertools.combinations(executed, 2))


@always
def durability(s: View) -> bool:
    """Each request that the primary has executed is in the logs of a majority."""
    (primary,) = s[AnyPrimary]
    executed = primary.log[: primary.commit]
    return bool(sum(replica.log[: primary.commit] == executed for replica in s[Replica]) > primary.f)


@always
def at_most_once(s: View) -> bool:
    """No request is executed twice."""
    return all(len(set(replica.log[: replica.commit])) == replica.commit for replica in s[Replica])


@always
def client_order(s: View) -> bool:
    """Each client's requests are executed in the order in which it made them."""
    return all(list(client.results) == sorted(client.results) for client in s[Client])


def all_executed(s: View) -> bool:
    """Whether all replicas have executed all requests."""
    requests = sum(client.requests for client in s[Client])
    return all(replica.commit == requests for replica in s[Replica])


@reachable
def execution(s: View) -> bool:
    """All replicas can execute all requests."""
    return all_executed(s)


@final
def convergence(s: View) -> bool:
    """In the end, all replicas have executed all requests, and all clients have their results."""
    return all_executed(s) and all(len(client.results) == client.requests for client in s[Client])


# -- the model -------------------------------------------------------------------------------------------------------


def viewstamped(
    replicas: int = 3,
    clients: int = 2,
    requests: int = 1,
    repeats: int = 1,
    quorum: bool = True,
    faulty: Fault = "none",
) -> System:
    """Replicas, and clients with `requests` requests each, which they may repeat."""
    at_least(2, replicas=replicas)
    at_least(1, clients=clients, requests=requests)
    at_least(0, repeats=repeats)
    one_of(get_args(Fault), faulty=faulty)
    primary = PRIMARIES[faulty][0 if quorum else 1]
    backup = DisorderlyBackup if faulty == "order" else Backup
    return System(
        [
            primary(f=replicas // 2),
            *(backup() for _ in range(replicas - 1)),
            *(Client(requests=requests, repeats=repeats) for _ in range(clients)),
        ],
        properties=[agreement, durability, at_most_once, client_order, execution, convergence],
        symmetric=several({Backup: replicas - 1, Client: clients}),
        name="viewstamped",
    )
