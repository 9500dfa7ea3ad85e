"""A Step: a transition taken in a run. Its description distinguishes it from the other transitions of the state.

This is enough to re-execute the step (`plait.check` does so), and needs neither the model nor the engine.
"""

from __future__ import annotations

import msgspec

from plait.kernel.trace import EventKind, Trace
from plait.kernel.values import Data


class Step(msgspec.Struct, frozen=True):
    """A step of a process: the handler, the messages that it consumes, and its choices."""

    lane: str
    label: str
    kind: EventKind = "step"
    consumed: list[tuple[str, str, dict[str, Data]]] = []
    """Sender, type and fields of each message."""
    choices: list[Data] = []
    place: int = 0
    """The number of the round, counted over all phases. 0 if the model has no rounds."""


def steps_of(trace: Trace) -> list[Step]:
    """The steps of a saved run."""
    messages = {m.id: (m.sender, m.type, m.fields) for m in trace.messages}
    return [
        Step(event.lane, event.label, event.kind, [messages[i] for i in event.consumed], event.choices)
        for event in trace.events
    ]
