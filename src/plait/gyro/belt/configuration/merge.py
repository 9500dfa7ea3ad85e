"""The net effect of a sequence of updates: what to do with each row.

A server has applied the global updates and its own local ones. When it gets the local updates of the others, it cannot
apply them one by one: an older local update would overwrite a newer global one, and a row that exists only later may
hold the same unique value. So the updates of *all* servers since the last barrier are folded in an order of
dependencies, and the result is applied at once. Row images are absolute, and a row that no update has touched is the
same at all servers. So the result is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import msgspec

from plait.gyro.belt.records import Entry, LocalUpdate


class RowChange(msgspec.Struct):
    """The change of one row, as a DBMS reads it from an update."""

    table: str
    kind: str
    """INSERT, UPDATE or DELETE."""
    key: tuple[Hashable, ...]
    """The primary key before the change; after it for an INSERT."""
    values: dict[str, Any]
    """All columns of a new row; the changed columns of an updated one."""
    after: tuple[Hashable, ...] | None = None
    """The primary key after the change, if the change changes it."""


class Row(msgspec.Struct):
    """What becomes of a row: columns over the row that has the key `base` now, or over nothing."""

    base: tuple[Hashable, ...] | None
    values: dict[str, Any]


class Fold:
    """The net effect: for each table and key, a row, or None if there is no such row any more."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[tuple[Hashable, ...], Row | None]] = {}

    def add(self, changes: Iterable[RowChange]) -> None:
        """Add the changes of one update."""
        for change in changes:
            rows = self.rows.setdefault(change.table, {})
            if change.kind == "INSERT":
                rows[change.key] = Row(None, dict(change.values))
            elif change.kind == "DELETE":
                rows[change.key] = None
            else:
                row = rows.get(change.key) if change.key in rows else Row(change.key, {})
                if row is None:
                    continue
                row.values |= change.values
                if change.after is not None and change.after != change.key:
                    rows[change.key] = None
                    rows[change.after] = row
                else:
                    rows[change.key] = row


class Past(msgspec.Struct, frozen=True):
    """The reply of an operation that another server has executed. A client may send its request again."""

    request: str
    operation: str
    arguments: bytes
    reply: bytes
    seq: int
    position: int
    server: int

    @classmethod
    def of(cls, update: Entry | LocalUpdate) -> Past:
        """The reply that an update carries."""
        server, position = (update.holder, 0) if isinstance(update, Entry) else (update.server, update.order)
        return cls(
            update.request, update.operation, update.arguments, update.reply, update.seq, position, server
        )  # fmt: skip
