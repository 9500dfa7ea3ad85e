"""Networks: what may happen to a message between its send and its delivery."""

from __future__ import annotations

import dataclasses
from typing import Literal

from plait.kernel.errors import ModelError

Kind = Literal["unordered", "duplicating", "fifo"]


@dataclasses.dataclass(frozen=True)
class Network:
    """A kind of network with its faults. Make one with `unordered`, `duplicating` or `fifo`."""

    kind: Kind
    lossy: bool = False
    losses: int | None = None
    """How many messages the network may lose in a run. None: no limit."""
    duplications: int | None = None
    """How many copies a duplicating network may make in a run. None: no limit."""

    def __post_init__(self) -> None:
        for name in ("losses", "duplications"):
            budget = getattr(self, name)
            if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int) or budget < 0):
                raise ModelError(
                    f"network: {name}={budget!r} is not a number of faults", hint="give 0, 1, 2, … or None"
                )

    def __str__(self) -> str:
        parts: list[str] = [self.kind]
        if self.kind == "duplicating" and self.duplications is not None:
            parts.append(f"at most {self.duplications} copies")
        if self.lossy:
            parts.append("lossy" if self.losses is None else f"at most {self.losses} lost")
        return ", ".join(parts)


def unordered(*, lossy: bool = False, losses: int | None = None) -> Network:
    """A network without order: messages overtake each other, and each is delivered at most once. This is the default.

    With `losses=n` the network loses at most n messages in a run. With `lossy=True` alone it loses any number.
    """
    return Network("unordered", lossy or losses is not None, losses)


def duplicating(*, lossy: bool = False, losses: int | None = None, duplications: int | None = None) -> Network:
    """A network that duplicates: delivery does not remove a message, so it may be delivered again at any time.

    With `duplications=n` the network is unordered, and makes at most n copies of messages in a run.
    """
    return Network("duplicating", lossy or losses is not None, losses, duplications)


def fifo(*, lossy: bool = False, losses: int | None = None) -> Network:
    """One queue per sender and receiver: messages of one sender arrive in the order in which they were sent."""
    return Network("fifo", lossy or losses is not None, losses)
