"""Chain replication (van Renesse, Schneider, "Chain Replication for Supporting High Throughput and Availability", 2004).

Servers stand in a chain, and each has a copy of an object, here a register.

- Updates go to the first server, the *head*. Each server applies an update and forwards it to the next one. The last
  server, the *tail*, answers the client: then all have it.
- Queries go to the tail alone, which answers from its own copy.

So what a server has applied is a prefix of what the one before it has applied (the paper's *update propagation
invariant*), what has been answered is at all servers, and the tail alone decides what has happened: the register is
linearizable.

Servers are *fail-stop*: one that stops does nothing more, and a *master*, which never fails, finds out and mends the chain:

- The head stopped: the next server is the head. Updates that only the old head had are lost, and their clients ask again.
- The tail stopped: the server before it is the tail, has applied all that the old one had, and answers for it.
- Another one stopped: the master introduces its successor to its predecessor. The successor tells how many updates it
  has, and the predecessor sends it the others.

At most one server stops in a run, at any time, if `crash`. A client sends a request to all servers, of which the head
takes updates and the tail takes queries; others leave them until they are head or tail. That stands for asking the master
who is, and for asking again. A new head does not take an update that it has got from the old one.

Faulty twins:

- `any`: every server answers queries. A client reads what only the head has, and after that, at the tail, what was there
  before.
- `head`: the head answers queries, instead of the tail. That is all right until the head stops.
- `resend`: a server does not send the updates that its new successor lacks. The clients wait for ever.

Simplified: servers remember all updates, so the acknowledgements that let them forget are left out; links are unordered,
but updates are numbered and taken in order; nobody joins the chain at its end.
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
    """The update with this number, from the one before in the chain."""

    number: int
    update: Update


class Stop(Message):
    """Fate says: the server stops now."""


class Stopped(Message):
    """The master finds that the sender has stopped."""


class NewPredecessor(Message):
    """The master says: this one stands before you in the chain; if None, you are the head."""

    predecessor: Pid | None


class NewSuccessor(Message):
    """The sender stands behind you, and has so many updates."""

    updates: int


class BeTail(Message):
    """The master says: nobody stands behind you."""


# -- servers ---------------------------------------------------------------------------------------------------------


class Server(Process):
    """A link of the chain."""

    predecessor: Pid | None
    """None: it is the head."""
    successor: Pid | None
    """None: it is the tail."""
    updates: tuple[Update, ...] = ()
    """What it has applied, in order."""
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

    # One stops

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
        """Send all updates after the first so many."""
        for number, update in enumerate(self.updates[known:], start=known + 1):
            assert self.successor is not None
            self.send(self.successor, Forward(number, update))

    @on(BeTail)
    def be_tail(self, m: BeTail) -> None:
        self.successor = None
        for update in self.updates:
            self.send(update.request.client, PutOk(update.request))


class TalkativeServer(Server):
    """Answers queries wherever it stands."""

    @on(Get, where=lambda self, m: not self.stopped)
    def query(self, m: Get) -> None:
        super().query(m)


class ReversedServer(Server):
    """Answers queries if it is the head."""

    @on(Get, where=lambda self, m: not self.stopped and self.predecessor is None)
    def query(self, m: Get) -> None:
        super().query(m)


class ForgetfulServer(Server):
    """Lets its new successor wait."""

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
    """Lets a server stop, and mends the chain."""

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
    """The request that is not answered yet."""


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
    """Reads so many times."""

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
    """What a server has applied is a prefix of what the one before it has applied."""
    chain = [server.updates for server in s[Server] if not server.stopped]
    return all(before[: len(behind)] == behind for before, behind in itertools.pairwise(chain))


@always
def at_most_once(s: View) -> bool:
    """No update is applied twice."""
    return all(len(server.updates) == len(set(server.updates)) for server in s[Server])


@reachable
def reading(s: View) -> bool:
    """The last read can return something that was written."""
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
    """In the end all operations have been answered."""
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
    """So many servers, clients that write once, and clients that read so many times; one server may stop."""
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
