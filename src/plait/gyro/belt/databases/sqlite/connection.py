"""DB-API connections to SQLite for functions of the application, with the exceptions of the module sqlite3."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Self

from plait.gyro.belt.databases.dbapi import Connection, Cursor, Row
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


Description = Sequence[Any] | None


class Plan(NamedTuple):
    """What is known about a statement that was executed before. It does not change, because the schema does not."""

    sql: str
    """The statement, with generated ids."""
    description: Description
    names: tuple[str, ...]


Plans = dict[str, Plan]
"""By the statement of the application."""
_MOST = 4096


class SqliteConnection(Connection):
    """A connection to SQLite."""

    dialect = "sqlite"

    def __init__(self, db: apsw.Connection, ids: Ids | None, plans: Plans | None = None) -> None:
        super().__init__()
        self._db = db
        self._ids = ids
        self._plans = {} if plans is None else plans

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


class SqliteSnapshot(SqliteConnection):
    """A connection that only reads. There is nothing to undo, so it needs no savepoints."""

    def __init__(self, db: apsw.Connection, plans: Plans | None = None) -> None:
        super().__init__(db, None, plans)

    def control(self, sql: str) -> None:
        """Do nothing."""


class SqliteCursor(Cursor):
    """A cursor."""

    connection: SqliteConnection

    def __init__(self, connection: SqliteConnection) -> None:
        super().__init__(connection)
        self._last: int | None = None
        self._names: tuple[str, ...] = ()

    def execute(self, sql: str, parameters: Any = ()) -> Self:
        """Execute one statement. Many operations execute the same ones, so this takes the shortest way if it is known."""
        connection = self.connection
        plan = connection._plans.get(sql) if type(sql) is str else None
        if plan is None or connection.watch is not None or connection._committed:
            return super().execute(sql, parameters)
        rows = self._fetch(plan, parameters if isinstance(parameters, dict) else tuple(parameters))
        names = plan.names
        self._rows = [Row.of(names, row) for row in rows]
        self._next = 0
        return self

    def run(self, sql: str, parameters: Any) -> Iterable[Any]:
        """Execute one statement."""
        plans, ids = self.connection._plans, self.connection._ids
        if (plan := plans.get(sql)) is not None:
            return self._fetch(plan, parameters)
        plan = Plan(sql if ids is None else ids.rewrite(sql), None, ())
        rows = self._fetch(plan, parameters, new=True)
        if len(plans) >= _MOST:
            plans.clear()
        self._names = super().names
        plans[sql] = Plan(plan.sql, self.description, self._names)
        return rows

    def _fetch(self, plan: Plan, parameters: Any, *, new: bool = False) -> list[Any]:
        """Execute a statement; its rows."""
        db = self.connection._db
        before = db.total_changes()
        self.description, self._names = plan.description, plan.names
        try:
            cursor = db.cursor()
            if new:
                cursor.exec_trace = self._described
            rows = list(cursor.execute(plan.sql, parameters))
        except apsw.Error as error:
            raise translated(error) from error
        self.rowcount = db.changes() if db.total_changes() > before else (0 if not self.description else -1)
        self._last = db.last_insert_rowid()
        return rows

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns of the rows."""
        return self._names

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
