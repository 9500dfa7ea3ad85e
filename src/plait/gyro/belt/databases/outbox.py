"""The outbox of a DBMS: updates of local operations that are committed here, on their way to the log.

The transaction of a local operation also adds its update to the outbox (a table `gyro_outbox`). So a committed update is
never lost between the commit and the log, unless the disk is.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from plait.gyro.belt.databases.database import Database
from plait.gyro.belt.logs.log import size_of
from plait.gyro.belt.records import Call, Entry, LocalUpdate, OversizeError


@runtime_checkable
class Outbox(Database, Protocol):
    """A DBMS whose local updates can be shipped to the log, and that can be rebuilt from the log."""

    def outbox(self, known: Collection[int], limit: int) -> list[LocalUpdate]:
        """The first local updates of the outbox, without those with a known number. They have no position yet."""

    def shipped(self) -> tuple[int, str]:
        """The position and the hash of the last local update that is not in the outbox any more."""

    def forget(self, updates: Sequence[LocalUpdate], *, patient: bool) -> bool:
        """Remove updates that the log has from the outbox. False: the DBMS is busy, and the caller is not patient."""

    def whole(self) -> bool:
        """Whether the outbox got all local updates since the rows of the schema: the log can rebuild this state."""

    def replay(self, updates: Sequence[LocalUpdate]) -> None:
        """Apply own local updates of the log, in order and in one transaction, to rebuild the state."""

    def renew(self, gap: int) -> None:
        """After the state was rebuilt: leave out this number of generated ids, which lost operations may have used."""


def local_update(
    server: int, seq: int, order: int, call: Call, arguments: bytes, reply: bytes, update: bytes, largest: int
) -> LocalUpdate:
    """The update of a local operation, for the outbox. OversizeError: the log would refuse it."""
    made = LocalUpdate(0, 0, server, seq, 0, order, call.request, call.operation, arguments, reply, update)
    if (size := size_of(made)) > largest:
        what = f"the parameters, the reply and the changed rows of {call.operation}"
        raise OversizeError(f"{what} are too large for the log ({size:,} bytes; at most {largest:,} bytes)")
    return made


def posted(update: LocalUpdate) -> tuple[int | str | bytes, ...]:
    """A row of the outbox, without its number."""
    return (update.seq, update.order, *msgspec.structs.astuple(update)[6:11])


def remembered(update: Entry | LocalUpdate, at: float) -> tuple[int | float | str | bytes, ...]:
    """The row of `gyro_done` that the operation made.

    A local operation has the same position again. A global operation has none: its place is that of its update in the log.
    Its row has a negative number, so no local operation ever has the same one.
    """
    position = -update.seq if isinstance(update, Entry) else update.order
    return position, update.request, update.operation, update.arguments, update.reply, update.seq, at


def strange(found: Sequence[LocalUpdate], database: Outbox) -> list[LocalUpdate]:
    """The updates in the stream of a server that its database has not made. `found` comes after what it has shipped."""
    mine = {u.number: u for u in database.outbox((), sys.maxsize >> 1)} if found else {}
    return [u for u in found if msgspec.structs.replace(u, position=0, incarnation=0, chain="") != mine.get(u.number)]
