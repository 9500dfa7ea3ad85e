"""A system that raises an exception where a test wants it: in a handler, a guard, a quorum, a monitor or a property."""

from __future__ import annotations

from typing import Any

from plait import Message, Monitor, Process, System, action, always, on


class Ping(Message):
    n: int = 0


def lookup(number: int) -> int:
    return {0: 1, 1: 2, 2: 3}[number]


class Counter(Process):
    """Goes to 3, and raises there if it is `broken` where the test says."""

    n: int = 0
    broken: str = ""
    calls: int = 0

    @action(when=lambda self: lookup(self.n) > 0 if self.broken == "guard" else self.n < 4)
    def up(self) -> None:
        self.calls += 1
        self.n = lookup(self.n) if self.broken == "handler" else self.n + 1
        self.announce(self.n)
        self.send(Sink.pid(0), Ping(self.n))


class Sink(Process):
    got: int = 0
    broken: str = ""

    @on(Ping, where=lambda self, m: self.broken != "message" or lookup(m.n) > 0)
    def take(self, m: Ping) -> None:
        self.got += 1

    @on(
        Ping,
        quorum=lambda self: 2 if self.broken != "quorum" else lookup(2 + self.got) - 1,
        where=lambda self, m: False,
    )
    def gather(self, ms: Any) -> None:
        pass


class Watch(Monitor):
    broken: str = ""

    def observe(self, process: Any, event: Any) -> None:
        if self.broken == "monitor":
            lookup(event)


def predicate(s: Any) -> bool:
    counter = s[Counter][0]
    return counter.broken != "property" or lookup(counter.n) > 0


PLACES = {
    "handler": ("Counter.up", 4),
    "guard": ("the guard of Counter.up", 4),
    "message": ("the guard of Sink.take", 4),
    "quorum": ("the quorum of Sink.gather", 3),
    "monitor": ("Watch.observe", 3),
    "property": ("property fine", 3),
}
"""Where it raises, and the length of a shortest run to it, by hand."""


def system(broken: str = "", *properties: Any) -> System:
    given = properties or (always(predicate, name="fine"),)
    return System([Counter(broken=broken), Sink(broken=broken)], monitors=[Watch(broken=broken)], properties=given)
