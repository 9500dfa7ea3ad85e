"""How many messages a quorum transition consumes, and whose."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from plait.kernel.errors import ModelError

if TYPE_CHECKING:
    from plait.model.process import Process

MANY = 0xFFFF
"""As the largest number of messages of a step: any number."""


@dataclasses.dataclass(frozen=True)
class Quorum:
    """How many messages a quorum transition consumes, and which role sends them."""

    role: type[Process]
    size: int | Literal["majority", "all"]

    def resolve(self, members: int) -> int:
        if self.size == "majority":
            return members // 2 + 1
        return members if self.size == "all" else self.size

    def __str__(self) -> str:
        return f"{self.size} of {self.role.__name__}"


def majority(role: type[Process]) -> Quorum:
    """More than half of the processes of a role."""
    return Quorum(role, "majority")


def everyone(role: type[Process]) -> Quorum:
    """All processes of a role."""
    return Quorum(role, "all")


def some(size: int, role: type[Process]) -> Quorum:
    """A fixed number of processes of a role."""
    return Quorum(role, size)


Size = Quorum | int | Callable[[Any], int]
"""A number of messages: fixed, of a role, or a function of the process."""


@dataclasses.dataclass(frozen=True)
class AtLeast:
    """Sets of several sizes: this size, and all larger ones up to `most`."""

    size: Size
    most: int | None = None

    def __str__(self) -> str:
        most = "" if self.most is None else f", at most {self.most}"
        return f"at least {getattr(self.size, '__name__', self.size)}{most}"


def at_least(size: Size, *, most: int | None = None) -> AtLeast:
    """This number of messages or more, up to `most`. `at_least(1)` stands for sets of any size.

    The step may consume every such set of pending messages. `accept=` can allow fewer.

        @on(Vote, quorum=at_least(1), accept=lambda self, ms: sum(m.weight for m in ms) > 5)
    """
    if isinstance(size, AtLeast) or not (isinstance(size, Quorum | int) or callable(size)):
        raise ModelError(
            f"at_least({size!r}): expected a number, majority(Role) or a function of the process",
            hint="for example at_least(2), at_least(majority(Acceptor)) or at_least(lambda self: self.needed)",
        )
    check_size("at_least", size)
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
        raise ModelError(f"at_least(…, most={most!r}): expected a number of messages", hint="for example most=3")
    if most is not None and isinstance(size, int) and most < size:
        raise ModelError(f"at_least({size}, most={most}): no set has this size", hint="give most= a larger number")
    return AtLeast(size, most)


def check_size(place: str, size: Any) -> None:
    """Refuse what is no number of messages, or a number below 1."""
    if isinstance(size, bool) or (isinstance(size, int) and size < 1):
        raise ModelError(f"{place}: quorum={size!r}: expected 1 or more", hint="for example quorum=2")
    if not (size is None or isinstance(size, int | Quorum) or callable(size)):
        raise ModelError(
            f"{place}: quorum={size!r}: expected a number, a quorum or a function of the process",
            hint="for example quorum=2, quorum=majority(Acceptor) or quorum=lambda self: self.needed",
        )
