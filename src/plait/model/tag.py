"""Synchronization tags: which phase and which round a message belongs to (Sequentialization, Definition 1).

    @tagged(phase="ballot", round="Prepare")
    class Prepare(Message):
        ballot: int

    System(..., rounds=["Prepare", "Ack", "Propose", "Promise"])

The tag of a message is the value of its phase field and its round; the System gives the order of the rounds. Nothing else
is annotated: what a process is in is worked out from what it sends and receives (`plait.rounds`).
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
    """What a message class declares: the field that holds its phase (or the one phase there is), and its round."""

    phase: str | int
    round: str

    def phase_of(self, message: Message) -> Any:
        """The phase of a message."""
        return getattr(message, self.phase) if isinstance(self.phase, str) else self.phase


def tagged(*, phase: str | int | None = None, round: str) -> Callable[[M], M]:  # noqa: A002 the paper's word
    """Say which phase and round the messages of a class belong to.

    `phase` names the field that holds the phase, a whole number; a protocol with a single phase gives a constant, or
    nothing.

    >>> @tagged(phase="ballot", round="Ack")
    ... class Ack(Message):
    ...     ballot: int
    >>> tag_of(Ack).phase_of(Ack(3))
    3
    """
    if not isinstance(round, str) or not round:
        raise ModelError(
            f"@tagged(round={round!r}): a round has a name", hint='write @tagged(phase="ballot", round="Ack")'
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
        known = [f.name for f in dataclasses.fields(message)]  # type: ignore[arg-type]
        if isinstance(phase, str) and phase not in known:
            raise ModelError(
                f"@tagged(phase={phase!r}): {message.__name__} has no field {phase!r}",
                hint=f"its fields are: {', '.join(known) or 'none'}",
            )
        setattr(message, _MARK, Tag(1 if phase is None else phase, round))
        return message

    return decorate


def tag_of(message: type[Message]) -> Tag | None:
    """The tag that a message class declares, itself or by inheritance."""
    return getattr(message, _MARK, None)


def check_rounds(given: Any, consumed: Iterable[tuple[str, type[Message]]]) -> list[str]:
    """The rounds of a System in their order; `consumed` are its handlers by name, with what each consumes."""
    if given is None:
        return []
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise ModelError(f"System: rounds={given!r} is not a list", hint='rounds=["Prepare", "Ack"], in their order')
    rounds = list(given)
    for name in rounds:
        if not isinstance(name, str) or not name:
            raise ModelError(
                f"System: {name!r} in rounds is not a name", hint='rounds=["Prepare", "Ack"], in their order'
            )
        if rounds.count(name) > 1:
            raise ModelError(
                f"System: round {name!r} is listed twice", hint="a phase goes through its rounds once, in order"
            )
    seen = set()
    for where, message in consumed:
        tag = tag_of(message)
        if tag is None:
            raise ModelError(
                f"{where} consumes {message.__name__}, which belongs to no round",
                hint=f'decorate {message.__name__}: @tagged(phase="…", round="…"), or leave out rounds=',
            )
        if tag.round not in rounds:
            raise ModelError(
                f"{message.__name__} is of round {tag.round!r}, which System(rounds={rounds!r}) does not list",
                hint="give all rounds in their order",
            )
        seen.add(tag.round)
    for name in rounds:
        if name not in seen:
            raise ModelError(
                f"System: no handler consumes a message of round {name!r}",
                hint=f'decorate one with @tagged(round="{name}"), or leave the round out',
            )
    return rounds
