"""Networks: what may happen to a message between its send and its delivery."""

from __future__ import annotations

import dataclasses
from typing import Literal, get_args

from plait.kernel.errors import ModelError

Kind = Literal["unordered", "duplicating", "fifo", "mailbox"]
Full = Literal["block", "drop"]


@dataclasses.dataclass(frozen=True)
class Network:
    """A kind of network with its faults. Make one with `unordered`, `duplicating`, `fifo` or `mailbox`."""

    kind: Kind
    lossy: bool = False
    losses: int | None = None
    """How many messages the network may lose in a run. None: no limit."""
    duplications: int | None = None
    """How many copies a duplicating network may make in a run. None: no limit."""
    capacity: int | None = None
    """How many messages of one sender may be pending for one receiver. None: no limit."""
    full: Full = "block"
    """What happens if a step sends to a full channel: the step is not possible, or the message is dropped."""

    def __post_init__(self) -> None:
        for name in ("losses", "duplications"):
            budget = getattr(self, name)
            if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int) or budget < 0):
                raise ModelError(
                    f"network: {name}={budget!r} is not a number of faults", hint="give 0, 1, 2, … or None"
                )
        if self.capacity is not None and (
            isinstance(self.capacity, bool) or not isinstance(self.capacity, int) or self.capacity < 1
        ):
            raise ModelError(
                f"network: capacity={self.capacity!r} is not a number of messages", hint="give 1, 2, 3, … or None"
            )
        if self.full not in get_args(Full):
            raise ModelError(
                f"network: full={self.full!r} is not known",
                hint='give "block" (a step that sends to a full channel is not possible) or "drop" (the message is dropped)',
            )
        if self.kind == "mailbox" and (self.lossy or self.duplications is not None or self.capacity is not None):
            raise ModelError(
                "network: a mailbox loses and copies no messages, and has no capacity", hint="write network=mailbox()"
            )
        if self.full == "drop" and self.capacity is None:
            raise ModelError('network: full="drop" needs a capacity', hint='write fifo(capacity=3, full="drop")')

    @property
    def ordered(self) -> bool:
        """Whether the order of the messages that a step sends to one process matters."""
        return self.kind in ("fifo", "mailbox")

    def __str__(self) -> str:
        parts: list[str] = [self.kind]
        if self.kind == "duplicating" and self.duplications is not None:
            parts.append(f"at most {self.duplications} copies")
        if self.lossy:
            parts.append("lossy" if self.losses is None else f"at most {self.losses} lost")
        if self.capacity is not None:
            full = "dropped" if self.full == "drop" else "blocked"
            parts.append(f"at most {self.capacity} per sender and receiver, more are {full}")
        return ", ".join(parts)


def unordered(*, lossy: bool = False, losses: int | None = None, capacity: int | None = None) -> Network:
    """A network without order: messages overtake each other, and each is delivered at most once. This is the default.

    With `losses=n` the network loses at most n messages in a run. With `lossy=True` alone it loses any number. With
    `capacity=n`, at most n messages of one sender are pending for one receiver: a step that would send more is not
    possible until the receiver takes one.
    """
    return Network("unordered", lossy or losses is not None, losses, capacity=capacity)


def duplicating(*, lossy: bool = False, losses: int | None = None, duplications: int | None = None) -> Network:
    """A network that duplicates: delivery does not remove a message, so it may be delivered again at any time.

    With `duplications=n` the network is unordered, and makes at most n copies of messages in a run.
    """
    return Network("duplicating", lossy or losses is not None, losses, duplications)


def fifo(
    *, lossy: bool = False, losses: int | None = None, capacity: int | None = None, full: Full = "block"
) -> Network:
    """One queue per sender and receiver: messages of one sender arrive in the order in which they were sent.

    With `capacity=n`, a queue holds at most n messages. A step that would send more is not possible (`full="block"`), or
    what it sends to a full queue is dropped (`full="drop"`).
    """
    return Network("fifo", lossy or losses is not None, losses, capacity=capacity, full=full)


def mailbox() -> Network:
    """One queue per receiver, of all senders, in the order in which the messages were sent. No message is lost.

    A process takes the first message of its queue for which the guard of a handler is true. The messages before it stay
    where they are. So a process can defer messages, as in Erlang and in P.
    """
    return Network("mailbox")
