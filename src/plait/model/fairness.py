"""Fairness: assumptions about steps that a run cannot delay for ever.

    System(…, fairness=[weak(Philosopher), strong(Philosopher.take_second), weak(Message)])
    System(…, fairness=[weak(everybody), fair_loss(Message)])

`weak(x)`: if a step of x stays enabled, it happens. `strong(x)`: if a step of x is enabled infinitely often, it
happens. x is a Process class (one assumption for each of its processes), a handler (one for each process that has it or
overrides it), a Message class (one for each message of it: if it stays deliverable, it is delivered, whichever handler
takes it), `recovery(Role)` (one for each process of the role: if it is down, it recovers), or `everybody` (one for each
process: its steps, and its recovery). `weak(tick)` says that time goes on (`plait.model.clock`). `fair_loss(M)`: a
message that is lost infinitely often is delivered infinitely often. Crashes, losses and duplications are never
assumed to happen.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, Literal, cast

from plait.kernel.errors import ModelError
from plait.model.clock import tick
from plait.model.message import Message, subclasses
from plait.model.process import Handler, Process, Recovery

Demand = Literal["weak", "strong", "loss"]


class _Everybody:
    """All processes, each by itself."""

    def __repr__(self) -> str:
        return "everybody"


everybody = _Everybody()
"""For `weak(everybody)` and `strong(everybody)`: each process, with its recovery."""


@dataclasses.dataclass(frozen=True)
class Fairness:
    """An assumption about steps, as the user wrote it."""

    demand: Demand
    of: type[Process] | type[Message] | type[tick] | Callable[..., Any] | Recovery | _Everybody

    def __str__(self) -> str:
        name = getattr(self.of, "__qualname__", str(self.of)).rpartition("<locals>.")[2]
        return f"{'fair_loss' if self.demand == 'loss' else self.demand}({name})"

    @property
    def role(self) -> type[Process] | None:
        """The role whose processes it is about, each by itself, with all their steps or with their recovery."""
        if isinstance(self.of, Recovery):
            return self.of.role
        if self.of is everybody:
            return Process
        return self.of if isinstance(self.of, type) and issubclass(self.of, Process) else None

    @property
    def recovers(self) -> bool:
        """Whether it says that processes of its role recover."""
        return isinstance(self.of, Recovery) or self.of is everybody

    @property
    def by_message(self) -> bool:
        """Whether this is one assumption for each message."""
        return isinstance(self.of, type) and issubclass(self.of, Message)

    @property
    def messages(self) -> list[type[Message]]:
        """The classes of the messages that it is about: a message class with all its subclasses."""
        if not self.by_message:
            return []
        cls = cast(type[Message], self.of)
        return [cls, *subclasses(cls)]

    def concerns(self, cls: type[Process], handler: Handler) -> bool:
        """Whether it is about steps of this handler of a class. The class is one that it is about.

        A handler of messages of a base class takes messages of its subclasses, too. A method that overrides a handler, with
        a decorator or without, counts as this handler.
        """
        if handler.kind not in ("action", "message") or isinstance(self.of, Recovery):
            return False
        if self.role is not None:
            return True
        if self.by_message:
            return any(issubclass(m, handler.messages) for m in self.messages)
        return any(base.__dict__.get(handler.name) is self.of for base in cls.__mro__)


def weak(of: Any) -> Fairness:
    """Weak fairness: a step that stays enabled happens."""
    return _fairness("weak", of)


def strong(of: Any) -> Fairness:
    """Strong fairness: a step that is enabled infinitely often happens."""
    return _fairness("strong", of)


def fair_loss(of: Any) -> Fairness:
    """Fair loss: a message of this class that the network loses infinitely often is delivered infinitely often.

    So a message that is sent again and again arrives. A message is the same if its sender, receiver and content are.
    """
    if not (isinstance(of, type) and issubclass(of, Message)):
        raise ModelError(f"fair_loss({of!r}): expected a Message class", hint="write for example fair_loss(Message)")
    return Fairness("loss", of)


def _fairness(demand: Demand, of: Any) -> Fairness:
    # Whether a function is a handler depends on the class: an override needs no decorator. The check finds out.
    known = isinstance(of, Recovery) or of is everybody
    if not known and not (issubclass(of, Process | Message | tick) if isinstance(of, type) else callable(of)):
        raise ModelError(
            f"{demand}({of!r}): expected a Process class, a handler, a Message class, recovery(Role), everybody or tick",
            hint="write for example weak(Server), strong(Server.retry), weak(Message) or weak(recovery(Server))",
        )
    return Fairness(demand, of)


def assumptions(given: Iterable[Any], where: str) -> tuple[Fairness, ...]:
    """The value of `fairness=` of a System or a property, as a tuple. A value that does not fit raises a ModelError."""
    try:
        found = tuple(given)
    except TypeError:
        raise ModelError(f"{where}: fairness={given!r} is not a list", hint="write fairness=[weak(Server)]") from None
    for one in found:
        if not isinstance(one, Fairness):
            raise ModelError(
                f"{where}: {one!r} in fairness is not an assumption",
                hint="use weak(…), strong(…) and fair_loss(…), for example fairness=[weak(Server)]",
            )
    return found
