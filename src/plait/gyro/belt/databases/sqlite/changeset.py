"""Records the changes of an operation as a changeset: the format of SQLite's session extension, with prepared statements.

A session of the extension reads the schema of each changed table twice and prepares a query for it. For a short
operation, this costs more than the operation. So a `HookRecorder` lives as long as its connection. It works like a session:
before the first change of a row, a hook gives the old row. After the operation, a query gives the present row. What was
rolled back meanwhile is therefore no change. Text must be UTF-8: an operation that changes other text fails.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from plait.gyro.belt.databases.database import OURS
from plait.gyro.belt.ids import TABLE, quoted
from plait.gyro.belt.records import OperationError
from plait.kernel.extras import needs

with needs("serve"):
    import apsw

Row = tuple[Any, ...]
Key = int | bytes
"""What identifies a row: its rowid, if this is the primary key, or else the record of its primary key."""
_integer, _real = struct.Struct(">bq").pack, struct.Struct(">bd").pack
_INSERT, _UPDATE, _DELETE = (bytes((op, 0)) for op in (apsw.SQLITE_INSERT, apsw.SQLITE_UPDATE, apsw.SQLITE_DELETE))
_OPENING, _CLOSING = apsw.SQLITE_INSERT, apsw.SQLITE_DELETE
_ABSENT = b"\0"
"""The place of a value that a record leaves out."""


class _Table:
    """A table with a primary key. Places are those of its stored columns, without generated ones."""

    def __init__(self, db: apsw.Connection, name: str) -> None:
        columns = list(db.execute(f"PRAGMA main.table_xinfo({quoted(name)})"))
        stored = [column for column in columns if not column[6]]
        self.name = name
        self.width = len(columns)
        self.stored = [place for place, column in enumerate(columns) if not column[6]]
        """The places of the stored columns in a row of the hook."""
        self.keys = [place for place, column in enumerate(stored) if column[5]]
        self.others = [place for place, column in enumerate(stored) if not column[5]]
        indexes = [index[3] for index in db.execute(f"PRAGMA main.index_list({quoted(name)})")]
        self.by_rowid = "pk" not in indexes
        """Whether the primary key is the rowid. All others have an index, also INTEGER PRIMARY KEY DESC."""
        names = [quoted(str(column[1])) for column in stored]
        where = " AND ".join(f"{names[place]} = ?" for place in self.keys)
        self.query = f"SELECT {', '.join(names)} FROM main.{quoted(name)} WHERE {where}"
        ordinals = bytes(column[5] for column in stored)  # in the primary key, from 1; 0 for other columns
        self.header = b"T" + _varint(len(stored)) + ordinals + name.encode() + b"\0"
        self.template = [_ABSENT] * len(stored)

    def row(self, values: Row) -> Row:
        """The stored columns of a row of the hook."""
        if len(values) != self.width:
            raise ValueError(f"the table {self.name} has {len(values)} columns now; it had {self.width}")
        return values if len(self.stored) == self.width else tuple(values[place] for place in self.stored)

    def key(self, row: Row) -> bytes:
        """The record of the primary key."""
        values = [row[place] for place in self.keys]
        if None in values:
            raise OperationError("IntegrityError", f"the primary key of {self.name} is NULL")
        return _record(values)

    def change(self, old: Row, new: Row) -> bytes:
        """The record of an update; empty if nothing has changed."""
        before = after = None
        for place in self.others:
            was, now = old[place], new[place]
            if was is not now and (type(was) is not type(now) or was != now or type(was) is float):
                first, second = _encoded(was), _encoded(now)
                if first != second:
                    if before is None or after is None:
                        before, after = self.template.copy(), self.template.copy()
                    before[place], after[place] = first, second
        if before is None or after is None:
            return b""
        for place in self.keys:
            before[place] = _encoded(old[place])
        return _UPDATE + b"".join(before) + b"".join(after)


class Recorder(Protocol):
    """Records what a connection changes."""

    def begin(self) -> None:
        """Record what is changed from now on."""

    def changeset(self) -> bytes:
        """The changes since `begin`."""

    def end(self) -> None:
        """Stop."""


def recorder(db: apsw.Connection) -> Recorder:
    """The recorder of a connection. Call this before any statement that changes a table of the application."""
    return SessionRecorder(db) if list(db.execute(_VIRTUAL)) else HookRecorder(db)


_VIRTUAL = """
SELECT 1 FROM main.sqlite_schema s, pragma_table_xinfo(s.name) c
WHERE s.type = 'table' AND c.hidden = 2
"""
"""Generated columns that are not stored."""


class SessionRecorder:
    """A session for each operation. If a table has generated columns that are not stored, a hook cannot give its rows."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._session: apsw.Session

    def begin(self) -> None:
        """Record what is changed from now on."""
        self._session = apsw.Session(self._db, "main")
        self._session.table_filter(_recorded)
        self._session.attach()

    def changeset(self) -> bytes:
        """The changes since `begin`."""
        made = self._session.changeset()
        for change in apsw.Changeset.iter(made):
            with _unicode(change.name):
                _ = change.old, change.new
        return made

    def end(self) -> None:
        """Stop."""
        self._session.close()


