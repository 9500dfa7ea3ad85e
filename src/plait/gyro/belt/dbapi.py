"""DB-API connections for the application's functions: its transaction is the middleware's, so it commits when that does.

`commit` and `with connection:` mean nothing here: an operation is one transaction (thesis 004, section 2.4). `rollback`
undoes what the operation did so far. Rows are tuples whose columns have names as well.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self

import apsw

from plait.gyro.belt.ids import Ids

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
)
"""Errors that are not the application's."""
SAVEPOINT = "gyro_operation"


class Row(tuple[Any, ...]):
    """A row: by number, by name of the column, and as a tuple.

    >>> row = Row.of(("id", "stock"), (7, 3))
    >>> row[1], row["stock"], row == (7, 3), list(row.keys())
    (3, 3, True, ['id', 'stock'])
    """

    _names: tuple[str, ...]

    @classmethod
    def of(cls, names: tuple[str, ...], values: Iterable[Any]) -> Row:
        """A row with names."""
        row = cls(values)
        row._names = names
        return row

    def keys(self) -> list[str]:
        """The names of the columns."""
        return list(self._names)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            lowered = key.lower()
            for number, name in enumerate(self._names):
                if name.lower() == lowered:
                    return tuple.__getitem__(self, number)
            raise IndexError(f"no column {key}")
        return tuple.__getitem__(self, key)


class Connection:
    """A DB-API connection to SQLite inside of a transaction that is not its own."""

    def __init__(self, db: apsw.Connection, ids: Ids | None) -> None:
        self._db = db
        self._ids = ids
        self.row_factory: Any = None
        """Accepted, and without effect: rows have names in any case."""

    def cursor(self) -> Cursor:
        """A new cursor."""
        return Cursor(self)

    def execute(self, sql: str, parameters: Any = ()) -> Cursor:
        """Execute a statement on a new cursor."""
        return self.cursor().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Any]) -> Cursor:
        """Execute a statement for each of several parameters."""
        return self.cursor().executemany(sql, parameters)

    def commit(self) -> None:
        """Nothing: the middleware commits when the function has returned."""

    def rollback(self) -> None:
        """Undo what the operation did so far."""
        self._db.execute(f"ROLLBACK TO {SAVEPOINT}")

    def close(self) -> None:
        """Nothing: the connection is the middleware's."""

    @property
    def in_transaction(self) -> bool:
        return True

    @property
    def total_changes(self) -> int:
        return self._db.total_changes()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.rollback()


class Rows:
    """The rows of the statement that a cursor executed last, to be fetched."""

    arraysize = 1

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._next = 0

    def fetchone(self) -> Row | None:
        """The next row."""
        if self._next >= len(self._rows):
            return None
        self._next += 1
        return self._rows[self._next - 1]

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """The next few rows."""
        found = self._rows[self._next : self._next + (self.arraysize if size is None else size)]
        self._next += len(found)
        return found

    def fetchall(self) -> list[Row]:
        """All rows that are left."""
        found = self._rows[self._next :]
        self._next = len(self._rows)
        return found

    def __iter__(self) -> Iterator[Row]:
        while (row := self.fetchone()) is not None:
            yield row

    def close(self) -> None:
        """Forget the rows."""
        self._rows = []


class Cursor(Rows):
    """A DB-API cursor. A statement has run when `execute` returns, whether or not its rows are fetched."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self.connection = connection
        self.description: Sequence[tuple[Any, ...]] | None = None
        self.rowcount = -1
        self.lastrowid: int | None = None

    def execute(self, sql: str, parameters: Any = ()) -> Cursor:
        """Execute one statement."""
        db, ids = self.connection._db, self.connection._ids
        refuse_control(sql)
        if ids is not None:
            sql = ids.rewrite(sql)
        before = db.total_changes()
        try:
            cursor = db.cursor()
            cursor.execute(sql, parameters if isinstance(parameters, dict) else tuple(parameters))
            names = tuple(str(d[0]) for d in cursor.get_description()) if _returns(cursor) else ()
            self._rows = [Row.of(names, row) for row in cursor]
        except apsw.Error as error:
            raise translated(error) from error
        self._next = 0
        self.description = [(n, None, None, None, None, None, None) for n in names] or None
        self.rowcount = db.changes() if db.total_changes() > before else (0 if not names else -1)
        self.lastrowid = db.last_insert_rowid()
        return self

    def executemany(self, sql: str, parameters: Iterable[Any]) -> Cursor:
        """Execute one statement for each of several parameters."""
        total = 0
        for each in parameters:
            total += max(self.execute(sql, each).rowcount, 0)
        self.rowcount = total
        return self


def _returns(cursor: apsw.Cursor) -> bool:
    """Whether the statement that was executed returns rows."""
    try:
        cursor.get_description()
    except apsw.ExecutionCompleteError:
        return False
    return True


_CONTROL = (
    "BEGIN",
    "COMMIT",
    "END",
    "ROLLBACK",
    "SAVEPOINT",
    "RELEASE",
    "ATTACH",
    "DETACH",
    "PRAGMA",
    "VACUUM",
    "PREPARE",
)


def refuse_control(sql: object) -> None:
    """Statements that would take the transaction, or the database, out of the middleware's hands.

    >>> refuse_control(7)
    Traceback (most recent call last):
    ...
    sqlite3.NotSupportedError: a statement of type int: connections that are served take SQL as a string
    """
    if not isinstance(sql, str):
        kind = type(sql).__name__
        raise sqlite3.NotSupportedError(f"a statement of type {kind}: connections that are served take SQL as a string")
    word = sql.lstrip().split(None, 1)[0].rstrip(";").upper() if sql.strip() else ""
    if word in _CONTROL or word in ("CREATE", "DROP", "ALTER"):
        raise sqlite3.NotSupportedError(
            f"{word} in an operation: transactions and the schema are the middleware's; call commit() or rollback() instead"
            if word in _CONTROL
            else f"{word} in an operation: the schema is fixed while servers run"
        )


def translated(error: apsw.Error) -> Exception:
    """The exception that Python's sqlite3 module raises for it, so that the application's handlers work."""
    if isinstance(error, GONE):
        return error
    for kind, known in _ERRORS:
        if isinstance(error, kind):
            return known(str(error))
    return sqlite3.OperationalError(str(error))
