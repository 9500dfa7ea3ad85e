"""A ProtocolStep: a step of the protocol, as the sequential program chooses it.

The program offers the steps that are possible to `choose`, so each run of the program carries the steps of the protocol as
typed values. `plait.rounds.protocol_run` collects them again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from plait.kernel.pid import Pid
from plait.kernel.step import Step
from plait.kernel.values import Data, to_data
from plait.model.message import Message

CRASH = "crash"
Heard = tuple[tuple[Pid, Message], ...]
"""Messages with their senders, sorted by sender."""


@dataclasses.dataclass(frozen=True)
class ProtocolStep:
    """One step of the protocol: a handler, the messages that it consumes, and its choices."""

    place: int
    """The round, counted through all phases."""
    part: int
    """0 in the SEND part of the round, 1 in its UPDATE part."""
    handler: str
    """The name of the handler, or `crash`."""
    consumed: Heard = ()
    choices: tuple[Any, ...] = ()

    @property
    def key(self) -> tuple[int, int]:
        """Where the step belongs in the order of the rounds."""
        return self.place, self.part

    def taken_by(self, lane: str, further_choices: Sequence[object] = ()) -> Step:
        """The step of one process, with the choices that its handler made while it ran."""
        if self.handler == CRASH:
            return Step(lane, CRASH, "crash", place=self.place)
        consumed = [(repr(sender), type(message).__name__, _fields(message)) for sender, message in self.consumed]
        choices = [to_data(choice) for choice in (*self.choices, *further_choices)]
        return Step(lane, self.handler, "step", consumed, choices, self.place)


def _fields(message: Message) -> dict[str, Data]:
    names = [field.name for field in dataclasses.fields(message)]  # each subclass is a dataclass
    return {name: to_data(getattr(message, name)) for name in names}
