"""Chain replication (van Renesse, Schneider, "Chain Replication for Supporting High Throughput and Availability", 2004).

Servers form a chain. Each has a copy of an object, here a register.

- Updates go to the first server, the *head*. Each server applies an update and forwards it to the next. The last
  server, the *tail*, answers the client: then all servers have the update.
- Queries go to the tail only, which answers from its own copy.

So the updates that a server has applied are a prefix of those that its predecessor has applied (the paper's *update
propagation invariant*), an answered update is at all servers, and the tail alone decides what has happened: the
register is linearizable.

Servers are *fail-stop*: a server that stops does nothing more. A *master*, which never fails, detects this and
repairs the chain:

- The head stopped: the next server becomes the head. Updates that only the old head had are lost, and their clients
  ask again.
- The tail stopped: its predecessor becomes the tail. It has applied all updates of the old tail, and answers for it.
- Another server stopped: the master connects its predecessor and its successor. The successor says how many updates
  it has, and the predecessor sends the missing ones.

With `crash`, at most one server stops in a run, at any time. A client sends a request to all servers: the head takes
updates, the tail takes queries, and the other servers leave them pending until they become head or tail. This models
that a client asks the master for the head or tail, and that it asks again. A new head does not take an update that it
already has from the old head.

Faulty twins:

- `any`: each server answers queries. A client may read an update that only the head has, and then an older value at
  the tail.
- `head`: the head answers queries instead of the tail. This works until the head stops.
- `resend`: a server does not send the updates that its new successor lacks. The clients wait for ever.

Simplified: servers keep all updates, so the acknowledgements that let them forget are left out; links are unordered,
but updates are numbered and applied in order; no server joins the chain.
"""

from __future__ import annotations

import itertools
from typing import Literal, NamedTuple, get_args

from plait import Message, Pid, Process, System, action, always, final, init, on, reachable
from plait.model.linearizability import Invoke, Linearizability, Read, Register, Return, Write, linearizability
from plait.model.view import View
from plait.protocols._parameters import at_least, one_of, several
from plait.protocols._register import EMPTY, Get, GetOk, Put, PutOk, Request

Fault = Literal["none", "any", "head", "resend"]


class Update(NamedTuple):
    """A client's update of the register."""

    request: Request
    value: str


class Forward(Message):
    """The update with this number, from the predecessor in the chain."""

    number: int
    update: Update


class Stop(Message):
    """The master lets the receiver stop now."""


class Stopped(Message):
    """The master detects that the sender has stopped."""


class NewPredecessor(Message):
    """From the master: this is your predecessor in the chain; None means that you are the head."""

    predecessor: Pid | None


class NewSuccessor(Message):
    """The sender is your successor, and has this number of updates."""

    updates: int


class BeTail(Message):
    """From the master: you are the tail."""


# -- servers ---------------------------------------------------------------------------------------------------------


class Server(Process):
    """A server of the chain."""

    predecessor: Pid | None
    """None for the head."""
    successor: Pid | None
    """None for the tail."""
    updates: tuple[Update, ...] = ()
    """The updates that it has applied, in order."""
    stopped: bool = False

    @on(Put, where=lambda self, m: not self.stopped and self.predecessor is None)
    def update(self, m: Put) -> None:
        update = Update(m.request, m.value)
        if update not in self.updates:
            self.apply(update)

    @on(
        Forward,
        where=lambda self, m: not self.stopped and m.sender == self.predecessor and m.number == len(self.updates) + 1,
    )
    def forwarded(self, m: Forward) -> None:
        self.apply(m.update)

    def apply(self, update: Update) -> None:
        """Apply an update, and pass it on; the tail answers."""
        self.updates += (update,)
        if self.successor is None:
            self.send(update.request.client, PutOk(update.request))
        else:
            self.send(self.successor, Forward(len(self.updates), update))

    @on(Get, where=lambda self, m: not self.stopped and self.successor is None)
    def query(self, m: Get) -> None:
        self.send(m.sender, GetOk(m.request, self.updates[-1].value if self.updates else EMPTY))

    # A server stops

    @on(Stop)
    def stop(self, m: Stop) -> None:
        self.stopped = True
        self.send(m.sender, Stopped())

    @on(NewPredecessor)
    def follow(self, m: NewPredecessor) -> None:
        self.predecessor = m.predecessor
        if m.predecessor is not None:
            self.send(m.predecessor, NewSuccessor(len(self.updates)))

    @on(NewSuccessor)
    def precede(self, m: NewSuccessor) -> None:
        self.successor = m.sender
        self.resend(m.updates)

    def resend(self, known: int) -> None:
        """Send all updates after the first `known`."""
        for number, update in enumerate(self.updates[known:], start=known + 1):
            assert self.successor is not None
            self.send(self.successor, Forward(number, update))

    @on(BeTail)
    def be_tail(self, m: BeTail) -> None:
        self.successor = None
        for update in self.updates:
            self.send(update.request.client, PutOk(update.request))


