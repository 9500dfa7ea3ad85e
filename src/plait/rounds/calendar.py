"""The calendar: the rounds of all phases as numbers, and the clock of a process (Sequentialization, section 4.2).

The rounds of all phases are numbered: round r (from 0) of phase p, with R rounds per phase, is *place* (p - 1) R + r + 1.
Place 0 is before the first round. A process has a ghost *clock*, which the user does not write. It is 2 t after a send in
place t, and 2 t + 1 after a receipt. So the conditions of section 4.2 become comparisons (docs/reference/rounds.md):

- a step that consumes messages of place t needs a clock of at most 2 t + 1, and sets it to that;
- a step that sends messages of place u needs a clock of at most 2 u, and sets it to the largest of these.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable
from typing import Any

from plait.kernel.errors import ModelError, UsageError
from plait.kernel.places import place
from plait.model.message import Message
from plait.model.process import Handler
from plait.model.system import System
from plait.model.tag import tag_of


@dataclasses.dataclass(frozen=True)
class Breach:
    """A condition of section 4.2 that a step breaks."""

    condition: int
    """1 to 5 as in the paper; 6 is at most one message per pair of processes and round (section 5.1)."""
    what: str


NAMES = {1: "monotone", 2: "stamped", 3: "guards", 4: "reads", 5: "parts", 6: "pairs"}
"""One word for each condition."""
CONDITIONS = {
    1: "phase and round never decrease",
    2: "messages are sent with the current phase and round, or later ones",
    3: "guards accept only messages of the current round or later",
    4: "a step reads messages of one round only",
    5: "a process sends nothing in a round after it received in this round",
    6: "a process sends another process at most one message in a round",
}


class Calendar:
    """The rounds of a System as numbers."""

    def __init__(self, system: System) -> None:
        if not system.rounds:
            hint = 'decorate its messages with @tagged(phase="…", round="…") and give System(..., rounds=[…])'
            if system.target is not None and ".distal" in system.target:
                hint = "say which field is the phase: type Ack = struct { phase int ballot; … }"
            raise UsageError(f"{system.name} declares no rounds", hint=hint)
        self.rounds = system.rounds

    def place(self, message: Message) -> int:
        """The place of a message's tag."""
        tag = tag_of(type(message))
        if tag is None or tag.round not in self.rounds:
            raise ModelError(
                f"{type(message).__name__} belongs to none of the rounds: {', '.join(self.rounds)}",
                hint=f'decorate {type(message).__name__} with @tagged(phase="…", round="…")',
            )
        phase = tag.phase_of(message)
        if isinstance(phase, bool) or not isinstance(phase, int) or phase < 1:
            raise ModelError(
                f"{message!r} has phase {phase!r}",
                hint="phases are whole numbers from 1",
            )
        return (phase - 1) * len(self.rounds) + self.rounds.index(tag.round) + 1

    def name(self, place: int) -> str:
        """A place in words: `phase 2, round Ack`."""
        if place == 0:
            return "before phase 1"
        phase, number = divmod(place - 1, len(self.rounds))
        return f"phase {phase + 1}, round {self.rounds[number]}"

    def last(self, phases: int) -> int:
        """The last place of a number of phases."""
        return phases * len(self.rounds)

    def consumed(self, clock: int, places: Iterable[int]) -> tuple[int, Breach | None]:
        """The clock after a step that consumed messages of these places, and the condition that the step breaks."""
        found = sorted(set(places))
        if len(found) > 1:
            what = f"reads messages of {' and of '.join(self.name(t) for t in found)} in one step"
            return 2 * found[-1] + 1, Breach(4, what)
        for t in found:
            if 2 * t + 1 < clock:
                what = f"takes a message of {self.name(t)}, although the process is already in {self.name(clock // 2)}"
                return clock, Breach(3, what)
            clock = 2 * t + 1
        return clock, None

    def sent(self, clock: int, places: Iterable[int]) -> tuple[int, Breach | None]:
        """The clock after a step that sent messages of these places, and the condition that the step breaks."""
        latest = clock
        for u in places:
            if 2 * u < clock:
                if 2 * u == clock - 1:
                    return clock, Breach(5, f"sends a message of {self.name(u)} after a receipt in that round")
                number = 1 if (u - 1) // len(self.rounds) < (clock // 2 - 1) // len(self.rounds) else 2
                what = f"sends a message of {self.name(u)}, although the process is already in {self.name(clock // 2)}"
                return clock, Breach(number, what)
            latest = max(latest, 2 * u)
        return latest, None


def where(cls: type[Any], handler: Handler) -> str:
    """A handler and its line: `Replica.prepare (paxos.py:31)`."""
    return f"{cls.__name__}.{handler.name}{line_of(handler)}"


def line_of(handler: Handler) -> str:
    """The file and line of a handler, in parentheses."""
    function = inspect.unwrap(handler.function)
    code = getattr(function, "__code__", None)
    if code is None:
        return ""
    return f" ({place(code.co_filename, code.co_firstlineno)})"
