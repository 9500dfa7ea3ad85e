"""A register without a protocol: each server has its own copy and answers at once.

With one server the register is linearizable, because there is only one copy. With more servers it is not: a client
writes at one server, reads at the next, and does not find its write. So `servers=2` is the faulty twin.

Simplified: a client writes once and reads once; servers do not crash, and messages are not lost.
"""

from __future__ import annotations

from plait import System, on
from plait.protocols._parameters import at_least
from plait.protocols._register import EMPTY, Get, GetOk, Put, PutOk, Server, register_system


class CopyServer(Server):
    """Holds its own copy of the register."""

    value: str = EMPTY

    @on(Put)
    def put(self, m: Put) -> None:
        self.value = m.value
        self.send(m.sender, PutOk(m.request))

    @on(Get)
    def get(self, m: Get) -> None:
        self.send(m.sender, GetOk(m.request, self.value))


def single_copy(clients: int = 2, servers: int = 1) -> System:
    """A register with a separate copy at each server, and `clients` clients."""
    at_least(1, clients=clients, servers=servers)
    return register_system([CopyServer() for _ in range(servers)], clients, "single_copy")