class TalkativeServer(Server):
    """Answers queries at any position of the chain."""

    @on(Get, where=lambda self, m: not self.stopped)
    def query(self, m: Get) -> None:
        super().query(m)


class ReversedServer(Server):
    """Answers queries if it is the head."""

    @on(Get, where=lambda self, m: not self.stopped and self.predecessor is None)
    def query(self, m: Get) -> None:
        super().query(m)


class ForgetfulServer(Server):
    """Does not send missing updates to its new successor."""

    def resend(self, known: int) -> None:
        """Send nothing."""


SERVERS: dict[Fault, type[Server]] = {
    "none": Server,
    "any": TalkativeServer,
    "head": ReversedServer,
    "resend": ForgetfulServer,
}


# -- the master ------------------------------------------------------------------------------------------------------


class Master(Process):
    """Lets a server stop, and repairs the chain."""

    crash: bool
    """Whether a server may still stop."""

    @action(when=lambda self: self.crash)
    def fail(self) -> None:
        self.crash = False
        self.send(self.choose(self.ids(Server)), Stop())

    @on(Stopped)
    def mend(self, m: Stopped) -> None:
        chain = self.ids(Server)
        place = chain.index(m.sender)
        if m.sender == chain[-1]:
            self.send(chain[place - 1], BeTail())
        else:
            self.send(chain[place + 1], NewPredecessor(chain[place - 1] if place else None))


# -- clients ---------------------------------------------------------------------------------------------------------


class Client(Process):
    """Has one operation in flight at a time."""

    awaiting: Request | None = None
    """The request without an answer."""


class Writer(Client):
    """Writes once."""

    value: str

    @init
    def write(self) -> None:
        self.awaiting = Request(self.id, 1)
        self.announce(Invoke(Write(self.value)))
        self.broadcast(Server, Put(self.awaiting, self.value))

    @on(PutOk, where=lambda self, m: m.request == self.awaiting)
    def finish(self, m: PutOk) -> None:
        self.announce(Return())
        self.awaiting = None


class Reader(Client):
    """Reads several times."""

    reads: int
    value: str = EMPTY
    """What it read last."""

    @init
    def begin(self) -> None:
        self.read(1)

    def read(self, number: int) -> None:
        """Begin a read."""
        self.awaiting = Request(self.id, number)
        self.announce(Invoke(Read()))
        self.broadcast(Server, Get(self.awaiting))

    @on(GetOk, where=lambda self, m: m.request == self.awaiting)
    def finish(self, m: GetOk) -> None:
        self.announce(Return(m.value))
        self.value = m.value
        self.awaiting = None
        if m.request.number < self.reads:
            self.read(m.request.number + 1)


# -- properties ------------------------------------------------------------------------------------------------------


@always
def update_propagation(s: View) -> bool:
    """The updates that a server has applied are a prefix of those of its predecessor."""
    chain = [server.updates for server in s[Server] if not server.stopped]
    return all(before[: len(behind)] == behind for before, behind in itertools.pairwise(chain))


@always
def at_most_once(s: View) -> bool:
    """No update is applied twice."""
    return all(len(server.updates) == len(set(server.updates)) for server in s[Server])


@reachable
def reading(s: View) -> bool:
    """The last read can return a value that was written."""
    return any(reader.value != EMPTY and reader.awaiting is None for reader in s[Reader])


@reachable
def mending(s: View) -> bool:
    """When a server has stopped, the others can apply all updates."""
    writers = len(s[Writer])
    return any(server.stopped for server in s[Server]) and all(
        server.stopped or len(server.updates) == writers for server in s[Server]
    )


@final
def answers(s: View) -> bool:
    """In the end, all operations have an answer."""
    return all(client.awaiting is None for client in s[Client])


# -- the model -------------------------------------------------------------------------------------------------------


def chain(
    servers: int = 3,
    writers: int = 2,
    readers: int = 1,
    reads: int = 2,
    crash: bool = True,
    faulty: Fault = "none",
) -> System:
    """A chain of servers, clients that write once, and clients that read several times; one server may stop."""
    at_least(2, servers=servers)
    at_least(1, writers=writers, readers=readers, reads=reads)
    one_of(get_args(Fault), faulty=faulty)
    kind = SERVERS[faulty]
    pids = [None, *(kind.pid(i) for i in range(servers)), None]
    return System(
        [
            *(kind(predecessor=pids[i], successor=pids[i + 2]) for i in range(servers)),
            *([Master(crash=True)] if crash else []),
            *(Writer(value=chr(ord("A") + i)) for i in range(writers)),
            *(Reader(reads=reads) for _ in range(readers)),
        ],
        monitors=[Linearizability(spec=Register(EMPTY))],
        properties=[
            update_propagation,
            linearizability(),
            at_most_once,
            answers,
            reading,
            *([mending] if crash else []),
        ],
        symmetric=several({Reader: readers}),
        name="chain",
    )
