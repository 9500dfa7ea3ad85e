"""The durable log: the updates of global operations in their one order, and who may add to it.

`append` is a compare-and-append. It takes updates that were computed on exactly the updates that are in the log, from a
server whose token is not older than any that has added something. So whatever happens to tokens (two of them after one was
thought lost, one that arrives twice, a holder that slept), an update is only ever added to the state that it was computed
from. The token decides who should try; the log decides who may.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Protocol

import msgspec

from plait.gyro.belt.records import Entry

logger = logging.getLogger("plait.gyro")


class Fence(msgspec.Struct, frozen=True, array_like=True):
    """The greatest epoch that was issued, the greatest turn in it that added something, and the last seq."""

    epoch: int = 0
    turn: int = 0
    last: int = 0


class FencedError(Exception):
    """There is a newer token than the one that was shown."""

    def __init__(self, fence: Fence) -> None:
        super().__init__(f"the token is of epoch {fence.epoch}, turn {fence.turn} by now")
        self.fence = fence


class BehindError(Exception):
    """The log has updates that the server has not applied."""

    def __init__(self, last: int) -> None:
        super().__init__(f"the log is at update {last}")
        self.last = last


class LogGoneError(Exception):
    """The log cannot be reached; whether it took the entries is not known."""


class Log(Protocol):
    """A log that all servers share."""

    def fence(self) -> Fence:
        """How far it is."""

    def append(self, entries: Sequence[Entry]) -> None:
        """Add entries of one turn, all or none; durable on return. FencedError, BehindError, LogGoneError."""

    def read(self, after: int, limit: int = 1000) -> list[Entry]:
        """The next entries after a seq, in order."""

    def reissue(self, epoch: int) -> int | None:
        """Make `epoch` the past: the new epoch, or None if somebody was faster."""

    def agree(self, key: str, value: str) -> str:
        """The value that was first given for a key, by whichever server."""

    def close(self) -> None:
        """Let go of it."""


def admit(fence: Fence, entries: Sequence[Entry]) -> Fence:
    """Whether entries may be added, and the fence afterwards: the rule, whatever the log is made of."""
    first = entries[0]
    if (first.epoch, first.turn) < (fence.epoch, fence.turn):
        raise FencedError(fence)
    if first.seq != fence.last + 1:
        raise BehindError(fence.last)
    return Fence(first.epoch, first.turn, entries[-1].seq)


def append_surely(log: Log, entries: Sequence[Entry]) -> None:
    """Append, and come back only when it is known whether the log has the entries.

    A log that does not answer may have taken them. Until that is known the operations have neither happened nor not, so
    whoever calls this keeps its transaction open. If the server dies here, it finds out when it recovers.
    """
    pause = 0.05
    unsure = False
    while True:
        try:
            if unsure and _has(log, entries[0]):
                return
            try:
                log.append(entries)
            except (BehindError, FencedError):
                # It is refused for good; unless an attempt before it has arrived meanwhile.
                if not (unsure and _has(log, entries[0])):
                    raise
            return
        except LogGoneError as error:
            logger.warning("the log does not answer, asking again: %s", error)
            unsure = True
            time.sleep(pause)
            pause = min(2 * pause, 2.0)


def _has(log: Log, entry: Entry) -> bool:
    found = log.read(entry.seq - 1, 1)
    return bool(found) and found[0] == entry
