"""DB-API connections to SQLite for functions of the application, with the exceptions of the module sqlite3."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

from plait.gyro.belt.databases.dbapi import Connection, Cursor
from plait.gyro.belt.ids import Ids
from plait.kernel.extras import needs

with needs("serve"):
    import apsw

_ERRORS: list[tuple[type[apsw.Error], type[sqlite3.Error]]] = [
    (apsw.ConstraintError, sqlite3.IntegrityError),
    (apsw.MismatchError, sqlite3.IntegrityError),
    (apsw.TooBigError, sqlite3.DataError),
    (apsw.MisuseError, sqlite3.ProgrammingError),
    (apsw.BindingsError, sqlite3.ProgrammingError),
    (apsw.InternalError, sqlite3.InternalError),
]
GONE = (
    apsw.IOError,
    apsw.FullError,
    apsw.CorruptError,
    apsw.CantOpenError,
    apsw.NotADBError,
    apsw.BusyError,
    apsw.ConnectionClosedError,
    apsw.InterruptError,  # the database is being closed
)
"""Errors of the database, not of the application."""


class SqliteConnection(Connection):
    """A connection to SQLite."""

    dialect = "sqlite"

    def __init__(self, db: apsw.Connection, ids: Ids | None) -> None:
        super().__init__()
        self._db = db
        self._ids = ids

    def cursor(self) -> SqliteCursor:
        """A new cursor."""
        return SqliteCursor(self)

    def control(self, sql: str) -> None:
        """Execute a statement for savepoints."""
        try:
            self._db.execute(sql)
        except apsw.Error as error:
            raise translated(error) from error

    def undo(self) -> None:
        """Roll back, unless SQLite has already rolled back because of an error."""
        if self._db.in_transaction:
            super().undo()

    @property
    def total_changes(self) -> int:
        return self._db.total_changes()


class SqliteCursor(Cursor):
    """A cursor."""

    connection: SqliteConnection

    def __init__(self, connection: SqliteConnection) -> None:
        super().__init__(connection)
        self._last: int | None = None

    def run(self, sql: str, parameters: Any) -> Iterable[Any]:
        """Execute one statement."""
        db, ids = self.connection._db, self.connection._ids
        if ids is not None:
            sql = ids.rewrite(sql)
        before = db.total_changes()
        try:
            cursor = db.cursor()
            cursor.exec_trace = self._described
            rows = list(cursor.execute(sql, parameters))
        except apsw.Error as error:
            raise translated(error) from error
        self.rowcount = db.changes() if db.total_changes() > before else (0 if not self.description else -1)
        self._last = db.last_insert_rowid()
        return rows

    def _described(self, cursor: apsw.Cursor, _sql: str, _parameters: Any) -> bool:
        """Store the columns before the first row. Without rows, they are not available afterwards."""
        self.description = [(name, None, None, None, None, None, None) for name, *_ in cursor.get_description()] or None
        return True

    @property
    def lastrowid(self) -> int | None:
        return self._last


def translated(error: apsw.Error) -> Exception:
    """The exception that the module sqlite3 would raise, so that the application can catch it."""
    if isinstance(error, GONE):
        return error
    for kind, known in _ERRORS:
        if isinstance(error, kind):
            return known(str(error))
    return sqlite3.OperationalError(str(error))
