"""Probe sets: sets that iterate in the opposite order.

Code that lets the order of a set reach its result (a sent tuple, the first of several maxima) is not a function of its
inputs: the order depends on the interpreter's hash seed. Running it once with ordinary sets and once with probe sets
shows the difference in one process. Sets in the state and in messages are made as probes by `decode(…, probe=True)`;
those that the model makes itself, by `plait.check.tabulate.probing`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any


class _Kind(type):
    """A probe set stands for the plain type in tests of types: `isinstance(x, set)`."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.__base__)  # type: ignore[arg-type]

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.__base__)  # type: ignore[arg-type]


_turn = 0
"""With which element, from the last, a probe of three or more elements begins."""


def turns(count: int) -> Iterator[None]:
    """For a number of probes in a row: each begins with another element, so that each may be the first."""
    global _turn
    try:
        for _turn in range(count):
            yield
    finally:
        _turn = 0


def _backwards(probe: Any) -> Iterator[Any]:
    """The elements in the opposite order of the plain set that this one stands for.

    Copying a set may change its order. So a probe keeps the plain set that it was copied from, while they are equal.
    """
    plain = probe.__dict__["plain"]
    kind: Any = type(probe).__base__
    items = list(plain if plain is not None and kind.__eq__(plain, probe) else kind.__iter__(probe))[::-1]
    start = _turn % len(items) if len(items) > 2 else 0
    return iter(items[start:] + items[:start])


def _plain(items: Any) -> Any:
    return items if type(items) in (set, frozenset) else None


class ProbeSet(set[Any], metaclass=_Kind):
    """A set that iterates backwards."""

    def __init__(self, items: Iterable[Any] = ()) -> None:
        super().__init__(items)
        self.plain = _plain(items)

    __iter__ = _backwards

    def __repr__(self) -> str:
        return "{" + ", ".join(map(repr, self)) + "}" if self else "set()"

    def pop(self) -> Any:
        last = next(iter(self))
        self.remove(last)
        return last


class ProbeFrozenSet(frozenset[Any], metaclass=_Kind):
    """A frozenset that iterates backwards."""

    def __init__(self, items: Iterable[Any] = ()) -> None:
        self.plain = _plain(items)

    __iter__ = _backwards

    def __repr__(self) -> str:
        return "frozenset(" + ("{" + ", ".join(map(repr, self)) + "}" if self else "") + ")"


def _wrapping(kind: type, name: str) -> Callable[..., Any]:
    plain = getattr(kind.__base__, name)

    def method(self: Any, *others: Any) -> Any:
        result = plain(self, *others)
        return result if result is NotImplemented else kind(result)

    return method


_OPERATORS = "__or__ __and__ __sub__ __xor__ __ror__ __rand__ __rsub__ __rxor__"
_METHODS = "union intersection difference symmetric_difference copy"
for _kind in (ProbeSet, ProbeFrozenSet):
    for _name in (*_OPERATORS.split(), *_METHODS.split()):
        setattr(_kind, _name, _wrapping(_kind, _name))


def probe_hash(value: Any) -> int:
    """Another hash of a value, as another seed would give it. The hash of a number does not depend on the seed."""
    return hash(value) if isinstance(value, int | float | complex) else ~hash(value)


_STANDS_FOR: dict[Any, Any] = {set: ProbeSet, frozenset: ProbeFrozenSet, hash: probe_hash}


def probe(value: Any) -> Any:
    """A set as a probe; `set`, `frozenset` and `hash` as what makes probes; any other value unchanged."""
    kind = type(value)
    if kind is set:
        return ProbeSet(value)
    if kind is frozenset:
        return ProbeFrozenSet(value)
    if value is set or value is frozenset or value is hash:
        return _STANDS_FOR[value]
    return value
