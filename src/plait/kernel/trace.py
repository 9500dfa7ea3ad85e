"""A Trace: lanes, events on lanes with what they read, wrote, sent and received, and an optional loop.

Counterexamples, bounded counterexamples, recorded executions and replicated histories are all Traces. So one viewer,
one JSON format and one space-time diagram serve every room. A Trace is plain data, and independent of its model.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from plait.kernel.rendering import renderer
from plait.kernel.values import Data

EventKind = Literal["step", "lose", "duplicate", "crash", "recover", "tick"]
TIME = "time"
"""The lane of ticks that all processes share. A trace does not list it among its lanes."""


def one_line(raw: str) -> str:
    """A text in one line, whatever the names in it are."""
    return " ".join(raw.split())


def for_whom(violators: Sequence[Sequence[str]]) -> str:
    """Processes or pairs of processes, as a part of a sentence. Empty if there are none.

    >>> for_whom([["Node0", "Node1"], ["Node0", "Node2"]])
    ' for Node0 and Node1; Node0 and Node2'
    """
    return f" for {'; '.join(map(' and '.join, violators))}" if violators else ""


class Lane(msgspec.Struct, frozen=True, omit_defaults=True):
    """A vertical line of the diagram: a process, a thread, a server, or an object that they share."""

    name: str
    role: str
    shared: bool = False
    """A shared object: steps of other lanes read and write its fields."""


class Sent(msgspec.Struct, frozen=True):
    """A message instance. Its `id` is unique in the trace, so that an arrow can connect send and receipt."""

    id: int
    type: str
    fields: dict[str, Data]
    sender: str
    receiver: str


class Picture(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a `@view` drew of a state: SVG, or why there is no picture."""

    svg: str | None = None
    error: str | None = None
    note: str | None = None
    """What was removed from it, if anything was."""


class Snapshot(msgspec.Struct, frozen=True):
    """The state of the whole system between two events."""

    fields: dict[str, dict[str, Data]]
    """For each lane, its fields."""
    pending: dict[str, list[int]] = {}
    """For each lane, the ids of its pending messages."""
    monitors: dict[str, Data] = {}
    status: dict[str, str] = {}
    """The lanes that are not running: 'crashed', 'down' or 'unborn'."""
    budgets: dict[str, int] = {}
    """The number of faults that may still happen, by kind."""
    views: dict[str, Picture] | msgspec.UnsetType = msgspec.UNSET
    """For each view of the model, its picture. A state of a model without views has no such part, also in JSON."""


class Place(msgspec.Struct, frozen=True):
    """A line of the user's source."""

    file: str
    line: int


class Event(msgspec.Struct, frozen=True):
    """The record of a step on a lane, with the state after it."""

    lane: str
    kind: EventKind
    label: str
    """The name of the handler, or what the network or the environment did."""
    state: Snapshot
    consumed: list[int] = []
    """The ids of the messages that this event took (several for a quorum transition)."""
    sent: list[int] = []
    announced: list[Data] = []
    choices: list[Data] = []
    spawned: list[str] = []
    read: list[str] = []
    """Fields of this lane, and fields of shared objects with the name of their lane: `Store0.value`."""
    changed: dict[str, tuple[Data, Data]] = {}
    """For each field of this lane that changed: the values before and after. On the lane `TIME`, and of shared objects:
    `lane.field`. If `values` is known, also a field of a shared object that was written and keeps its value."""
    note: str | None = None
    abstract: str | None = None
    """The step of the abstract system that this step maps to, for a refinement."""
    values: dict[str, Data] | msgspec.UnsetType = msgspec.UNSET
    """For each field of a shared object in `read`, the value that was read. An event of a model has no such part."""
    place: Place | msgspec.UnsetType = msgspec.UNSET
    """The statement of this step, whose text is the label. An event of a model has no such part."""


class Mark(msgspec.Struct, frozen=True):
    """A boundary in a run, such as the start of a round."""

    before: int
    """The number of events before it."""
    label: str
    lost: list[int] = []
    """The ids of the messages that are lost here: no later event takes them."""