@contextmanager
def _unicode(table: str) -> Iterator[None]:
    """Refuse text that is not UTF-8: what other servers read would differ."""
    try:
        yield
    except UnicodeDecodeError:
        raise OperationError("DataError", f"text in {table} is not UTF-8: store it as a BLOB") from None


def _recorded(table: str) -> bool:
    return table == TABLE or not table.startswith((OURS, "sqlite_"))


class HookRecorder:
    """Rows as a hook saw them. The hook is always there: SQLite compiles statements for it."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._tables: dict[str, _Table | None] = {}
        """The tables; None if their changes are not recorded."""
        self._rows: dict[_Table, dict[Key, tuple[Row, Row | None]]] = {}
        """The rows that were changed: the row as it was found or made, and the row before, if there was one."""
        self._recording = False
        self._failure: Exception | None = None
        db.preupdate_hook(self._seen)
        for (name,) in list(db.execute("SELECT name FROM main.sqlite_schema WHERE type = 'table'")):
            self._describe(name)

    def begin(self) -> None:
        """Record what is changed from now on."""
        self._rows = {}
        self._failure = None
        self._recording = True

    def end(self) -> None:
        """Stop."""
        self._recording = False

    def changeset(self) -> bytes:
        """The changes since `begin`."""
        if self._failure is not None:  # SQLite made the change all the same, and the application may have gone on
            raise self._failure
        found: list[bytes] = []
        for table, rows in self._rows.items():
            if changes := self._changes(table, rows):
                found.append(table.header)
                found += changes
        return b"".join(found)

    def _changes(self, table: _Table, rows: dict[Key, tuple[Row, Row | None]]) -> list[bytes]:
        """The net effect on each row. Rows that are gone come first: other rows may have their unique values now."""
        gone, rest = [], []
        for key, (row, old) in rows.items():
            with _unicode(table.name):
                new = self._present(table, key, row)
            if new is not None and old is not None:
                if update := table.change(old, new):
                    rest.append(update)
            elif new is not None:
                rest.append(_INSERT + _record(new))
            elif old is not None:
                gone.append(_DELETE + _record(old))
        return gone + rest

    def _present(self, table: _Table, key: Key, row: Row) -> Row | None:
        """The row now. The query may also find a row with an equal key, such as 1.0 for 1, or A for a."""
        if table.by_rowid:
            for found in self._db.execute(table.query, (key,)):
                return found  # type: ignore[no-any-return]
            return None
        for found in list(self._db.execute(table.query, [row[place] for place in table.keys])):
            if table.key(found) == key:
                return found  # type: ignore[no-any-return]
        return None

    # -- the hook ----------------------------------------------------------------------------------------------------

    def _seen(self, change: apsw.PreUpdate) -> None:
        """Called by SQLite before it changes a row."""
        if not self._recording:
            return
        try:
            table = self._tables[name] if (name := change.table_name) in self._tables else self._describe(name)
            if table is None or change.database_name != "main":
                return
            rows = self._rows.get(table)
            if rows is None:
                rows = self._rows[table] = {}
            with _unicode(table.name):
                if table.by_rowid:
                    self._note_by_rowid(table, rows, change)
                else:
                    self._note(table, rows, change)
        except Exception as error:
            self._failure = self._failure or error
            raise

    def _note_by_rowid(self, table: _Table, rows: dict[Key, tuple[Row, Row | None]], change: apsw.PreUpdate) -> None:
        kind = change.opcode
        if kind != _OPENING and (key := change.rowid) not in rows:
            old = table.row(change.old)  # type: ignore[arg-type]
            rows[key] = old, old
        if kind != _CLOSING and (key := change.rowid_new) not in rows:
            rows[key] = (), None

    def _note(self, table: _Table, rows: dict[Key, tuple[Row, Row | None]], change: apsw.PreUpdate) -> None:
        if (before := change.old) is not None:
            old = table.row(before)
            rows.setdefault(table.key(old), (old, old))
        if (after := change.new) is not None:
            new = table.row(after)
            rows.setdefault(table.key(new), (new, None))

    def _describe(self, name: str) -> _Table | None:
        table = _Table(self._db, name) if _recorded(name) else None
        found = self._tables[name] = table if table is not None and table.keys else None
        return found


def _record(values: Sequence[Any]) -> bytes:
    """Values, one after the other."""
    return b"".join(map(_encoded, values))


def _encoded(value: Any) -> bytes:
    """A value in a record."""
    kind = type(value)
    if kind is int:
        return _integer(1, value)
    if kind is str:
        text: bytes = value.encode()
        return b"\3" + _varint(len(text)) + text
    if value is None:
        return b"\5"
    if kind is float:
        return _real(2, value)
    blob: bytes = value
    return b"\4" + _varint(len(blob)) + blob


def _varint(number: int) -> bytes:
    """A number as SQLite writes it: seven bits in each byte, the highest ones first.

    >>> _varint(5), _varint(300).hex(" ")
    (b'\\x05', '82 2c')
    """
    if number < 0x80:
        return bytes((number,))
    found = [number & 0x7F]
    while number := number >> 7:
        found.append(number & 0x7F | 0x80)
    return bytes(reversed(found))
