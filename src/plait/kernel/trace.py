"""A Trace: lanes, events on lanes with what they read, wrote, sent and received, and an optional loop.

Counterexamples, bounded counterexamples, recorded executions and replicated histories are all Traces, so that one viewer,
one JSON and one space-time diagram serve every room. A Trace is plain data: it knows nothing of the model it came from.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from plait.kernel.rendering import renderer
from plait.kernel.values import Data

EventKind = Literal["step", "lose", "duplicate", "crash", "recover"]


class Lane(msgspec.Struct, frozen=True):
    """One vertical line of the diagram: a process, a thread, a server."""

    name: str
    role: str


class Sent(msgspec.Struct, frozen=True):
    """One message instance. `id` is unique within the trace, so that an arrow can join its send to its receipt."""

    id: int
    type: str
    fields: dict[str, Data]
    sender: str
    receiver: str


class Snapshot(msgspec.Struct, frozen=True):
    """The whole system between two events."""

    fields: dict[str, dict[str, Data]]
    """Per lane, its fields."""
    pending: dict[str, list[int]] = {}
    """Per lane, the ids of the messages that wait in its inbox."""
    monitors: dict[str, Data] = {}
    status: dict[str, str] = {}
    """Lanes that are not simply running: 'crashed', 'down' or 'unborn'."""
    budgets: dict[str, int] = {}
    """Faults that may still happen."""


class Event(msgspec.Struct, frozen=True):
    """Something that happened on a lane, and the state after it."""

    lane: str
    kind: EventKind
    label: str
    """The handler's name, or what the network or the environment did."""
    state: Snapshot
    consumed: list[int] = []
    """Ids of the messages this event took (several for a quorum transition)."""
    sent: list[int] = []
    announced: list[Data] = []
    choices: list[Data] = []
    spawned: list[str] = []
    read: list[str] = []
    changed: dict[str, tuple[Data, Data]] = {}
    """Per field of this lane that changed: before and after."""
    note: str | None = None


class Mark(msgspec.Struct, frozen=True):
    """A boundary in a run, such as the start of a round."""

    before: int
    """The number of events before it."""
    label: str
    lost: list[int] = []
    """Ids of the messages that are given up here: no event after it takes them."""


class Clause(msgspec.Struct, frozen=True):
    """A part of a property, and its value."""

    text: str
    value: str


class Read(msgspec.Struct, frozen=True):
    """Something that a property read, and the index of the event that wrote it last; None if none did."""

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
    """Indices of the events that have a part in it."""


class Trace(msgspec.Struct, frozen=True):
    """A run of the system, from its initial state."""

    target: str
    """What to give to `plait check` to get the model again."""
    parameters: dict[str, Data]
    property: str | None
    lanes: list[Lane]
    messages: list[Sent]
    initial: Snapshot
    events: list[Event]
    loop: int | None = None
    """Index of the event that the run goes back to, for a lasso."""
    explanation: str | None = None
    marks: list[Mark] = []
    tidied: str | None = None
    """How this run differs from the one that was found: steps left out, steps in another order."""
    why: Why | None = None

    def __len__(self) -> int:
        return len(self.events)

    def __str__(self) -> str:
        return renderer().text(self)

    def _repr_html_(self) -> str:
        return renderer().html(self)
