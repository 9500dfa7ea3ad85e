"""Random systems of the other generators with several initial states, constraints, and channels that are full.

A system is drawn as two specs: the one of another generator, and a `Bounds`. The second changes the system that the
first builds. So every feature of the other generators meets the features here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

from hypothesis import strategies as st

from plait import ModelError
from plait.model.process import Handler
from plait.model.properties import condition
from plait.model.system import System
from tests.oracle.explorer import Exploration, explore


class Bounds(NamedTuple):
    choosers: tuple[int, ...] = ()
    """Classes whose processes choose their first x, by number."""
    some: bool = False
    """Whether not all combinations of their choices are initial states."""
    within: tuple[str, int] | None = None
    capacity: tuple[int, str] | None = None


def begin_with_zero_or_one(self: Any) -> None:
    self.x = self.choose([0, 1])


def begin_with_any(self: Any) -> None:
    self.x = self.choose({0, 1, 2})
    self.x = (self.x + self.choose([0, 1])) % 3


def some_zero(s: Any) -> bool:
    return any(process.x == 0 for process in s)


def is_within(name: str, number: int) -> Callable[[Any], bool]:
    match name:
        case "every x":
            return lambda s: all(process.x <= number % 2 for process in s)
        case "sum":
            return lambda s: sum(process.x for process in s) <= 1 + number
        case "inboxes":
            return lambda s: all(len(process.inbox) <= number % 2 for process in s)
        case "messages":
            return lambda s: len(s.messages) <= number
        case "crashes":
            return lambda s: sum(process.crashed for process in s) <= number % 2
        case "fuel":
            return lambda s: sum(process.fuel for process in s if hasattr(process, "fuel")) > number % 2
        case "first":  # not symmetric
            return lambda s: s.processes[0].x != number % 3
    raise ValueError(name)


SYMMETRIC = ("every x", "sum", "inboxes", "messages", "crashes")


def bounds(withins: tuple[str, ...] = (*SYMMETRIC, "first")) -> st.SearchStrategy[Bounds]:
    return st.builds(
        Bounds,
        choosers=st.sampled_from(((), (0,), (0, 1), (1,))),
        some=st.booleans(),
        within=st.none() | st.tuples(st.sampled_from(withins), st.integers(0, 3)),
        capacity=st.none() | st.tuples(st.sampled_from((1, 2)), st.sampled_from(("block", "drop"))),
    )


def bounded(system: System, given: Bounds) -> System:
    """The system with these bounds; its classes are changed, too."""
    classes = list(dict.fromkeys(type(process) for process in system.processes))
    for number in given.choosers:
        begin = begin_with_any if number else begin_with_zero_or_one
        cls = classes[number % len(classes)]
        cls.__plait_handlers__ = (*cls.__plait_handlers__, Handler(f"begin{number}", "init", begin))
    if given.choosers and given.some:
        system.initially = condition("initially", some_zero)
    if given.within is not None:
        system.within = condition("within", is_within(*given.within))
    network = system.network
    if given.capacity is not None and network.kind != "duplicating":
        most, full = given.capacity
        full = full if network.kind == "fifo" else "block"
        system.network = dataclasses.replace(network, capacity=most, full=full)
    system.name = f"{system.name}, {given}"
    return system


def explored(system: System, given: Bounds, limit: int) -> tuple[System, Exploration] | None:
    """The bounded system with what the oracle found; None if it is too large, or a step sends more than a channel holds."""
    return measured(bounded(system, given), limit)


def measured(system: System, limit: int) -> tuple[System, Exploration] | None:
    """A system with what the oracle found; None if it is too large, or a step sends more than a channel holds."""
    try:
        truth = explore(system, limit=limit)
    except ModelError:
        return None
    return (system, truth) if truth.complete else None


def explored_systems(
    specs: st.SearchStrategy[Any], build: Callable[[Any], System], limit: int, withins: tuple[str, ...] | None = None
) -> st.SearchStrategy[tuple[System, Exploration]]:
    """Systems of another generator with bounds, of at most so many states, with what the oracle found."""
    given = bounds(withins) if withins else bounds()
    pairs = st.tuples(specs, given).map(lambda drawn: explored(build(drawn[0]), drawn[1], limit))
    return pairs.filter(lambda pair: pair is not None)  # type: ignore[return-value]
