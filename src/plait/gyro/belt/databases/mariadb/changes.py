"""A MariaDB state that follows a change of the configuration: merges rows, migrates tables, begins new ids.

**Why a change is atomic.** Without a migration, a switch is one transaction. Ids go on with `ALTER TABLE`, which commits by
itself, so the transaction only stores where they begin (`gyro_ids`). The next start executes this before anything else. It
may be repeated.

A migration cannot be rolled back: MariaDB commits after each statement that changes a table. So a row in `gyro_torn` is
stored first, and deleted in the last transaction. If a server starts and finds this row, its tables are half changed.
Then it removes all of them, and builds its database again from the log, which has all updates of all servers
(`configuration/follower.py`). The row stays until this is complete.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from plait.gyro.belt.configuration.merge import Past, RowChange
from plait.gyro.belt.databases.changeable import Switch, replace_rows
from plait.gyro.belt.databases.database import OURS
from plait.gyro.belt.databases.mariadb.connection import Db, connect, execute
from plait.gyro.belt.databases.mariadb.migration import alone, compare, migrate, tried
from plait.gyro.belt.databases.mariadb.outbox import MariadbOutbox, transaction
from plait.gyro.belt.databases.mariadb.rows import (
    TORN,
    Table,
    begin_ids,
    definitions,
    first_id,
    next_ids,
    record,
    unrecord,
)
from plait.gyro.belt.databases.mariadb.visit import MOVE, PLACE, Change
from plait.gyro.belt.records import Entry, LocalUpdate, follow

_PAST = f"REPLACE INTO {OURS}past VALUES (%s, %s, %s, %s, %s, %s, %s, %s)"
_PATIENT = {"lock_wait_timeout": 120}
"""How long a migration waits for others who use a table, in seconds."""


class _UndoneError(Exception):
    """The attempt is over."""


class MariadbChanges(MariadbOutbox):
    """The part of a MariadbDatabase that follows changes."""

    torn = False
    """Whether a migration was interrupted. The tables were removed, and the log must fill the database again."""
    mode: str
    _step: Callable[[str], None]
    _dsn: str
    _database: str
    _where: str

    def _look_again(self, db: Db) -> None:
        raise NotImplementedError

    def _surely(self, attempt: Callable[[], Any]) -> Any:
        raise NotImplementedError

    def configuration(self) -> str | None:
        """The state of the configuration."""
        with self._connection("read") as db:
            ((found,),) = execute(db, f"SELECT state FROM {OURS}configuration")
            return None if found is None else str(found)

    def advance(self, entry: Entry, state: str) -> None:
        """Apply an entry of a change."""
        with self._connection("apply") as db, transaction(db):
            _move(db, entry, state)

    def row_changes(self, update: bytes) -> list[RowChange]:
        """The changes of rows in an update."""
        found = []
        for change in msgspec.json.decode(update, type=list[Change]) if update else ():
            names = self._tables[change.table].key
            before = tuple(change.key[name] for name in names)
            now = change.key | change.row
            after = tuple(now[name] for name in names) if change.kind == "UPDATE" else None
            found.append(RowChange(change.table, change.kind, before, change.row, after))
        return found

    def ids(self) -> dict[str, int]:
        """The greatest id that each table may have generated."""
        with self._connection("own") as db:
            return {table: following - 1 for table, following in next_ids(db).items()}

    def absorb(self, updates: Sequence[Entry | LocalUpdate]) -> None:
        """Apply updates of any server, with their replies."""
        self._surely(lambda: self._absorb(updates))

    def _absorb(self, updates: Sequence[Entry | LocalUpdate]) -> None:
        with self._connection("apply") as db, transaction(db):
            for update in updates:
                self.patch(db, update.update, f"update {update.seq} ({update.operation})")
                if isinstance(update, Entry):
                    _move(db, update, None)
                else:
                    execute(db, f"REPLACE INTO {OURS}absorbed VALUES (%s, %s)", (update.server, update.position))
                    if update.server == self._server:
                        self._advance(db, update)
            _remember(db, map(Past.of, updates))

    def absorbed(self) -> dict[int, int]:
        """The position of the last local update of each server."""
        with self._connection("read") as db:
            return {int(s): int(p) for s, p in execute(db, f"SELECT server, position FROM {OURS}absorbed")}

    def switch(self, switch: Switch, *, attempt: bool = False) -> str:
        """Begin a configuration. Only a migration needs more than one transaction."""
        if attempt and switch.migration:
            return self._try(switch)
        if switch.migration:
            with self._connection("own") as db:
                execute(db, f"INSERT IGNORE INTO {TORN} VALUES (1)")
            self._step("migrate?")
        try:
            self._surely(lambda: self._merge(switch, attempt))
        except _UndoneError:
            if switch.schema:
                compare(self._plain, self._database, switch.schema)
        if switch.migration:
            self._migrate(switch)
        with self._connection("own") as db:
            return _text(db)

    def _merge(self, switch: Switch, attempt: bool) -> None:
        with self._connection("apply") as db, transaction(db):
            _move(db, switch.entry, switch.state)
            for name, rows in switch.fold.rows.items():
                replace_rows(db, self._tables[name], rows)
            _remember(db, switch.past)
            if not switch.migration:
                _store_ids(db, self._tables, switch)
            if attempt:
                raise _UndoneError

    def _migrate(self, switch: Switch) -> None:
        db = self._plain()
        try:
            with alone(db, self._database):
                unrecord(db)
                migrate(db, switch.migration)
                self._step("migrate")
                record(db)
                self._look_again(db)
        finally:
            db.close()
        with self._connection("own") as db, transaction(db):
            _store_ids(db, self._tables, switch)
            if not self.torn:  # otherwise, the database is being built again
                execute(db, f"DELETE FROM {TORN}")

    def _try(self, switch: Switch) -> str:
        """Execute the migration in another database, with a copy of the rows; return its tables as text."""

        def merge(db: Db) -> None:
            with transaction(db):
                for name, rows in switch.fold.rows.items():
                    replace_rows(db, self._tables[name], rows)

        return tried(self._plain, self._database, self._where, switch.migration, switch.schema, merge)

    def _plain(self, **session: Any) -> Db:
        """A connection for a migration: it accepts many statements, and triggers and foreign keys act."""
        return connect(self._dsn, mode=self.mode, several=True, **{**_PATIENT, **session})

    def _begin_ids(self, db: Db) -> None:
        """Let ids go on where the configuration has said."""
        for table, start in execute(db, f"SELECT relation, start FROM {OURS}ids"):
            if next_ids(db).get(table, start) < start:
                begin_ids(db, table, start)
        execute(db, f"DELETE FROM {OURS}ids")


def _text(db: Db) -> str:
    return "\n".join(f"{name}: {' '.join(found.split())}" for name, found in definitions(db))


def _store_ids(db: Db, known: dict[str, Table], switch: Switch) -> None:
    """Store the first id of each table: above all ids of all servers, with the remainder of this one."""
    execute(db, f"DELETE FROM {OURS}ids")
    for table in known.values():
        if table.generated:
            start = first_id(db, table, switch.rank, switch.servers, switch.ids.get(table.name, 0), switch.gap)
            execute(db, f"INSERT INTO {OURS}ids VALUES (%s, %s)", (table.name, start))


def _move(db: Db, entry: Entry, state: str | None) -> None:
    """The state now contains an entry."""
    ((applied, chain),) = execute(db, f"{PLACE} FOR UPDATE")
    if entry.seq != applied + 1:
        raise ValueError(f"update {entry.seq} cannot follow update {applied}")
    execute(db, MOVE, (entry.seq, follow(chain, entry)))
    if state is not None:
        execute(db, f"UPDATE {OURS}configuration SET state = %s", (state,))


def _remember(db: Db, past: Iterable[Past]) -> None:
    now = time.time()
    for p in past:
        if p.reply:
            execute(db, _PAST, (p.request, p.operation, p.arguments, p.reply, p.seq, p.position, p.server, now))
