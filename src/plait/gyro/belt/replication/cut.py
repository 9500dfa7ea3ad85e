"""Cuts of the history of a cluster: sets of updates that are closed under dependencies.

A cut has, with a global update, the local updates of its server that were in the log before it (`Entry.shipped`); with
a local update, it has the global updates that its server had applied (`LocalUpdate.seq`). So there is an execution
with exactly these operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from plait.gyro.belt.logs.log import Log, LogGoneError
from plait.gyro.belt.records import Entry, LocalUpdate

_PAGE = 500


class Cut(msgspec.Struct, frozen=True):
    """The entries up to a seq, and the local updates of each server up to a position."""

    seq: int = 0
    positions: dict[int, int] = {}


def between(log: Log, start: Cut, end: Cut) -> Iterator[Entry | LocalUpdate]:
    """The updates after a cut, up to a later cut, each after the updates that it depends on.

    A local update that depends on later entries than those of the cut is left out, and all local updates after it.
    """
    streams = {p: _Pages(log, p, start.positions.get(p, 0)) for p in end.positions}
    seq = start.seq
    while seq < end.seq:
        entries = log.read(seq, min(_PAGE, end.seq - seq))
        if not entries:
            raise LogGoneError(f"the log has no update after {seq}; expected updates up to {end.seq}")
        for entry in entries:
            if entry.holder in streams:
                yield from streams[entry.holder].until(lambda u, entry=entry: u.position > entry.shipped)  # type: ignore[misc]
            yield entry
        seq = entries[-1].seq
    for server, stream in streams.items():
        last = end.positions[server]
        yield from stream.until(lambda u, last=last: u.position > last or u.seq > end.seq)  # type: ignore[misc]


class _Pages:
    """The local updates of a server, read in pages."""

    def __init__(self, log: Log, server: int, position: int) -> None:
        self._log, self._server, self._position = log, server, position
        self._page: list[LocalUpdate] = []

    def until(self, end: Callable[[LocalUpdate], bool]) -> Iterator[LocalUpdate]:
        """The next updates, until a condition is true of one."""
        while True:
            self._page = self._page or self._log.shipped(self._server, self._position, _PAGE)[::-1]
            if not self._page or end(self._page[-1]):
                return
            update = self._page.pop()
            self._position = update.position
            yield update
