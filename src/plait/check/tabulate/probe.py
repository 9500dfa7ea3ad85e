"""Asking a question again while sets iterate in another order.

Code that lets the order of a set reach its result (a sent tuple, the first of several maxima) is not a function of its
inputs: the order depends on the interpreter's hash seed. The native `SetOrder` changes the order of all sets during a
call, so a second call in one process shows the difference, wherever the set is made and iterated.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from plait._native import SetOrder

_MOST_ORDERS = 5
_ATTENTIVE = 8
"""The first questions to each piece of code, this many, are asked five times: two random answers may be equal."""


class MadeSet(set[Any]):
    """A set that is made while the order is changed, from Python 3.13 on: `list(…)` does not ask a plain one."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "{" + ", ".join(map(repr, self)) + "}" if self else "set()"

    def __reduce__(self) -> tuple[Any, ...]:
        return (set, (list(self),))


class MadeFrozenSet(frozenset[Any]):
    """A frozenset that is made while the order is changed, from Python 3.13 on."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "frozenset(" + ("{" + ", ".join(map(repr, self)) + "}" if self else "") + ")"

    def __reduce__(self) -> tuple[Any, ...]:
        return (frozenset, (list(self),))


for _made, _plain in ((MadeSet, "set"), (MadeFrozenSet, "frozenset")):
    _made.__name__ = _made.__qualname__ = _plain


def set_order() -> SetOrder:
    """A `SetOrder` for one tabulation."""
    return SetOrder((MadeSet, MadeFrozenSet))


def turns(count: int, largest: int, least: int = 0) -> Sequence[int]:
    """The orders in which the question number `count` is asked again, `least` times or more.

    `largest` is the size of the largest set that it iterated. Up to five elements, each comes to each place.
    """
    wanted = min(largest, _MOST_ORDERS) if largest > 2 else int(largest == 2)  # two elements have one other order
    return range(count, count + max(wanted, 4 if count <= _ATTENTIVE else least))


_WAYS: dict[str, Callable[[Any], Any]] = {
    "iter": lambda s: next(iter(s)),
    "for": lambda s: [x for x in s],  # noqa: C416
    "__iter__": lambda s: next(s.__iter__()),
    "tuple": tuple,
    "list": list,
    "sorted": lambda s: sorted(s, key=lambda _: 0),
    "[*…]": lambda s: [*s],
    "join": lambda s: ",".join(s),
    "repr": repr,
    "pop": lambda s: s.copy().pop(),
    "fromkeys": lambda s: list(dict.fromkeys(s)),
}


@functools.cache
def unpermuted(made: bool = False) -> frozenset[str]:
    """What iterates a set in the usual order nevertheless: in C, without the protocol of iterators.

    `made`: for sets that are made while the order is changed; else for those that exist before, such as constants.
    """
    order = set_order()

    def answers(kept: Any) -> dict[str, Any]:
        return {name: way({"a", "b"} if made else kept) for name, way in _WAYS.items()}

    usual, other = answers({"a", "b"}), order.permuted(0, answers, {"a", "b"})
    return frozenset(name for name in _WAYS if usual[name] == other[name])
