"""A function with a cache is not the function behind it: it hashes arguments, and returns one object several times.

CPython runs such functions. Each of these models once had another verdict natively.
"""

from __future__ import annotations

import functools
from typing import Any

import pytest

from plait import Process, System, action, always, check

ROUTES: list[Any] = [(k, k + 1) for k in range(30)] + [[30, 31]]


@functools.lru_cache
def length(route: Any) -> int:
    return len(route)


@functools.cache
def config() -> dict[str, int]:
    return {"limit": 3}


class Router(Process):
    """The last route is a list, which has no hash."""

    n: int = 0
    last: int = 0

    @action(when=lambda self: self.n < len(ROUTES))
    def go(self) -> None:
        self.last = length(ROUTES[self.n])
        self.n += 1


class Collector(Process):
    """The property is evaluated in parts, and hashes a list."""

    items: Any = ()

    @action(when=lambda self: len(self.items) < 3)
    def go(self) -> None:
        self.items = [*self.items, self.choose([0, 1])]


class Configured(Process):
    """One object is returned twice."""

    n: int = 0

    @action(when=lambda self: self.n < 3 and config() is config())
    def go(self) -> None:
        self.n += 1


def router() -> System:
    return System([Router()], properties=[always(lambda s: all(r.last <= 2 for r in s[Router]), name="short")])


def collector() -> System:
    short = always(lambda s: all(length(c.items) < 5 for c in s[Collector]), name="short")
    return System([Collector()], properties=[short])


def configured() -> System:
    return System([Configured()], properties=[always(lambda s: all(c.n < 4 for c in s[Configured]), name="few")])


@pytest.mark.parametrize(
    ("make", "status", "violated"),
    [(router, "violated", "no_exceptions"), (collector, "violated", "no_exceptions"), (configured, "holds", None)],
)
def test_the_verdict_is_that_of_cpython(make: Any, status: str, violated: str | None) -> None:
    for native in ("auto", "off"):
        verdict = check(make(), native=native, workers=1)
        assert (verdict.status, verdict.property) == (status, violated)
