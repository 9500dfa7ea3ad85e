"""A Step: a transition taken in a run, described by what tells it apart from the others that a state has.

This is enough to re-execute the step (`plait.check` does so), and needs neither the model nor the engine.
"""

from __future__ import annotations

import msgspec

from plait.kernel.trace import EventKind, Trace
from plait.kernel.values import Data


class Step(msgspec.Struct, frozen=True):
    """What a process does next: its handler, the messages that it consumes, and what it chooses."""

    lane: str
    label: str
    kind: EventKind = "step"
    consumed: list[tuple[str, str, dict[str, Data]]] = []
    """Sender, type and fields."""
    choices: list[Data] = []
    place: int = 0
    """The round, counted through all phases; 0 if the model has no rounds."""


def steps_of(trace: Trace) -> list[Step]:
    """The steps of a saved run."""
    messages = {m.id: (m.sender, m.type, m.fields) for m in trace.messages}
    return [
        Step(event.lane, event.label, event.kind, [messages[i] for i in event.consumed], event.choices)
        for event in trace.events
    ]
