"""A System as the virtual machine needs to know it. The native engine reads the attributes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from plait.ir.lower import FunctionReport


@dataclasses.dataclass(frozen=True)
class NativeHandler:
    """What is known of a handler without running it."""

    trigger: tuple[str, int | None]
    """Its kind, and how many messages it takes at least (None: this depends on the local state)."""
    most: int | None
    """How many messages it takes at most (None: as many as at least)."""
    distinct: bool
    """Its messages have different senders."""
    accepts: bool
    """It has a guard over whole sets of messages."""
    guarded: bool
    foreseeable: bool
    """Its guard uses the message only to read its attributes."""
    same: Sequence[str]


@dataclasses.dataclass(frozen=True)
class NativeSystem:
    """A System for the virtual machine."""

    program: bytes
    handlers: Sequence[Sequence[NativeHandler]]
    """By process class."""
    classes: Sequence[int]
    """By process: its class."""
    volatile: Sequence[Sequence[tuple[int, bytes]]]
    """By process: the fields that a crash with recovery resets, with their first content."""
    messages: Mapping[str, Sequence[str]]
    """By class of messages that form quorums: its fields."""
    triggered: Mapping[str, Sequence[Sequence[Sequence[int]]]]
    """By class of messages, class of the receiver and class of the sender: the handlers that they are for."""
    foresee: bool
    """Leave handlers out that no message can trigger."""
    functions: Sequence[FunctionReport]
    """Which functions run natively; why the others do not."""

    @property
    def any(self) -> bool:
        """Whether some function runs natively."""
        return any(function.reason is None for function in self.functions)