class Clause(msgspec.Struct, frozen=True):
    """A part of a property, and its value."""

    text: str
    value: str


class Read(msgspec.Struct, frozen=True):
    """A value that a property read, and the index of the event that wrote it last. None: it has its initial value."""

    lane: str
    field: str | None
    """None for a monitor as a whole."""
    value: Data
    step: int | None


class Why(msgspec.Struct, frozen=True):
    """Why a property has its value in the last state."""

    clauses: list[Clause]
    reads: list[Read]
    steps: list[int]
    """The indices of the events that are involved."""


class Wait(msgspec.Struct, frozen=True):
    """Why a handler cannot run in the last state; with None for the handler, why the whole process takes no step."""

    lane: str
    handler: str | None
    reason: str


class Frame(msgspec.Struct, frozen=True):
    """A call in a traceback: a line of the user's code."""

    file: str
    line: int
    function: str
    code: str = ""
    """The text of the line, if the file can be read."""
    column: int | None = None
    """The column in the line, if the text was translated from another language."""


class Raised(msgspec.Struct, frozen=True):
    """An exception of the user's code, with the part of its traceback that is in the user's code, outermost first."""

    where: str
    """The handler, guard, property or monitor that was executed."""
    type: str
    message: str
    frames: list[Frame] = []


class Trace(msgspec.Struct, frozen=True):
    """A run of the system, from an initial state."""

    target: str
    """The target of `plait check` for the model."""
    parameters: dict[str, Data]
    property: str | None
    lanes: list[Lane]
    messages: list[Sent]
    initial: Snapshot
    events: list[Event]
    chosen: dict[str, list[Data]] = {}
    """For each lane whose `@init` methods choose, what they chose. It says which initial state the run begins with."""
    loop: int | None = None
    """For a lasso, the index of the event to which the run goes back."""
    explanation: str | None = None
    marks: list[Mark] = []
    tidied: str | None = None
    """How this run differs from the run that the search found: steps left out, steps in another order."""
    why: Why | None = None
    exception: Raised | None = None
    """The exception that ends the run, for the property `no_exceptions`."""
    waiting: list[Wait] = []
    """Who waits for what in the last state, for `deadlock_free`; for a refinement, why no abstract step is possible."""
    violators: list[list[str]] = []
    """The processes, or pairs of processes, for which the property is false in the last state, if it is a property of
    each process or of pairs."""
    abstract: str | None = None
    """For a refinement, the name of the abstract state in the `monitors` of each snapshot."""

    def __len__(self) -> int:
        return len(self.events)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trace to a file.

        The suffix decides: .itf.json or .json for `plait replay` and viewers of ITF, .svg for the space-time diagram,
        .html for a page to step through the run, .txt for the text of `print`.

        >>> from pathlib import Path
        >>> from plait import check
        >>> from plait.protocols.paxos import paxos
        >>> check(paxos(faulty="acceptor")).trace.save("run.svg")
        >>> Path("run.svg").read_text()[:4]
        '<svg'
        """
        renderer().save(self, path)

    def widget(self) -> Any:
        """A widget for a notebook: the viewer of the HTML report, to step through the run in the cell.

        It needs the package anywidget: `pip install 'plait[notebook]'`.

        >>> from plait import check
        >>> from plait.protocols.paxos import paxos
        >>> check(paxos(faulty="acceptor")).trace.widget()
        <RunWidget of <Trace for agreement: 14 steps>>
        """
        return renderer().widget(self)

    def __repr__(self) -> str:
        """One line. `str(trace)` is the whole text."""
        what = f" for {self.property}" if self.property is not None else ""
        loop = "" if self.loop is None else f", back to step {self.loop + 1}"
        model = f" of {self.target}" if self.target else ""
        return one_line(f"<Trace{what}{model}: {len(self)} steps{loop}>")

    def __str__(self) -> str:
        return renderer().text(self)

    def _repr_html_(self) -> str:
        return renderer().html(self)
