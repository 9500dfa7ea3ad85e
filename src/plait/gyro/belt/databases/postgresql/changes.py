"""A PostgreSQL state that follows a change of the configuration: merges rows, begins new ids."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from plait.gyro.belt.configuration.merge import Past, RowChange
from plait.gyro.belt.databases.changeable import Switch, replace_rows
from plait.gyro.belt.databases.database import OURS
from plait.gyro.belt.databases.postgresql.migration import migrate
from plait.gyro.belt.databases.postgresql.outbox import PostgresqlOutbox, transaction
from plait.gyro.belt.databases.postgresql.rows import Change, definitions, tables
from plait.gyro.belt.records import Entry, LocalUpdate, follow
from plait.kernel.extras import needs

with needs("serve"):
    import psycopg
    from psycopg import sql

CHANGES = f"""
CREATE TABLE IF NOT EXISTS {OURS}configuration (one INTEGER PRIMARY KEY CHECK (one = 1), state TEXT);
INSERT INTO {OURS}configuration VALUES (1, NULL) ON CONFLICT DO NOTHING;
CREATE TABLE IF NOT EXISTS {OURS}past (
  request TEXT PRIMARY KEY, operation TEXT NOT NULL, arguments BYTEA NOT NULL, reply BYTEA NOT NULL, seq BIGINT NOT NULL,
  position BIGINT NOT NULL, server INTEGER NOT NULL, at DOUBLE PRECISION NOT NULL);
CREATE TABLE IF NOT EXISTS {OURS}absorbed (server INTEGER PRIMARY KEY, position BIGINT NOT NULL);
"""
_PLACE = (
    f"SELECT seq, chain FROM (SELECT seq, chain FROM {OURS}tail UNION ALL SELECT applied, chain FROM {OURS}state) AS s "
    "ORDER BY seq DESC LIMIT 1"
)
_MOVE = f"WITH gone AS (DELETE FROM {OURS}tail) UPDATE {OURS}state SET applied = %s, chain = %s"
_PAST = (
    f"INSERT INTO {OURS}past VALUES (%s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (request) DO UPDATE SET "
    "(operation, arguments, reply, seq, position, server, at) = "
    "(excluded.operation, excluded.arguments, excluded.reply, excluded.seq, excluded.position, excluded.server, excluded.at)"
)
_ABSORBED = (
    f"INSERT INTO {OURS}absorbed VALUES (%s, %s) ON CONFLICT (server) DO UPDATE SET position = excluded.position"
)


class _UndoneError(Exception):
    """The attempt is over."""


class PostgresqlChanges(PostgresqlOutbox):
    """The part of a PostgresqlDatabase that follows changes."""

    torn = False
    """A migration is part of a transaction."""

    def configuration(self) -> str | None:
        """The state of the configuration."""
        with self._connection("") as db:
            ((found,),) = db.execute(f"SELECT state FROM {OURS}configuration").fetchall()
            return None if found is None else str(found)

    def advance(self, entry: Entry, state: str) -> None:
        """Apply an entry of a change."""
        with self._connection("apply") as db, transaction(db, "BEGIN"):
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
        """The greatest id that each sequence has generated."""
        found = {}
        with self._connection("") as db:
            for sequence in {s for table in self._tables.values() for s in table.sequences.values()}:
                ((last,),) = db.execute(f"SELECT last_value FROM {sequence}").fetchall()
                found[sequence] = int(last)
        return found

    def absorb(self, updates: Sequence[Entry | LocalUpdate]) -> None:
        """Apply updates of any server, with their replies."""
        with self._connection("apply") as db:
            db.execute("SET session_replication_role = replica")
            with transaction(db, "BEGIN"):
                for update in updates:
                    self.patch(db, update.update, f"update {update.seq} ({update.operation})")
                    if isinstance(update, Entry):
                        _move(db, update, None)
                    else:
                        db.execute(_ABSORBED, (update.server, update.position))
                        if update.server == self._server:
                            self._advance(db, update)
                _remember(db, map(Past.of, updates))

    def absorbed(self) -> dict[int, int]:
        """The position of the last local update of each server."""
        with self._connection("") as db:
            return dict(db.execute(f"SELECT server, position FROM {OURS}absorbed").fetchall())

    def switch(self, switch: Switch, *, attempt: bool = False) -> str:
        """Begin a configuration, in one transaction."""
        text = ""
        with self._connection("apply") as db:
            db.execute("SET session_replication_role = replica")
            try:
                with transaction(db, "BEGIN"):
                    if attempt:  # operations that read go on
                        db.execute("SET LOCAL lock_timeout = '10s'")
                    _move(db, switch.entry, switch.state)
                    for name, rows in switch.fold.rows.items():
                        replace_rows(db, self._tables[name], rows)
                    _remember(db, switch.past)
                    if switch.migration or switch.schema:
                        migrate(db, switch.migration, switch.schema)
                    _begin_ids(db, switch)
                    text = "\n".join(f"{name}: {' '.join(found.split())}" for name, found in definitions(db))
                    if attempt:
                        raise _UndoneError
                    known = tables(db)
                self._tables = known  # a server that joins goes on with them
            except _UndoneError:
                pass
        return text


def _begin_ids(db: psycopg.Connection[Any], switch: Switch) -> None:
    """Begin above all ids of all servers, with the remainder of this one."""
    for table in tables(db).values():
        for column, sequence in table.sequences.items():
            greatest = sql.SQL("SELECT coalesce(max({}), 0) FROM {}").format(
                sql.Identifier(column), sql.Identifier(table.name)
            )
            ((found,),) = db.execute(greatest).fetchall()
            used = max(int(found), switch.ids.get(sequence, 0), 0)
            start = (used // switch.servers + 1 + switch.gap) * switch.servers + switch.rank
            text = f"ALTER SEQUENCE {sequence} INCREMENT BY {switch.servers} RESTART WITH {start}"
            db.execute(text)


def _move(db: psycopg.Connection[Any], entry: Entry, state: str | None) -> None:
    """The state now contains an entry."""
    ((applied, chain),) = db.execute(_PLACE).fetchall()
    if entry.seq != applied + 1:
        raise ValueError(f"update {entry.seq} cannot follow update {applied}")
    db.execute(_MOVE, (entry.seq, follow(chain, entry)))
    if state is not None:
        db.execute(f"UPDATE {OURS}configuration SET state = %s", (state,))


def _remember(db: psycopg.Connection[Any], past: Iterable[Past]) -> None:
    now = time.time()
    for p in past:
        if p.reply:
            row = (p.request, p.operation, p.arguments, p.reply, p.seq, p.position, p.server, now)
            db.execute(_PAST, row)
