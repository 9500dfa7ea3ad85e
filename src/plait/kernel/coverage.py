"""Coverage: which parts of a model a search exercised, to see why a property holds. Plain data in a Verdict."""

from __future__ import annotations

from typing import Literal

import msgspec


class HandlerCoverage(msgspec.Struct, frozen=True):
    """How often a handler ran."""

    role: str
    name: str
    steps: int
    """The number of different steps. Steps differ in the local state of the process or in the messages taken."""
    reason: str | None = None
    """Why it never ran."""


class Branch(msgspec.Struct, frozen=True):
    """A condition in a guard or a handler: whether it was ever true, and ever false."""

    role: str
    handler: str
    part: Literal["guard", "accept", "body"]
    text: str
    line: int | None
    true: bool
    false: bool
    implied: bool = False
    """Whether it is an operand whose result follows from the result of the whole condition."""

    @property
    def missing(self) -> str | None:
        """The value that it never had.

        >>> Branch("Node", "vote", "guard", "self.n > 0", 3, True, False).missing
        'never false'
        """
        if self.true and self.false:
            return None
        return "never true" if self.false else "never false" if self.true else "never evaluated"


class MessageCoverage(msgspec.Struct, frozen=True):
    """Which roles were sent messages of a type, and which took them."""

    type: str
    sent_to: list[str]
    """The roles that were sent such a message."""
    taken_by: list[str]
    """The roles that took such a message."""


class FieldCoverage(msgspec.Struct, frozen=True):
    """Which parts of the model read a field of a process or of a message."""

    role: str
    """The role of the process, or the type of the message."""
    name: str
    read_by: list[str]
    """The handlers, guards and properties that read it."""
    matters: bool
    """False if it is read, but without an observable effect."""


class Untested(msgspec.Struct, frozen=True):
    """A condition in a property that kept another part of the property from being evaluated."""

    property: str
    text: str
    reason: str
    vacuous: bool
    """Whether the property holds vacuously: no part that can be false was evaluated."""


class Exit(msgspec.Struct, frozen=True):
    """Where a search left its bound (`System(within=…)`)."""

    role: str | None
    """None: initial states are outside."""
    handler: str | None
    """None: by a fault."""
    states: int
    """The number of states outside that were met first by such a step."""


class Coverage(msgspec.Struct, frozen=True):
    """Which parts of a model a search exercised."""

    over: str
    """The states that were searched, as text."""
    handlers: list[HandlerCoverage]
    branches: list[Branch]
    messages: list[MessageCoverage]
    fields: list[FieldCoverage]
    untested: list[Untested]
    exits: list[Exit] = []
