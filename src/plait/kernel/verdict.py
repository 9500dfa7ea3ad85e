"""The result type of every analysis: holds, violated or inconclusive, with the bound that ended the search."""

from __future__ import annotations

import builtins
import os
from typing import Any, Literal

import msgspec

from plait.kernel.coverage import Coverage
from plait.kernel.rendering import renderer
from plait.kernel.trace import Trace, one_line

Status = Literal["holds", "violated", "inconclusive"]

VACUOUS = {
    "no-property": "no property was given",
    "no-step": "no process can ever take a step",
    "no-state": "every initial state is outside of the bound",
}
"""Bounds of a search that was complete, but has shown nothing, and what they mean."""

EXIT_CODES: dict[Status, int] = {"holds": 0, "violated": 1, "inconclusive": 3}


class Reduction(msgspec.Struct, frozen=True):
    """A reduction that was requested, or considered by `reduce="auto"`: whether it was applied, and why or why not."""

    name: str
    applied: bool
    reason: str


class RoundHandler(msgspec.Struct, frozen=True):
    """A handler of a protocol in rounds."""

    role: str
    name: str
    takes: int | None
    """The number of the round of the messages that it consumes, from 0; None for an action or an `@init` method."""
    sends: list[int]
    """The rounds of the messages that it may send."""
    begins: bool = False
    """Whether it is an `@init` method."""


class PhaseStructure(msgspec.Struct, frozen=True):
    """The rounds of a phase, and the handlers that send and consume their messages."""

    rounds: list[str]
    handlers: list[RoundHandler]


class FormulaStatistics(msgspec.Struct, frozen=True):
    """Statistics of the formulas that were given to a solver."""

    encoding: str
    projection: bool
    """Whether formulas contain only what influences the property."""
    integers: str
    """How numbers are represented: mathematical integers, or a number of bits."""
    solver: str
    queries: int
    assertions: int
    """The number of assertions of the largest formula."""
    build_seconds: float
    """CPU time to build formulas. This includes the time in which the solver reads them."""
    solve_seconds: float
    work: int = 0
    """The resource count of Z3, which does not depend on the load of the machine. 0 for other solvers."""
    decided: dict[str, str] = {}
    """By property: the search that decided it, for example explicit, sliced, clock, steps or induction."""


