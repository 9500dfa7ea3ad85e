"""The failures that are possible in a step: a check that does not hold, or an index out of range."""

from __future__ import annotations

from collections.abc import Iterator

from plait.bmc.analysis.ranges import Ranges
from plait.bmc.program.definition import (
    BOUNDS,
    Action,
    Branch,
    Choice,
    Ensure,
    Expr,
    Not,
    Operation,
    Read,
    Require,
    Set,
    Wrap,
)


def expressions(action: Action) -> list[Expr]:
    """The expressions that an action evaluates in every case."""
    match action:
        case Set(_, index, value):
            return [value] if index is None else [index, value]
        case Require(condition) | Ensure(condition) | Branch(condition, _, _):
            return [condition]
        case _:
            return []


def fails_inside(action: Action, ranges: Ranges) -> bool:
    """Whether a branch of an action can fail."""
    return isinstance(action, Branch) and any(failures(a, ranges) for a in (*action.then, *action.otherwise))


def failures(action: Action, ranges: Ranges) -> set[str]:
    """The flags that an action may set."""
    found: set[str] = set()
    if isinstance(action, Ensure):
        found.add(action.check)
    if isinstance(action, Set) and action.index is not None and not ranges.safe(action):
        found.add(BOUNDS)
    if any(not ranges.safe(read) for e in expressions(action) for read in reads_of(e)):
        found.add(BOUNDS)
    if isinstance(action, Branch):
        found = found.union(*(failures(a, ranges) for a in (*action.then, *action.otherwise)))
    return found


def reads_of(e: Expr) -> Iterator[Read]:
    """All reads in an expression."""
    match e:
        case Read(_, index):
            yield e
            if index is not None:
                yield from reads_of(index)
        case Not(operand) | Wrap(operand):
            yield from reads_of(operand)
        case Operation(_, left, right):
            yield from reads_of(left)
            yield from reads_of(right)
        case Choice(condition, then, otherwise):
            for part in (condition, then, otherwise):
                yield from reads_of(part)
