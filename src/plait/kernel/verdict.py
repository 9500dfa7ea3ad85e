"""The one result type of every analysis: holds, violated or inconclusive, with the bound it holds under."""

from __future__ import annotations

import builtins
from typing import Any, Literal

import msgspec

from plait.kernel.coverage import Coverage
from plait.kernel.rendering import renderer
from plait.kernel.trace import Trace

Status = Literal["holds", "violated", "inconclusive"]

EXIT_CODES: dict[Status, int] = {"holds": 0, "violated": 1, "inconclusive": 3}


class Reduction(msgspec.Struct, frozen=True):
    """A reduction that was asked for (or considered, by `reduce="auto"`): whether it was applied, and why (not)."""

    name: str
    applied: bool
    reason: str


class FormulaStatistics(msgspec.Struct, frozen=True):
    """What a solver was asked, where one was."""

    encoding: str
    projection: bool
    """Whether only what influences the property was looked at."""
    integers: str
    """What numbers are: mathematical, or so many bits."""
    solver: str
    queries: int
    assertions: int
    """Of the largest formula."""
    build_seconds: float
    """CPU time, with what the solver needs to read the formula."""
    solve_seconds: float
    work: int = 0
    """Z3's own count of what it did, which does not depend on how busy the machine is; 0 for other solvers."""


class Statistics(msgspec.Struct, frozen=True):
    """What the search did."""

    states: int
    transitions: int
    terminal_states: int
    depth: int
    seconds: float
    python_calls: int
    search: str
    workers: int
    reductions: list[Reduction] = []
    collision_probability: float = 0.0
    memory_bytes: int = 0
    """Visited set, frontier and tables, in bytes."""
    table_bytes: int = 0
    """The visited set with its parent hints alone."""
    walks: int = 0
    """Runs tried, for the random search."""
    graph_states: int = 0
    """States of the graph in which runs were looked for, for temporal properties. It may have more than the search saw, or
    fewer: partial-order reduction of runs has rules of its own."""
    stack_operations: int = 0
    """Pushes and pops of the backtracking stack, for depth-first searches."""
    stack_operations_saved: int = 0
    """Those that selective push-on-stack did without."""
    formula: FormulaStatistics | None = None

    @property
    def states_per_second(self) -> float:
        return self.states / self.seconds if self.seconds > 0 else 0.0


class PropertyResult(msgspec.Struct, frozen=True):
    """The result for one property."""

    name: str
    kind: str
    status: Status
    note: str | None = None
    trace: Trace | None = None


class Verdict(msgspec.Struct, frozen=True):
    """The result of an analysis. `bool(verdict)` is true only if everything holds."""

    status: Status
    """"holds", "violated" or "inconclusive"."""
    statistics: Statistics
    """What the search did: states, transitions, depth, seconds and more."""
    properties: list[PropertyResult]
    """The result for each property."""
    model: str = ""
    """The target, or the name of the System if it was made in Python."""
    property: str | None = None
    """The violated property, if there is one."""
    message: str | None = None
    """What is wrong, in a sentence."""
    bound: str | None = None
    """None when the whole space was searched, else which limit was hit."""
    trace: Trace | None = None
    """The counterexample, if there is one."""
    warnings: list[str] = []
    """What the user should know: for example, a handler that never ran."""
    coverage: Coverage | None = None
    """What was exercised, where that was asked for."""

    def __bool__(self) -> bool:
        return self.status == "holds"

    @builtins.property
    def exit_code(self) -> int:
        """The exit code of the command line: 0 holds, 1 violated, 3 inconclusive."""
        return EXIT_CODES[self.status]

    def to_json(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        s = self.statistics
        return {
            "model": self.model,
            "verdict": self.status,
            "property": self.property,
            "message": self.message,
            "states": s.states,
            "transitions": s.transitions,
            "terminal_states": s.terminal_states,
            "depth": s.depth,
            "seconds": s.seconds,
            "states_per_second": s.states_per_second,
            "python_calls": s.python_calls,
            "search": s.search,
            "workers": s.workers,
            "walks": s.walks,
            "graph_states": s.graph_states,
            "stack_operations": s.stack_operations,
            "stack_operations_saved": s.stack_operations_saved,
            "reductions": [r.name for r in s.reductions if r.applied],
            "reduction_notes": [msgspec.to_builtins(r) for r in s.reductions],
            "collision_probability": s.collision_probability,
            "memory_bytes": s.memory_bytes,
            "table_bytes": s.table_bytes,
            "formula": msgspec.to_builtins(s.formula),
            "bound": self.bound,
            "properties": [msgspec.to_builtins(msgspec.structs.replace(p, trace=None)) for p in self.properties],
            "warnings": self.warnings,
            "coverage": msgspec.to_builtins(self.coverage),
            "trace": msgspec.to_builtins(self.trace) if self.trace is not None else None,
        }

    def __str__(self) -> str:
        return renderer().text(self)

    def _repr_html_(self) -> str:
        return renderer().html(self)