class Statistics(msgspec.Struct, frozen=True):
    """Statistics of a search."""

    states: int
    transitions: int
    terminal_states: int
    depth: int
    seconds: float
    python_calls: int
    """The number of questions that Python answered, alone or to compare its answer with that of the virtual machine."""
    search: str
    workers: int
    reductions: list[Reduction] = []
    collision_probability: float = 0.0
    memory_bytes: int = 0
    """Size of the visited set, the frontier and the tables, in bytes."""
    table_bytes: int = 0
    """Size of the visited set with its parent hints, in bytes."""
    walks: int = 0
    """The number of runs, for the random search."""
    graph_states: int = 0
    """The number of states of the graph of runs, for temporal properties. It may be larger or smaller than the number
    of states of the search, because partial-order reduction of runs has other rules."""
    stack_operations: int = 0
    """The number of pushes and pops of the backtracking stack, for depth-first searches."""
    stack_operations_saved: int = 0
    """The number of these operations that selective push-on-stack avoided."""
    formula: FormulaStatistics | None = None
    all_states: bool = False
    """Whether all states were met although a limit was reached: only the search for fair runs is not complete."""
    native_answers: int = 0
    """The number of questions that the virtual machine answered."""
    native_compared: int = 0
    """The number of these answers that were compared with an answer of Python, which `python_calls` counts, too."""
    cut_states: int = 0
    """The number of states outside of the bound (`System(within=…)`). They were checked, but not expanded; `states` does not
    count them."""
    local_states: int = 0
    """The number of distinct local states of processes and monitors."""
    local_bytes: int = 0
    """Size of the local states with the contents of their fields, in bytes."""

    @property
    def states_per_second(self) -> float:
        return self.states / self.seconds if self.seconds > 0 else 0.0

    @property
    def questions(self) -> int:
        """The number of questions about the model that were answered, by the virtual machine or by Python."""
        return self.native_answers + self.python_calls - self.native_compared

    @property
    def native_share(self) -> float:
        """The share of the questions that the virtual machine answered."""
        return self.native_answers / self.questions if self.questions else 0.0

    @property
    def bytes_per_local_state(self) -> float:
        return self.local_bytes / self.local_states if self.local_states else 0.0


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
    """Statistics of the search: states, transitions, depth, seconds and more."""
    properties: list[PropertyResult]
    """The result for each property."""
    model: str = ""
    """The target, or the name of the System if it was made in Python."""
    property: str | None = None
    """The violated property, if there is one."""
    message: str | None = None
    """What is wrong, in a sentence."""
    bound: str | None = None
    """None if the whole state space was searched, else the limit that was reached, or the bound of the System if states
    outside of it were not expanded."""
    trace: Trace | None = None
    """The counterexample, if there is one."""
    warnings: list[str] = []
    """Warnings for the user, for example about a handler that never ran."""
    coverage: Coverage | None = None
    """The coverage, if it was requested."""
    phases: PhaseStructure | None = None
    """The rounds of a phase, if the protocol was checked by rounds."""

    def __bool__(self) -> bool:
        return self.status == "holds"

    @builtins.property
    def limit(self) -> str | None:
        """The limit that ended the search before it was complete; None if there was none.

        A search that is bounded by its System (`within`), or that has shown nothing, was complete.
        """
        complete = self.bound is None or self.bound in VACUOUS or self.bound.split()[0] == "within"
        return None if complete else self.bound

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
            "cut_states": s.cut_states,
            "transitions": s.transitions,
            "terminal_states": s.terminal_states,
            "depth": s.depth,
            "seconds": s.seconds,
            "states_per_second": s.states_per_second,
            "python_calls": s.python_calls,
            "native_answers": s.native_answers,
            "native_compared": s.native_compared,
            "native_share": s.native_share,
            "local_states": s.local_states,
            "bytes_per_local_state": s.bytes_per_local_state,
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
            "properties": [msgspec.to_builtins(p) for p in self.properties],
            "warnings": self.warnings,
            "coverage": msgspec.to_builtins(self.coverage),
            "trace": msgspec.to_builtins(self.trace) if self.trace is not None else None,
        }

    @classmethod
    def unfinished(
        cls, model: str, bound: str, where: str, *, search: str, seconds: float, properties: list[PropertyResult]
    ) -> Verdict:
        """The verdict of an analysis that a limit ended before its search began: nothing is known."""
        nothing = Statistics(
            states=0,
            transitions=0,
            terminal_states=0,
            depth=0,
            seconds=seconds,
            python_calls=0,
            search=search,
            workers=1,
        )
        message = f"stopped: {bound}, {where}"
        return cls("inconclusive", nothing, properties, model=model, message=message, bound=bound)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the verdict to a file: a report (.html), the text of `print` (.txt) or JSON (.json).

        >>> from pathlib import Path
        >>> from plait import check
        >>> from plait.protocols.ping_pong import ping_pong
        >>> check(ping_pong()).save("report.html")
        >>> Path("report.html").read_text()[:15]
        '<!DOCTYPE html>'
        """
        renderer().save(self, path)

    def widget(self) -> Any:
        """A widget for a notebook: the HTML report, to step through its runs in the cell.

        It needs the package anywidget: `pip install 'plait[notebook]'`.

        >>> from plait import check
        >>> from plait.protocols.ping_pong import ping_pong
        >>> check(ping_pong()).widget()
        <RunWidget of <Verdict HOLDS in ping_pong: 11 states>>
        """
        return renderer().widget(self)

    def __repr__(self) -> str:
        """One line. `str(verdict)` is the whole text."""
        subject = f" {self.property}" if self.property and self.status == "violated" else ""
        model = f" in {self.model}" if self.model else ""
        run = f", counterexample of {len(self.trace)} steps" if self.trace is not None and subject else ""
        bound = f", {self.bound}" if self.bound else ""
        return one_line(
            f"<Verdict {self.status.upper()}{subject}{model}: {self.statistics.states:,} states{run}{bound}>"
        )

    def __str__(self) -> str:
        return renderer().text(self)

    def _repr_html_(self) -> str:
        return renderer().html(self)


# -- logs of implementations --------------------------------------------------------------------------------------

_CONFORMANCE_CODES = {"conforms": 0, "deviates": 1, "violated": 1, "inconclusive": 3}


class Candidate(msgspec.Struct, frozen=True):
    """A step that might explain an event, and what forbids it."""

    step: str
    forbids: list[str]


class Unexplained(msgspec.Struct, frozen=True):
    """An event that comes next after a longest explained beginning of the log, and that no step explains."""

    place: str
    """File and line."""
    process: str
    event: str
    """What the event says, in one line."""
    candidates: list[Candidate]
    waits: str | None = None
    """It may only be a consequence: the process whose unexplained events may have to come first."""


class LoggedStep(msgspec.Struct, frozen=True):
    """A step of the run that explains the log."""

    number: int
    """Counted from 1."""
    process: str
    label: str
    events: list[str]
    """The places of the events that it explains. Empty: the log leaves the step out."""


class Deviation(msgspec.Struct, frozen=True):
    """A property that is violated along the run."""

    property: str
    step: int
    """After how many steps."""
    message: str | None = None


class HandlerUse(msgspec.Struct, frozen=True):
    """How many steps of the run were of a handler."""

    role: str
    name: str
    steps: int


class Conformance(msgspec.Struct, frozen=True):
    """The result of `plait conform`."""

    target: str
    log: str
    status: Literal["conforms", "violated", "deviates", "inconclusive"]
    """violated: a run explains the log, and violates a property of the model."""
    bound: str | None
    """The limit that ended the search."""
    events: int
    explained: int
    """How many events the run explains. If this is not all, no run was found that explains more."""
    steps: int
    free: int
    """Steps of the run that no event names."""
    states: int
    transitions: int
    seconds: float
    handlers: list[HandlerUse]
    violations: list[Deviation] = []
    unexplained: list[Unexplained] = []
    """For the longest explained beginning; root causes first."""
    others: int = 0
    """How many other beginnings of the same length were found."""
    last: list[LoggedStep] = []
    """The last steps of the run."""
    skipped: int = 0
    """How many steps come before them."""
    trace: Trace | None = None
    """The last steps of the run with their states."""
    coverage: Coverage | None = None

    @property
    def trace_start(self) -> int:
        """The number of the first step of the trace, counted from 1."""
        return self.steps - (len(self.trace.events) if self.trace is not None else 0) + 1

    @property
    def exit_code(self) -> int:
        """0: conforms, 1: does not conform, or violates a property, 3: inconclusive."""
        return _CONFORMANCE_CODES[self.status]
