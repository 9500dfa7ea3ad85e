"""The ABD register (Attiya, Bar-Noy, Dolev, "Sharing Memory Robustly in Message-Passing Systems", JACM 1995).

Servers hold copies of one register. The register is linearizable without consensus, as long as a majority answers.
Each value has a stamp: a clock, and the id of the server that coordinated the write. (The id allows several writers:
Lynch and Shvartsman 1997.) A client asks one server, which coordinates the operation in two phases:

1. *Query*: it asks all servers for their value and stamp, and waits for a majority. A write takes the next greater
   stamp for its new value. A read takes the value with the greatest stamp.
2. *Record*: it sends that value to all servers, and waits for a majority before it answers the client. A read does
   this, too, so that a later read does not see an older value.

A server coordinates one operation at a time; other requests wait. A coordinator does not send messages to itself: it
counts its own copy at once.

Two variants: with `quorum=False` (the default, and the variant that Stateright counts) a coordinator consumes replies
one by one. With `quorum=True` it consumes the replies that make a majority with its own copy in one quorum
transition. With up to three servers the two are the same, because one reply is enough for a majority.

Simplified: no crashes and no retransmission (the network is lossless).

The faulty twin, `faulty="hasty"`: a coordinator answers the client before another server has recorded the value. The
fault shows with three servers: with two, each query asks both.
"""

from __future__ import annotations

import dataclasses
from typing import Literal, get_args

from plait import Message, Pid, System, on
from plait.protocols._parameters import at_least, one_of
from plait.protocols._register import EMPTY, Get, GetOk, Put, PutOk, Request, Server, register_system

Fault = Literal["none", "hasty"]

Stamp = tuple[int, Pid]
"""A clock, and the server that set it to break ties."""


class Query(Message):
    """Phase 1: what is your copy?"""

    request: Request


class AckQuery(Message):
    """My copy is this."""

    request: Request
    stamp: Stamp
    value: str


class Record(Message):
    """Phase 2: take this value, unless yours is newer."""

    request: Request
    stamp: Stamp
    value: str


class AckRecord(Message):
    """My copy is at least as new."""

    request: Request


@dataclasses.dataclass
class Querying:
    """Phase 1 of a request: the value to write (None for a read) and the copies received so far."""

    request: Request
    write: str | None
    copies: dict[Pid, tuple[Stamp, str]]


@dataclasses.dataclass
class Recording:
    """Phase 2 of a request: the value that was read (None for a write) and the servers that recorded it."""

    request: Request
    read: str | None
    recorded: set[Pid]


class AnyAbdServer(Server):
    """Holds a copy, and coordinates the operations that clients ask it for."""

    stamp: Stamp
    value: str = EMPTY
    phase: Querying | Recording | None = None

    @on(Put, where=lambda self, m: self.phase is None)
    def put(self, m: Put) -> None:
        self.query(m.request, m.value)

    @on(Get, where=lambda self, m: self.phase is None)
    def get(self, m: Get) -> None:
        self.query(m.request, None)

    def query(self, request: Request, write: str | None) -> None:
        """Begin phase 1."""
        self.phase = Querying(request, write, {self.id: (self.stamp, self.value)})
        self.broadcast(Server, Query(request), myself=False)

    @on(Query)
    def tell(self, m: Query) -> None:
        self.send(m.sender, AckQuery(m.request, self.stamp, self.value))

    def record(self, query: Querying) -> None:
        """Begin phase 2."""
        stamp, value = max(query.copies.values())
        if query.write is not None:
            stamp, value = (stamp[0] + 1, self.id), query.write
        self.broadcast(Server, Record(query.request, stamp, value), myself=False)
        self.renew(stamp, value)
        self.phase = Recording(query.request, value if query.write is None else None, {self.id})

    @on(Record)
    def take(self, m: Record) -> None:
        self.renew(m.stamp, m.value)
        self.send(m.sender, AckRecord(m.request))

    def answer(self, operation: Recording) -> None:
        """Tell the client, and be ready for the next request."""
        request, read = operation.request, operation.read
        self.send(request.client, PutOk(request) if read is None else GetOk(request, read))
        self.phase = None

    def renew(self, stamp: Stamp, value: str) -> None:
        """Take a newer value."""
        if stamp > self.stamp:
            self.stamp, self.value = stamp, value


class AbdServer(AnyAbdServer):
    """Takes the replies one by one."""

    @on(AckQuery, where=lambda self, m: isinstance(self.phase, Querying) and m.request == self.phase.request)
    def collect(self, m: AckQuery) -> None:
        assert isinstance(self.phase, Querying)
        self.phase.copies[m.sender] = (m.stamp, m.value)
        if len(self.phase.copies) == self.majority():
            self.record(self.phase)

    @on(
        AckRecord,
        where=lambda self, m: (
            isinstance(self.phase, Recording)
            and m.request == self.phase.request
            and m.sender not in self.phase.recorded
        ),
    )
    def count(self, m: AckRecord) -> None:
        assert isinstance(self.phase, Recording)
        self.phase.recorded.add(m.sender)
        if len(self.phase.recorded) == self.majority():
            self.answer(self.phase)

    def majority(self) -> int:
        """More than half of the servers."""
        return len(self.ids(Server)) // 2 + 1


class QuorumAbdServer(AnyAbdServer):
    """Takes the replies that make a majority with its own copy at once."""

    others: int
    """The number of replies."""

    @on(
        AckQuery,
        quorum=lambda self: self.others,
        where=lambda self, m: isinstance(self.phase, Querying) and m.request == self.phase.request,
    )
    def collect(self, copies: tuple[AckQuery, ...]) -> None:
        assert isinstance(self.phase, Querying)
        self.phase.copies |= {m.sender: (m.stamp, m.value) for m in copies}
        self.record(self.phase)

    @on(
        AckRecord,
        quorum=lambda self: self.others,
        where=lambda self, m: isinstance(self.phase, Recording) and m.request == self.phase.request,
    )
    def count(self, acks: tuple[AckRecord, ...]) -> None:
        assert isinstance(self.phase, Recording)
        self.answer(self.phase)


class AnyHastyAbdServer(AnyAbdServer):
    """Answers as soon as its own copy is updated."""

    def record(self, query: Querying) -> None:
        """Begin phase 2 without waiting for its end."""
        super().record(query)
        assert isinstance(self.phase, Recording)
        self.answer(self.phase)


class HastyAbdServer(AnyHastyAbdServer, AbdServer):
    """Takes the replies of phase 1 one by one."""


class HastyQuorumAbdServer(AnyHastyAbdServer, QuorumAbdServer):
    """Takes the replies of phase 1 at once."""


def abd(clients: int = 2, servers: int = 2, quorum: bool = False, faulty: Fault = "none") -> System:
    """A register replicated on `servers` servers, with `clients` clients."""
    at_least(1, clients=clients)
    at_least(2, servers=servers)
    one_of(get_args(Fault), faulty=faulty)
    group: list[AnyAbdServer]
    if quorum:
        at_once = HastyQuorumAbdServer if faulty == "hasty" else QuorumAbdServer
        group = [at_once(stamp=(0, at_once.pid(i)), others=servers // 2) for i in range(servers)]
    else:
        server = HastyAbdServer if faulty == "hasty" else AbdServer
        group = [server(stamp=(0, server.pid(i))) for i in range(servers)]
    return register_system(group, clients, "abd")
