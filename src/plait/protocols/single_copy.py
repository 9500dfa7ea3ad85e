"""A register without any protocol: each server has its own copy and answers at once.

With one server the register is linearizable, for there is one copy. With more it is not: a client writes at one server,
reads at the next, and does not find what it wrote. So `servers=2` is the faulty twin.

Simplified: a client writes once and reads once; nobody crashes, and nothing is lost.
"""

from __future__ import annotations

from plait import System, on
from plait.protocols._parameters import at_least
from plait.protocols._register import EMPTY, Get, GetOk, Put, PutOk, Server, register_system


class CopyServer(Server):
    """Holds a copy of the register, and tells nobody."""

    value: str = EMPTY

    @on(Put)
    def put(self, m: Put) -> None:
        self.value = m.value
        self.send(m.sender, PutOk(m.request))

    @on(Get)
    def get(self, m: Get) -> None:
        self.send(m.sender, GetOk(m.request, self.value))


def single_copy(clients: int = 2, servers: int = 1) -> System:
    """So many clients of a register of which each server has a copy of its own."""
    at_least(1, clients=clients, servers=servers)
    return register_system([CopyServer() for _ in range(servers)], clients, "single_copy")
