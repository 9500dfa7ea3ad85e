"""The durable log: all updates of global operations in one order, and the rule that decides which appends are valid.

`append` is a compare-and-append. It accepts updates only if they were computed on all updates in the log, and only if
no newer token has appended. So an update is only added to the state that it was computed from, even if there are two
tokens because one seemed lost, if a token arrives twice, or if its holder was suspended. The token only decides which
server tries to append. The log decides which append succeeds.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Protocol

import msgspec

from plait.gyro.belt.records import Entry, ForkedError, follow

logger = logging.getLogger("plait.gyro")


class Fence(msgspec.Struct, frozen=True, array_like=True):
    """The newest epoch, the last turn in it that appended entries, and the seq and the hash of the last entry."""

    epoch: int = 0
    turn: int = 0
    last: int = 0
    chain: str = ""
    """The hash of all entries."""


class FencedError(Exception):
    """A newer token exists."""

    def __init__(self, fence: Fence) -> None:
        super().__init__(f"the current token has epoch {fence.epoch}, turn {fence.turn}")
        self.fence = fence


class BehindError(Exception):
    """The log has updates that this server has not applied."""

    def __init__(self, last: int) -> None:
        super().__init__(f"the last update of the log is {last}")
        self.last = last


class TooLargeError(Exception):
    """The log refuses the entries for their size. It has none of them."""


class LogGoneError(Exception):
    """The log does not answer. It may or may not have accepted the entries."""


class Log(Protocol):
    """A log that all servers share."""

    largest: int
    """The maximal number of bytes of an append (see `size_of`)."""

    def fence(self) -> Fence:
        """The current fence."""

    def append(self, entries: Sequence[Entry]) -> None:
        """Append entries of one turn, all or none, durably.

        Raises FencedError, BehindError, ForkedError, TooLargeError or LogGoneError.
        """

    def read(self, after: int, limit: int = 1000) -> list[Entry]:
        """The entries after a seq, in order."""

    def reissue(self, epoch: int) -> int | None:
        """End `epoch`; return the new epoch, or None if another server has already ended it."""

    def agree(self, key: str, value: str) -> str:
        """The first value that any server gave for a key."""

    def close(self) -> None:
        """Close the log."""


def size_of(entry: Entry) -> int:
    """The bytes of an entry in the log, at most."""
    return len(entry.arguments) + len(entry.reply) + len(entry.update) + len(entry.request) + _MORE


_MORE = 400
"""An upper bound for the rest of an entry: numbers, the name of the operation, a key."""


def admit(fence: Fence, entries: Sequence[Entry]) -> Fence:
    """Check whether entries may be appended; return the new fence. All implementations of the log use this rule."""
    first = entries[0]
    if (first.epoch, first.turn) < (fence.epoch, fence.turn):
        raise FencedError(fence)
    if first.seq != fence.last + 1:
        raise BehindError(fence.last)
    chain = fence.chain
    for entry in entries:
        chain = follow(chain, entry)
    return Fence(first.epoch, first.turn, entries[-1].seq, chain)


def append_surely(log: Log, entries: Sequence[Entry]) -> None:
    """Append, and retry until it is certain whether the log has the entries.

    A log that does not answer may have accepted them. Until this is certain, the caller must keep its transaction open:
    the operations may or may not have happened. If the server dies here, recovery reads the answer from the log.
    """
    pause = 0.05
    unsure = False
    while True:
        try:
            if unsure and _has(log, entries[0]):
                return
            try:
                log.append(entries)
            except (BehindError, FencedError, ForkedError, TooLargeError):
                # The refusal is final, unless an earlier attempt has succeeded.
                if not (unsure and _has(log, entries[0])):
                    raise
            return
        except LogGoneError as error:
            logger.warning("the log does not answer; retrying: %s", error)
            unsure = True
            time.sleep(pause)
            pause = min(2 * pause, 2.0)


def _has(log: Log, entry: Entry) -> bool:
    found = log.read(entry.seq - 1, 1)
    return bool(found) and found[0] == entry
