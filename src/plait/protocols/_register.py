"""The harness of the register protocols: clients that write once and then read, and a monitor of their history.

Client k writes the k-th letter at server k (modulo the number of servers), waits for the answer, and reads at the
next server. Then it is done. A `Linearizability` monitor observes its operations. A server leaves a message pending
if it has no handler for it. Stateright has the same harness (src/actor/register.rs), and the protocols have the state
counts that it publishes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from plait import Message, Pid, Process, System, init, on, reachable
from plait.model.linearizability import Invoke, Linearizability, Read, Register, Return, Write, linearizability
from plait.model.view import View

EMPTY = ""
"""What a register holds before the first write."""


@dataclasses.dataclass(frozen=True)
class Request:
    """The identity of a request: the client, and the number of the request."""

    client: Pid
    number: int


class Put(Message):
    """A client asks a server to write."""

    request: Request
    value: str


class PutOk(Message):
    """The write is done."""

    request: Request


class Get(Message):
    """A client asks a server to read."""

    request: Request


class GetOk(Message):
    """The read is done, and returned this value."""

    request: Request
    value: str


class Server(Process):
    """The role of all servers; each protocol has its own subclass."""


class Client(Process):
    """Writes once, then reads once."""

    value: str
    awaiting: Request | None = None
    """The request without an answer."""

    @init
    def write(self) -> None:
        self.awaiting = Request(self.id, 1)
        self.announce(Invoke(Write(self.value)))
        self.send(self.server(0), Put(self.awaiting, self.value))

    @on(PutOk, where=lambda self, m: m.request == self.awaiting)
    def read(self, m: PutOk) -> None:
        self.announce(Return())
        self.awaiting = Request(self.id, 2)
        self.announce(Invoke(Read()))
        self.send(self.server(1), Get(self.awaiting))

    @on(GetOk, where=lambda self, m: m.request == self.awaiting)
    def finish(self, m: GetOk) -> None:
        self.announce(Return(m.value))
        self.awaiting = None

    def server(self, shift: int) -> Pid:
        """The server at this distance from the client's own server."""
        servers = self.ids(Server)
        return servers[(self.id.index + shift) % len(servers)]


@reachable
def value_chosen(s: View) -> bool:
    """Some read is about to return a value that was written."""
    return any(isinstance(m, GetOk) and m.value != EMPTY for client in s[Client] for m in client.inbox)


def register_system(servers: Iterable[Server], clients: int, name: str) -> System:
    """A System of these servers and `clients` clients, whose history must be linearizable."""
    return System(
        [*servers, *(Client(value=chr(ord("A") + k)) for k in range(clients))],
        monitors=[Linearizability(spec=Register(EMPTY))],
        properties=[linearizability(), value_chosen],
        name=name,
    )
