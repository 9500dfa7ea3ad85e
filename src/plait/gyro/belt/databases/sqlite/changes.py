"""A SQLite state that follows a change of the configuration: merges rows, migrates tables, begins new ids."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence

from plait.gyro.belt.configuration.merge import Fold, Past, RowChange
from plait.gyro.belt.databases.changeable import MigrationError, Switch
from plait.gyro.belt.databases.database import OURS
from plait.gyro.belt.databases.sqlite.outbox import SqliteOutbox
from plait.gyro.belt.ids import TABLE, quoted
from plait.gyro.belt.records import Entry, LocalUpdate, follow
from plait.kernel.extras import needs

with needs("serve"):
    import apsw

CHANGES = f"""
CREATE TABLE IF NOT EXISTS {OURS}configuration (one INTEGER PRIMARY KEY CHECK (one = 1), state TEXT);
INSERT OR IGNORE INTO {OURS}configuration VALUES (1, NULL);
CREATE TABLE IF NOT EXISTS {OURS}past (
  request TEXT PRIMARY KEY, operation TEXT NOT NULL, arguments BLOB NOT NULL, reply BLOB NOT NULL, seq INTEGER NOT NULL,
  position INTEGER NOT NULL, server INTEGER NOT NULL, at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS {OURS}absorbed (server INTEGER PRIMARY KEY, position INTEGER NOT NULL);
"""
_VARYING = {"random", "randomblob", "current_timestamp", "current_date", "current_time", "last_insert_rowid"}
"""Functions of SQL whose results differ between servers."""
_PAST = f"INSERT OR REPLACE INTO {OURS}past VALUES (?, ?, ?, ?, ?, ?, ?, ?)"


class SqliteChanges(SqliteOutbox):
    """The part of a SqliteDatabase that follows changes."""

    torn = False
    """A migration is part of a transaction."""

    def configuration(self) -> str | None:
        """The state of the configuration."""
        with self._reader() as db:
            ((found,),) = db.execute(f"SELECT state FROM {OURS}configuration")
            return None if found is None else str(found)

    def advance(self, entry: Entry, state: str) -> None:
        """Apply an entry of a change."""
        with self._turn, self._transaction(self._remote) as db:
            _move(db, entry, state)

    def row_changes(self, update: bytes) -> list[RowChange]:
        """The changes of rows in a changeset."""
        with self._reader() as db:
            return list(_row_changes(db, update))

    def ids(self) -> dict[str, int]:
        """Nothing: the counters are rows."""
        return {}

    def absorb(self, updates: Sequence[Entry | LocalUpdate]) -> None:
        """Apply updates of any server, with their replies."""
        with self._turn, self._transaction(self._remote) as db:
            for update in updates:
                self.patch(db, update.update, f"update {update.seq} ({update.operation})")
                if isinstance(update, Entry):
                    _move(db, update, None)
                else:
                    db.execute(f"REPLACE INTO {OURS}absorbed VALUES (?, ?)", (update.server, update.position))
                    if update.server == self._server:
                        self._advance(db, update)
            _remember(db, map(Past.of, updates))

    def absorbed(self) -> dict[int, int]:
        """The position of the last local update of each server."""
        with self._reader() as db:
            return {int(server): int(position) for server, position in db.execute(f"SELECT * FROM {OURS}absorbed")}

    def switch(self, switch: Switch, *, attempt: bool = False) -> str:
        """Begin a configuration, in one transaction."""
        with self._turn, self._transaction(self._remote) as db:
            db.execute("SAVEPOINT gyro_switch")
            _move(db, switch.entry, switch.state)
            _merge(db, switch.fold)
            _remember(db, switch.past)
            if switch.migration or switch.schema:
                _migrate(db, switch)
            _begin_ids(db, switch)
            text = schema_of(db)
            db.execute("ROLLBACK TO gyro_switch" if attempt else "RELEASE gyro_switch")
            return text


def _move(db: apsw.Connection, entry: Entry, state: str | None) -> None:
    """The state now contains an entry."""
    ((applied, chain),) = db.execute(f"SELECT applied, chain FROM {OURS}state")
    if entry.seq != applied + 1:
        raise ValueError(f"update {entry.seq} cannot follow update {applied}")
    db.execute(f"UPDATE {OURS}state SET applied = ?, chain = ?", (entry.seq, follow(chain, entry)))
    if state is not None:
        db.execute(f"UPDATE {OURS}configuration SET state = ?", (state,))


def _remember(db: apsw.Connection, past: Iterable[Past]) -> None:
    now = time.time()
    db.executemany(
        _PAST,
        [(p.request, p.operation, p.arguments, p.reply, p.seq, p.position, p.server, now) for p in past if p.reply],
    )


def _row_changes(db: apsw.Connection, update: bytes) -> Iterator[RowChange]:
    if not update:
        return
    for change in apsw.Changeset.iter(update):
        names = [name for name, *_ in columns_of(db, change.name)]
        places = sorted(change.pk_columns)
        image = change.new if change.opcode == apsw.SQLITE_INSERT else change.old
        assert image is not None  # only an INSERT has no old image
        key = tuple(image[place] for place in places)
        new = change.new or ()
        values = {names[n]: value for n, value in enumerate(new) if value is not apsw.no_change}
        kind = {apsw.SQLITE_INSERT: "INSERT", apsw.SQLITE_UPDATE: "UPDATE"}.get(change.opcode, "DELETE")
        yield RowChange(change.name, kind, key, values)


def _merge(db: apsw.Connection, fold: Fold) -> None:
    """Replace the rows of the net effect: first all are removed, so that unique values never meet."""
    for table, rows in fold.rows.items():
        columns = [name for name, *_ in columns_of(db, table)]
        keys = [name for name, place in sorted(key_of(db, table).items(), key=lambda each: each[1])]
        name, where = quoted(table), " AND ".join(f"{quoted(k)} = ?" for k in keys)
        listed = ", ".join(map(quoted, columns))
        made = []
        for row in rows.values():
            if row is None:
                continue
            found = dict.fromkeys(columns)
            if row.base is not None:
                bases = list(db.execute(f"SELECT {listed} FROM {name} WHERE {where}", row.base))
                if not bases:
                    continue
                found = dict(zip(columns, bases[0], strict=True))
            made.append(tuple((found | row.values)[c] for c in columns))
        db.executemany(f"DELETE FROM {name} WHERE {where}", rows)
        db.executemany(f"INSERT INTO {name} ({listed}) VALUES ({', '.join('?' * len(columns))})", made)


def _migrate(db: apsw.Connection, switch: Switch) -> None:
    """Execute the migration. Afterwards the tables must be those of the schema."""
    refused: list[str] = []

    def authorize(action: int, first: str | None, second: str | None, *_: object) -> int:
        """Refuse what would end the transaction, depend on the server, or touch the tables of the protocol."""
        what = {
            apsw.SQLITE_TRANSACTION: f"{first} ends the transaction",
            apsw.SQLITE_SAVEPOINT: "SAVEPOINT is not possible in a migration",
            apsw.SQLITE_ATTACH: "ATTACH is not possible in a migration",
            apsw.SQLITE_PRAGMA: f"PRAGMA {first} is not possible in a migration",
        }.get(action)
        if action == apsw.SQLITE_FUNCTION and str(second).lower() in _VARYING:
            what = f"{second} differs between servers"
        if str(first).lower().startswith(OURS):
            what = f"{first} belongs to the servers"
        if what is not None:
            refused.append(what)
        return int(apsw.SQLITE_OK if what is None else apsw.SQLITE_DENY)

    if re.search(r"'\s*now\s*'", switch.migration, re.IGNORECASE):
        raise MigrationError("'now' differs between servers")
    try:
        db.authorizer = authorize
        try:
            db.execute(switch.migration)
        finally:
            db.authorizer = None
        if broken := list(db.execute("PRAGMA foreign_key_check")):
            raise MigrationError(f"a row of {broken[0][0]} has no row of {broken[0][2]} that it refers to")
    except apsw.Error as error:
        raise MigrationError(refused[0] if refused else str(error)) from None
    if switch.schema:
        with apsw.Connection(":memory:") as fresh:
            fresh.execute(switch.schema)
            expected, found = structure(fresh), structure(db)
        for what in sorted(expected.keys() | found.keys()):
            if expected.get(what) != found.get(what):
                raise MigrationError(
                    f"{what} is {found.get(what, 'missing')} after it, and {expected.get(what, 'missing')} in the schema"
                )


def _begin_ids(db: apsw.Connection, switch: Switch) -> None:
    """Begin above all ids of all servers, with the remainders of the members."""
    last = {str(name): int(found) for name, found in db.execute(f"SELECT name, max(last) FROM {TABLE} GROUP BY name")}
    db.execute(f"DELETE FROM {TABLE}")
    for table in tables_of(db):
        keys = key_of(db, table)
        kinds = {name: kind for name, kind, *_ in columns_of(db, table)}
        if len(keys) != 1 or kinds[next(iter(keys))].upper() != "INTEGER":
            continue
        ((greatest,),) = db.execute(f"SELECT max({quoted(next(iter(keys)))}) FROM {quoted(table)}")
        base = (max(last.get(table.lower(), 0), greatest or 0) // switch.servers + switch.gap) * switch.servers
        for rank in range(switch.servers):
            db.execute(f"INSERT INTO {TABLE} VALUES (?, ?, ?)", (table.lower(), rank, base + rank))


# -- the schema --------------------------------------------------------------------------------------------------------


def tables_of(db: apsw.Connection) -> list[str]:
    """The tables of the application."""
    found = db.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY name"
    )
    return [str(name) for (name,) in found if not str(name).startswith(OURS)]


def columns_of(db: apsw.Connection, table: str) -> list[tuple[str, str, bool, str | None]]:
    """The stored columns of a table: name, type, whether NULL is forbidden, default."""
    rows = db.execute(f"PRAGMA table_xinfo({quoted(table)})")
    return [(str(r[1]), str(r[2]), bool(r[3]), r[4]) for r in rows if r[6] == 0]


def key_of(db: apsw.Connection, table: str) -> dict[str, int]:
    """The columns of the primary key, by their place in the table."""
    rows = list(db.execute(f"PRAGMA table_xinfo({quoted(table)})"))
    return {str(r[1]): int(r[0]) for r in rows if r[5]}


def schema_of(db: apsw.Connection) -> str:
    """Tables, indexes, views and triggers: a line of each, with its name and its definition."""
    found = db.execute("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name")
    return "\n".join(
        f"{kind} {name}: {' '.join(str(text).split())}"
        for kind, name, text in found
        if not str(name).startswith((OURS, "sqlite_"))
    )


def structure(db: apsw.Connection) -> dict[str, str]:
    """What the analysis relies on, whatever the text of the definitions is: columns, keys, triggers, views."""
    found: dict[str, str] = {}
    for table in tables_of(db):
        found[f"the table {table}"] = "there"
        for place, row in enumerate(db.execute(f"PRAGMA table_xinfo({quoted(table)})")):
            found[f"the column {table}.{row[1]}"] = f"number {place + 1}, {row[2]}, {row[3:]}"
        for row in db.execute(f"PRAGMA foreign_key_list({quoted(table)})"):
            found[f"the foreign key {table}.{row[3]}"] = f"{row[2:]}"
        for row in list(db.execute(f"PRAGMA index_list({quoted(table)})")):
            columns = ", ".join(str(c[2]) for c in db.execute(f"PRAGMA index_info({quoted(str(row[1]))})"))
            if row[2]:
                found[f"the unique key of {table} ({columns})"] = "partial" if row[4] else "there"
    for kind, name, text in db.execute("SELECT type, name, sql FROM sqlite_schema WHERE type IN ('trigger', 'view')"):
        if not str(name).startswith(OURS):
            found[f"the {kind} {name}"] = " ".join(str(text).split())
    return found
