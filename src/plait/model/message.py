"""Messages: immutable records that processes send to each other."""

from __future__ import annotations

import dataclasses
from typing import Any, dataclass_transform

from plait.kernel.errors import ModelError
from plait.kernel.pid import Pid


@dataclass_transform(frozen_default=True)
@dataclasses.dataclass(frozen=True)
class Message:
    """Base class of all messages. A subclass is a frozen dataclass; its annotations are the fields.

    >>> class Ping(Message):
    ...     number: int
    >>> Ping(3)
    Ping(number=3)

    In a handler or a guard, `m.sender` is the id of the process that sent the message `m`.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "sender" in cls.__dict__.get("__annotations__", {}):
            raise ModelError(
                f"message {cls.__name__} declares a field 'sender'",
                hint="remove the field: every delivered message has a sender already",
            )
        try:
            dataclasses.dataclass(frozen=True)(cls)
        except (TypeError, ValueError) as error:
            raise ModelError(f"message {cls.__name__}: {error}", hint="give fields immutable defaults") from None

    @property
    def sender(self) -> Pid:
        """The id of the process that sent this message. A message has it when it is delivered."""
        try:
            return self.__dict__["_sender"]  # type: ignore[no-any-return]
        except KeyError:
            raise ModelError(
                f"{type(self).__name__} has no sender yet",
                hint="a message gets its sender when it is sent; the id of the process itself is self.id",
            ) from None


def subclasses(cls: type[Message]) -> list[type[Message]]:
    """The subclasses of a message class at all levels, those nearest to it first.

    Classes that Plait derives to watch what code reads do not count: they have `__plait_derived__`.

    >>> class Question(Message): ...
    >>> class Ping(Question): ...
    >>> [kind.__name__ for kind in subclasses(Question)]
    ['Ping']
    """
    found: list[type[Message]] = []
    waiting = [cls]
    for one in waiting:  # the list grows during the loop
        below = [
            kind for kind in one.__subclasses__() if "__plait_derived__" not in kind.__dict__ and kind not in found
        ]
        found += below
        waiting += below
    return found
