"""Fairness: what a run may not put off for ever.

    System(…, fairness=[weak(Philosopher), strong(Philosopher.take_second), weak(Message)])

`weak(x)`: steps of x that stay enabled happen. `strong(x)`: steps of x that are enabled again and again happen. x is a
Process class (each of its processes, by itself), a handler (of each process, by itself), or a Message class: each message
that stays deliverable is delivered. Faults are never assumed to happen.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

from plait.kernel.errors import ModelError
from plait.model.message import Message
from plait.model.process import Handler, Process


@dataclasses.dataclass(frozen=True)
class Fairness:
    """An assumption about steps, in the words of the user."""

    strong: bool
    of: type[Process] | type[Message] | Callable[..., Any]

    def __str__(self) -> str:
        name = getattr(self.of, "__qualname__", str(self.of)).rpartition("<locals>.")[2]
        return f"{'strong' if self.strong else 'weak'}({name})"

    @property
    def by_message(self) -> bool:
        """Whether there is an assumption for each message."""
        return isinstance(self.of, type) and issubclass(self.of, Message)

    def concerns(self, handler: Handler) -> bool:
        """Whether it is about steps of a handler, given a process that it is about."""
        if handler.kind not in ("action", "message"):
            return False
        if isinstance(self.of, type) and issubclass(self.of, Process):
            return True
        if self.by_message:
            return handler.message is not None and issubclass(handler.message, self.of)  # type: ignore[arg-type]
        return handler.function is self.of


def weak(of: Any) -> Fairness:
    """What stays enabled happens."""
    return _fairness(False, of)


def strong(of: Any) -> Fairness:
    """What is enabled again and again happens."""
    return _fairness(True, of)


def _fairness(strong: bool, of: Any) -> Fairness:
    is_class = isinstance(of, type) and issubclass(of, Process | Message)
    if not is_class and not hasattr(of, "__plait_handler__"):
        raise ModelError(
            f"{'strong' if strong else 'weak'}({of!r}): expected a Process class, a handler or a Message class",
            hint="weak(Server), strong(Server.retry) or weak(Message)",
        )
    return Fairness(strong, of)


def assumptions(given: Iterable[Any], where: str) -> tuple[Fairness, ...]:
    """The assumptions that a System or a property was given."""
    try:
        found = tuple(given)
    except TypeError:
        raise ModelError(f"{where}: fairness={given!r} is not a list", hint="fairness=[weak(Server)]") from None
    for one in found:
        if not isinstance(one, Fairness):
            raise ModelError(
                f"{where}: {one!r} in fairness is no assumption", hint="use weak(…) and strong(…): [weak(Server)]"
            )
    return found
