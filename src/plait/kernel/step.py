"""A deed: as much of a step as tells it apart from the others that could be taken. Who has only that has it executed."""

from __future__ import annotations

import msgspec

from plait.kernel.trace import EventKind
from plait.kernel.values import Data


class Deed(msgspec.Struct, frozen=True):
    """What a process does next: its handler, the messages that it takes, and what it chooses."""

    lane: str
    label: str
    kind: EventKind = "step"
    consumed: list[tuple[str, str, dict[str, Data]]] = []
    """Sender, type and fields."""
    choices: list[Data] = []
    place: int = 0
    """The round, counted through all phases; 0 where there are none."""
