"""A DBMS whose state can follow a change of the configuration (`plait.gyro.belt.configuration`)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec

from plait.gyro.belt.configuration.merge import Fold, Past, RowChange
from plait.gyro.belt.databases.outbox import Outbox
from plait.gyro.belt.records import Entry, LocalUpdate


class MigrationError(Exception):
    """The DBMS refuses the migration, or the tables after it are not those of the schema."""


class Switch(msgspec.Struct):
    """What a DBMS does when a configuration begins, in one transaction."""

    entry: Entry
    """The entry that begins it."""
    state: str
    """The state after the entry, to be stored."""
    fold: Fold
    """The net effect of all updates since the last barrier; empty if the state has them already."""
    past: list[Past]
    rank: int
    """The place of the server among the members; 0 if it is none."""
    servers: int
    """The number of members."""
    migration: str = ""
    schema: str = ""
    """The DDL of the tables after the migration; empty if they do not change."""
    ids: dict[str, int] = {}
    """The greatest ids that sequences have generated."""
    gap: int = 0
    """So many ids are left out for each server."""


@runtime_checkable
class Changeable(Outbox, Protocol):
    """A DBMS that can merge the rows of all servers."""

    torn: bool
    """Whether a crash has interrupted a migration that cannot be rolled back: the log must fill the database again."""

    def configuration(self) -> str | None:
        """The state of the configuration that `advance` or `switch` stored last."""

    def advance(self, entry: Entry, state: str) -> None:
        """Apply an entry of a change: it has no rows, only the state of the configuration changes."""

    def row_changes(self, update: bytes) -> list[RowChange]:
        """The changes of rows in an update."""

    def ids(self) -> dict[str, int]:
        """The greatest id that each sequence has generated; empty if the rows tell."""

    def switch(self, switch: Switch, *, attempt: bool = False) -> str:
        """Begin a configuration; return the tables as text. With `attempt`, nothing changes. Raises MigrationError."""

    def absorb(self, updates: Sequence[Entry | LocalUpdate]) -> None:
        """Apply updates of any server in order, with their replies, in one transaction."""

    def absorbed(self) -> dict[int, int]:
        """The position of the last local update of each server that `absorb` has applied."""


class Table(Protocol):
    """A table of a DBMS, whose rows are columns by name."""

    key: Any

    def find(self, db: Any, key: dict[str, Any]) -> dict[str, Any] | None:
        """The columns of a row; None if there is no such row."""

    def apply(self, db: Any, kind: str, key: dict[str, Any], row: dict[str, Any]) -> None:
        """Set a row to a state, whatever its state is."""


def replace_rows(db: Any, table: Table, rows: dict[tuple[Hashable, ...], Any]) -> None:
    """Replace the rows of the net effect: first all are removed, so that unique values never meet."""

    def named(key: tuple[Any, ...]) -> dict[str, Any]:
        return dict(zip(table.key, key, strict=True))

    made = []
    for row in rows.values():
        if row is None:
            continue
        base: dict[str, Any] = {}
        if row.base is not None:
            found = table.find(db, named(row.base))
            if found is None:
                continue
            base = found
        made.append(base | row.values)
    for key in rows:
        table.apply(db, "DELETE", named(key), {})
    for values in made:
        table.apply(db, "INSERT", {c: values[c] for c in table.key}, values)
