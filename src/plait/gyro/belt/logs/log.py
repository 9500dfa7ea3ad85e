"""The durable log: all updates of global operations in one order, a stream of local updates per server, and the rules
that decide which appends are valid.

`append` is a compare-and-append. It accepts updates only if they were computed on all updates in the log, and only if
no newer token has appended. So an update is only added to the state that it was computed from, even if there are two
tokens because one seemed lost, if a token arrives twice, or if its holder was suspended. The token only decides which
server tries to append. The log decides which append succeeds.

`ship` appends to the stream of one server. Only the present *incarnation* of the server may do this: if the server was
rebuilt because its disk was lost, `replace` has begun a new incarnation, and the old process is refused.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Protocol

import msgspec

from plait.gyro.belt.records import Entry, ForkedError, LocalUpdate, follow
from plait.gyro.belt.service.events import event
from plait.kernel.errors import UsageError

logger = logging.getLogger("plait.gyro")


class Fence(msgspec.Struct, frozen=True, array_like=True):
    """The newest epoch, the last turn in it that appended entries, and the seq and the hash of the last entry."""

    epoch: int = 0
    turn: int = 0
    last: int = 0
    chain: str = ""
    """The hash of all entries."""
    incarnations: dict[int, int] = {}
    """The incarnation of each server that was rebuilt; 0 for the others."""


class Stream(msgspec.Struct, frozen=True, array_like=True):
    """The incarnation of a server, and the position and the hash of its last local update in the log."""

    incarnation: int = 0
    last: int = 0
    chain: str = ""


class ReplacedError(Exception):
    """Another incarnation of this server exists: it was rebuilt elsewhere. This one must stop."""

    def __init__(self, server: int, incarnation: int) -> None:
        super().__init__(f"server {server} was rebuilt: its incarnation is {incarnation} now, and this one is older")


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


class StaleError(LogGoneError):
    """The log lacks records that it had. The answer may be old, or the log was restored from an older copy."""


class RestoredError(Exception):
    """The log lacks records for so long that it was restored. This server must stop."""

    def __init__(self, error: StaleError) -> None:
        super().__init__(
            f"{error}, for more than {STALE:g} s: it was restored from an older copy\n"
            "hint: restore a newer copy, or restore all servers and the log from one backup"
        )


STALE = 30.0
"""If the log lacks records for so long, in seconds, it is not the delay of a replica."""


class Staleness:
    """How long the log has lacked records."""

    def __init__(self) -> None:
        self._since: float | None = None

    def clear(self) -> None:
        """The log has all records."""
        self._since = None

    def note(self, error: Exception) -> None:
        """A request to the log has failed. RestoredError: the log was restored from an older copy."""
        if isinstance(error, StaleError):
            self._since = self._since or time.monotonic()
            if time.monotonic() - self._since > STALE:
                raise RestoredError(error) from None


class Log(Protocol):
    """A log that all servers share."""

    largest: int
    """The maximal number of bytes of an append (see `size_of`)."""

    def fence(self) -> Fence:
        """The current fence."""

    def append(self, entries: Sequence[Entry]) -> None:
        """Append entries of one turn, all or none, durably.

        Raises FencedError, BehindError, ForkedError, ReplacedError, TooLargeError or LogGoneError.
        """

    def read(self, after: int, limit: int = 1000) -> list[Entry]:
        """The entries after a seq, in order."""

    def reissue(self, epoch: int) -> int | None:
        """End `epoch`; return the new epoch, or None if another server has already ended it."""

    def agree(self, key: str, value: str) -> str:
        """The first value that any server gave for a key."""

    def agreed(self, key: str) -> str | None:
        """The value of a key that servers have agreed on; None if there is none yet."""

    def ship(self, server: int, updates: Sequence[LocalUpdate]) -> None:
        """Append to the stream of a server, all or none, durably; at most `MOST_SHIPPED` updates.

        Raises BehindError, ForkedError, ReplacedError, TooLargeError or LogGoneError.
        """

    def shipped(self, server: int, after: int, limit: int = 1000) -> list[LocalUpdate]:
        """The local updates of a server after a position, in order."""

    def stream(self, server: int) -> Stream:
        """The end of the stream of a server."""

    def replace(self, server: int, incarnation: int) -> int | None:
        """Begin a new incarnation of a server; return it, or None if `incarnation` is not the present one.

        It also begins a new epoch. The log may change the fence first and the stream after it. When this returns, the
        log refuses `append` and `ship` of earlier incarnations.
        """

    def close(self) -> None:
        """Close the log."""


MOST_SHIPPED = 64
"""Maximal number of local updates in one call of `ship`."""


def size_of(entry: Entry | LocalUpdate) -> int:
    """The bytes of an entry in the log, at most."""
    return len(entry.arguments) + len(entry.reply) + len(entry.update) + len(entry.request) + _MORE


_MORE = 400
"""An upper bound for the rest of an entry: numbers, the name of the operation, a key."""


def admit(fence: Fence, entries: Sequence[Entry]) -> Fence:
    """Check whether entries may be appended; return the new fence. All implementations of the log use this rule."""
    first = entries[0]
    if (known := fence.incarnations.get(first.holder, 0)) != first.incarnation:
        raise ReplacedError(first.holder, known)
    if (first.epoch, first.turn) < (fence.epoch, fence.turn):
        raise FencedError(fence)
    if first.seq != fence.last + 1:
        raise BehindError(fence.last)
    chain = fence.chain
    for entry in entries:
        chain = follow(chain, entry)
    return Fence(first.epoch, first.turn, entries[-1].seq, chain, fence.incarnations)


def admit_local(stream: Stream, updates: Sequence[LocalUpdate]) -> Stream:
    """Check whether local updates may be appended to the stream of their server; return its new end."""
    for update in updates:
        if update.incarnation != stream.incarnation:
            raise ReplacedError(update.server, stream.incarnation)
        if update.position != stream.last + 1:
            raise BehindError(stream.last)
        stream = Stream(stream.incarnation, update.position, follow(stream.chain, update))
    return stream


def replaced(fence: Fence, server: int, incarnation: int) -> Fence | None:
    """The fence after the beginning of a new incarnation; None if `incarnation` is not the present one."""
    if fence.incarnations.get(server, 0) != incarnation:
        return None
    return Fence(fence.epoch + 1, 0, fence.last, fence.chain, {**fence.incarnations, server: incarnation + 1})


def append_surely(log: Log, entries: Sequence[Entry]) -> None:
    """Append, and retry until it is certain whether the log has the entries.

    A log that does not answer may have accepted them. Until this is certain, the caller must keep its transaction open:
    the operations may or may not have happened. If the server dies here, recovery reads the answer from the log.
    """
    pause = 0.05
    unsure = False
    stale = Staleness()
    while True:
        try:
            if unsure and _has(log, entries[0]):
                return
            try:
                log.append(entries)
            except (BehindError, FencedError, ForkedError, ReplacedError, TooLargeError):
                # The refusal is final, unless an earlier attempt has succeeded.
                if not (unsure and _has(log, entries[0])):
                    raise
            return
        except (LogGoneError, UsageError) as error:  # UsageError: the engine refuses this server since it started
            stale.note(error)
            logger.warning("the log does not answer; retrying: %s", error, extra=event("log_retry", error=error))
            unsure = True
            time.sleep(pause)
            pause = min(2 * pause, 2.0)


def _has(log: Log, entry: Entry) -> bool:
    found = log.read(entry.seq - 1, 1)
    return bool(found) and found[0] == entry
