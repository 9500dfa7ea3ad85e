"""What can be in a projection at all (thesis section 4.4.2), known before anything is solved.

Seen from the end of a path: the last step writes something of F. A step before it does, or comes before a step of its own
process that is left, or writes a variable that such a later step reads. And the last step that a process takes writes
something of F, or a variable that another process reads. The constraint C_F says so too, but one step at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from plait.bmc.program import (
    ASSERTIONS,
    BOUNDS,
    Action,
    Branch,
    Choice,
    Ensure,
    Expr,
    Not,
    Operation,
    Program,
    Read,
    Require,
    Set,
    Step,
    Variable,
    accesses,
)
from plait.bmc.ranges import Ranges

Place = tuple[int, int]
"""A process and a location."""


class Relevance:
    """What the steps of a program may read and write, for variables F and processes whose counters are in F."""

    def __init__(self, program: Program, ranges: Ranges, relevant: set[Variable], watched: set[int]) -> None:
        self.program, self.relevant, self.watched = program, relevant, watched
        self.reads: dict[Place, set[Variable]] = {}
        self.writes: dict[Place, set[Variable]] = {}
        self.fails: set[Place] = set()
        for p, code in enumerate(program.processes):
            for step in code.steps:
                place = (p, step.location)
                self.reads[place], self.writes[place] = accesses(step.body)
                flags = set(_failures(step.body, ranges))
                self.writes[place] |= {v for v in program.variables if v.hidden and v.name in flags}
                if flags:
                    self.fails.add(place)

    def _matters(self, place: Place, read: set[Variable]) -> bool:
        return place[0] in self.watched or not self.writes[place].isdisjoint(self.relevant | read)

    def possible(self, depth: int) -> list[set[Place]]:
        """For each step of a path, where a process may be that takes it."""
        found: list[set[Place]] = []
        later: set[Place] = set()
        for _ in range(depth):
            read = set().union(*(self.reads[place] for place in later))
            later = later | {
                place
                for place in self.writes
                if self._matters(place, read) or any((place[0], t) in later for t in self._step(place).targets)
            }
            found.append(later)
        return found[::-1]

    def ends(self, process: int) -> set[int] | None:
        """The locations at which a process may be in the end; None: all of them."""
        if process in self.watched:
            return None
        read = set().union(*(reads for place, reads in self.reads.items() if place[0] != process))
        found = {0}
        for place in self.writes:
            if place[0] == process and self._matters(place, read):
                found.update(self._step(place).targets)
                if place in self.fails:
                    found.add(self.program.processes[process].stuck)
        return found

    def _step(self, place: Place) -> Step:
        return self.program.processes[place[0]].steps[place[1]]


def _failures(actions: Sequence[Action], ranges: Ranges) -> Iterator[str]:
    """The flags that actions may set."""
    for action in actions:
        match action:
            case Set(_, index, value):
                if index is not None and not ranges.safe(action):
                    yield BOUNDS
                yield from _loose(index, ranges)
                yield from _loose(value, ranges)
            case Require(condition):
                yield from _loose(condition, ranges)
            case Ensure(condition):
                yield ASSERTIONS
                yield from _loose(condition, ranges)
            case Branch(condition, then, otherwise):
                yield from _loose(condition, ranges)
                yield from _failures(then, ranges)
                yield from _failures(otherwise, ranges)


def _loose(e: Expr | None, ranges: Ranges) -> Iterator[str]:
    match e:
        case Read(_, index) if index is not None:
            if not ranges.safe(e):
                yield BOUNDS
            yield from _loose(index, ranges)
        case Not(operand):
            yield from _loose(operand, ranges)
        case Operation(_, left, right):
            yield from _loose(left, ranges)
            yield from _loose(right, ranges)
        case Choice(condition, then, otherwise):
            for part in (condition, then, otherwise):
                yield from _loose(part, ranges)
