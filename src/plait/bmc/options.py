"""The options of a search: how deep, by which encodings, with which limits."""

from __future__ import annotations

import time
from typing import Literal, NamedTuple

import msgspec

Encoding = Literal["auto", "steps", "clock", "explicit"]
Projection = Literal["auto", "on", "off"]
Solver = Literal["z3", "bitwuzla", "cvc5"]


class Options(msgspec.Struct, frozen=True):
    """How to search. All of it can be sent to another process."""

    depth: int | None = None
    """The maximal number of steps of a run. None: any."""
    encoding: Encoding = "auto"
    projection: Projection = "auto"
    order: bool = True
    """Whether independent neighbouring steps have one order (encoding `steps`)."""
    width: int | None = None
    """The number of bits of numbers without a type. None: mathematical integers."""
    induction: bool = False
    solver: Solver = "z3"
    cover: bool = True
    """Whether to find out if longer runs exist."""
    seed: int = 0
    """The random seed of the solver."""
    shortest: bool = False
    """Whether a run that decides a property must be a shortest one."""


class Limits(NamedTuple):
    """The limits of time and memory."""

    deadline: float | None = None
    """In seconds of `time.monotonic`."""
    memory: int | None = None
    """In bytes."""

    @property
    def left(self) -> float | None:
        """Seconds until the deadline."""
        return None if self.deadline is None else max(0.05, self.deadline - time.monotonic())

    @property
    def over(self) -> bool:
        """Whether the deadline has passed."""
        return self.deadline is not None and time.monotonic() > self.deadline
