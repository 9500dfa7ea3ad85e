"""Coverage: what of a model a search has exercised, to see why a property holds. Plain data, part of a Verdict."""

from __future__ import annotations

from typing import Literal

import msgspec


class HandlerCoverage(msgspec.Struct, frozen=True):
    """How often a handler ran."""

    role: str
    name: str
    steps: int
    """Different steps: of a process in one local state, with certain messages."""
    reason: str | None = None
    """Why it never ran."""


class Branch(msgspec.Struct, frozen=True):
    """A condition in a guard or a handler: whether it was ever true, and ever false."""

    role: str
    handler: str
    part: Literal["guard", "body"]
    text: str
    line: int | None
    true: bool
    false: bool
    implied: bool = False
    """An operand of which the same is said as of the whole."""

    @property
    def missing(self) -> str | None:
        """What it never was.

        >>> Branch("Node", "vote", "guard", "self.n > 0", 3, True, False).missing
        'never false'
        """
        if self.true and self.false:
            return None
        return "never true" if self.false else "never false" if self.true else "never evaluated"


class MessageCoverage(msgspec.Struct, frozen=True):
    """Where messages of a type went."""

    type: str
    sent_to: list[str]
    """Roles that were sent one."""
    taken_by: list[str]
    """Roles that took one."""


class FieldCoverage(msgspec.Struct, frozen=True):
    """Who read a field of a process, or of a message."""

    role: str
    """Or the type of the message."""
    name: str
    read_by: list[str]
    """Handlers, guards and properties."""
    matters: bool
    """False if it is read, but nothing that can be observed depends on it."""


class Untested(msgspec.Struct, frozen=True):
    """A condition in a property because of which a part of it was never evaluated."""

    property: str
    text: str
    reason: str
    vacuous: bool
    """Then nothing is left that the property asks for."""


class Coverage(msgspec.Struct, frozen=True):
    """What a search has exercised."""

    over: str
    """The states that this is about."""
    handlers: list[HandlerCoverage]
    branches: list[Branch]
    messages: list[MessageCoverage]
    fields: list[FieldCoverage]
    untested: list[Untested]
