"""The result for one property up to a depth, and its text."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from plait.bmc.execution.interpreter import State, Step
from plait.bmc.program.definition import Property, Value
from plait.kernel.verdict import Status

NO_RUN_ENDS = "vacuous: no run ends, so there is no final state"
"""The note of a `final` property that says nothing."""


Schedule = tuple[tuple[Value, ...], list[tuple[int, tuple[Value, ...]]]]
"""A run: the initial values, then the process and the inputs of each step."""


class Costs(msgspec.Struct):
    """What a search cost."""

    build: float = 0.0
    """CPU seconds to build formulas."""
    solve: float = 0.0
    work: int = 0
    queries: int = 0
    assertions: int = 0
    """The number of assertions of the largest formula."""
    depth: int = 0
    states: int = 0
    transitions: int = 0
    final_states: int = 0
    encodings: set[str] = msgspec.field(default_factory=set)
    bits: set[int | None] = msgspec.field(default_factory=set)
    """The numbers of bits of numbers in formulas. None: mathematical integers."""

    def add(self, other: Costs) -> None:
        """Add the costs of another search."""
        self.build, self.solve, self.work = self.build + other.build, self.solve + other.solve, self.work + other.work
        self.queries += other.queries
        self.assertions, self.depth = max(self.assertions, other.assertions), max(self.depth, other.depth)
        self.encodings |= other.encodings
        self.bits |= other.bits


class Run(NamedTuple):
    """A run that decides a property."""

    start: State
    steps: list[Step]


class Answer(NamedTuple):
    """The result for one property, without the program."""

    property: str
    run: Schedule | None
    covered: bool
    depth: int | None
    bound: str | None
    note: str


class Finding(NamedTuple):
    """The result for one property up to a depth."""

    property: Property
    run: Run | None
    covered: bool
    """Whether the search covered all runs."""
    depth: int | None
    """The largest depth that is decided. None: the search decided no depth."""
    bound: str | None
    note: str = ""
    by: str = ""
    """What decided it: explicit, sliced, clock, steps or induction."""

    def conclusive(self) -> bool:
        """Whether the property is decided."""
        return self.run is not None or self.covered

    def status(self) -> Status:
        """Whether the property holds."""
        if self.run is None:
            covered: Status = "violated" if self.property.kind == "reachable" else "holds"
            return covered if self.covered else "inconclusive"
        return "holds" if self.property.kind == "reachable" else "violated"

    def text(self, shown: int) -> str:
        """The result in words; `shown` is the number of steps of the run that the report shows."""
        word = "reached" if self.property.kind == "reachable" else "violated"
        if self.run is not None:
            return f"{word} in {steps_text(shown)}"
        if self.note:
            return self.note
        if self.depth is None:
            return f"not decided: {self.bound}"
        if self.covered:
            return f"in all runs (at most {steps_text(self.depth)})"
        limit = "" if self.bound is None or self.bound.startswith("depth") else f"; stopped there: {self.bound}"
        return f"not {word} within {steps_text(self.depth)}{limit}"


def steps_text(count: int) -> str:
    """A number of steps in words."""
    return f"{count} step{'s' if count != 1 else ''}"
