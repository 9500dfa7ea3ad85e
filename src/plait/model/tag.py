"""Synchronization tags: which phase and which round a message belongs to (Sequentialization, Definition 1).

    @tagged(phase="ballot", round="Prepare")
    class Prepare(Message):
        ballot: int

    System(..., rounds=["Prepare", "Ack", "Propose", "Promise"])

The tag of a message is the value of its phase field, and its round. The System gives the order of the rounds. No other
annotation is needed: `plait.rounds` derives the round of a process from the messages that it sends and receives.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from plait.kernel.errors import ModelError
from plait.model.message import Message

M = TypeVar("M", bound=type[Message])

_MARK = "__plait_tag__"


@dataclasses.dataclass(frozen=True)
class Tag:
    """The declaration of a message class: the field with its phase (or a constant phase), and its round."""

    phase: str | int
    round: str

    def phase_of(self, message: Message) -> Any:
        """The phase of a message."""
        return getattr(message, self.phase) if isinstance(self.phase, str) else self.phase


def tagged(*, phase: str | int | None = None, round: str) -> Callable[[M], M]:  # noqa: A002 the paper's word
    """Declare the phase and the round of the messages of a class.

    `phase` is the name of the field with the phase, a whole number. A protocol with a single phase gives a constant, or
    leaves `phase` out.

    >>> @tagged(phase="ballot", round="Ack")
    ... class Ack(Message):
    ...     ballot: int
    >>> tag_of(Ack).phase_of(Ack(3))
    3
    """
    if not isinstance(round, str) or not round:
        raise ModelError(
            f"@tagged(round={round!r}): expected the name of a round", hint='write @tagged(phase="ballot", round="Ack")'
        )
    if isinstance(phase, bool) or not (phase is None or isinstance(phase, str | int)):
        raise ModelError(
            f"@tagged(phase={phase!r}): expected the name of a field, a whole number, or None",
            hint='write @tagged(phase="ballot", round="Ack")',
        )

    def decorate(message: M) -> M:
        if not (isinstance(message, type) and issubclass(message, Message)):
            raise ModelError(
                f"@tagged decorates {message!r}, which is not a Message class", hint="class Ack(Message): …"
            )
        known = [f.name for f in dataclasses.fields(message)]
        if isinstance(phase, str) and phase not in known:
            raise ModelError(
                f"@tagged(phase={phase!r}): {message.__name__} has no field {phase!r}",
                hint=f"its fields are: {', '.join(known) or 'none'}",
            )
        setattr(message, _MARK, Tag(1 if phase is None else phase, round))
        return message

    return decorate


def tag_of(message: type[Message]) -> Tag | None:
    """The tag of a message class, its own or an inherited one."""
    return getattr(message, _MARK, None)


def check_rounds(given: Any, consumed: Iterable[tuple[str, type[Message]]]) -> list[str]:
    """The rounds of a System in their order. `consumed` has the names of handlers, each with its message class."""
    if given is None:
        return []
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise ModelError(f"System: rounds={given!r} is not a list", hint='write rounds=["Prepare", "Ack"], in order')
    rounds = list(given)
    for name in rounds:
        if not isinstance(name, str) or not name:
            raise ModelError(
                f"System: {name!r} in rounds is not a name", hint='write rounds=["Prepare", "Ack"], in their order'
            )
        if rounds.count(name) > 1:
            raise ModelError(
                f"System: round {name!r} is listed twice", hint="list each round once, in the order of a phase"
            )
    seen = set()
    for where, message in consumed:
        tag = tag_of(message)
        if tag is None:
            raise ModelError(
                f"{where} consumes {message.__name__}, which has no round",
                hint=f'decorate {message.__name__}: @tagged(phase="…", round="…"), or leave out rounds=',
            )
        if tag.round not in rounds:
            raise ModelError(
                f"{message.__name__} has round {tag.round!r}, which System(rounds={rounds!r}) does not list",
                hint="list all rounds in their order",
            )
        seen.add(tag.round)
    for name in rounds:
        if name not in seen:
            raise ModelError(
                f"System: no handler consumes a message of round {name!r}",
                hint=f'decorate one with @tagged(round="{name}"), or leave the round out',
            )
    return rounds
