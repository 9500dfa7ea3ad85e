"""DB-API connections for the functions of the application. The server controls the transaction and commits it.

An operation is one transaction (Saissi 2019, section 2.4). Its effects are visible only after its function has
returned. If the function raises, all effects are rolled back. `commit` only sets the point to which `rollback`
returns. Rows are tuples; columns also have names. This file has the common part for all DBMSs. `connection.py` in
`sqlite` and `postgresql` execute statements.
"""

from __future__ import annotations

import abc
import functools
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Protocol, Self

SAVEPOINT = "gyro_operation"
"""The savepoint at the beginning of an operation."""
_COMMIT = "gyro_commit"
"""The savepoint of the last commit()."""


class Row(tuple[Any, ...]):
    """A row: a tuple whose columns can also be accessed by name.

    >>> row = Row.of(("id", "stock"), (7, 3))
    >>> row[1], row["stock"], row == (7, 3), list(row.keys())
    (3, 3, True, ['id', 'stock'])
    """

    _names: tuple[str, ...]

    @classmethod
    def of(cls, names: tuple[str, ...], values: Iterable[Any]) -> Row:
        """A row with column names."""
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
            raise IndexError(f"the row has no column {key}")
        return tuple.__getitem__(self, key)


class Watch(Protocol):
    """Sees the statements of an operation (`plait.gyro.web.contract`)."""

    def before(self, sql: str, parameters: Any) -> None:
        """Called before a statement is executed. An exception prevents it."""

    def run(self, execute: Callable[[], Iterable[Any]]) -> Iterable[Any]:
        """Execute a statement; return its rows."""

    def after(self, sql: str, names: Sequence[str], rows: Sequence[Any], last: Callable[[], int | None]) -> None:
        """Called with the rows of a statement, and a function that returns the id of the last inserted row."""

    def made(self, uuid: str) -> None:
        """Called when the operation has made a UUID."""


class Connection(abc.ABC):
    """A connection inside of a transaction that the server controls."""

    dialect = ""
    """The name of the DBMS in SQLAlchemy; empty if SQLAlchemy is not supported (`alchemy.py`)."""

    def __init__(self) -> None:
        self.row_factory: Any = None
        """It can be set, but has no effect: rows always have names."""
        self.native = False
        """Whether SQL uses only the placeholders of the driver of the DBMS."""
        self.marked = False
        """Whether statements were executed after a commit()."""
        self.watch: Watch | None = None
        """Sees each statement before and after its execution, and may refuse it."""
        self._committed = False
        """Whether commit() was called, and no statement was executed after it."""

    @abc.abstractmethod
    def cursor(self) -> Cursor:
        """A new cursor."""

    @abc.abstractmethod
    def control(self, sql: str) -> None:
        """Execute a statement for savepoints."""

    def execute(self, sql: str, parameters: Any = ()) -> Cursor:
        """Execute a statement on a new cursor."""
        return self.cursor().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Any]) -> Cursor:
        """Execute a statement once for each set of parameters."""
        return self.cursor().executemany(sql, parameters)

    def commit(self) -> None:
        """Set the point to which rollback() returns. The server commits when the function has returned."""
        self._committed = True

    def rollback(self) -> None:
        """Undo all changes of the operation since the last commit()."""
        if not self._committed:
            self.undo()

    def undo(self) -> None:
        """Return to the last commit(), or to the beginning of the operation."""
        self.control(f"ROLLBACK TO SAVEPOINT {_COMMIT if self.marked else SAVEPOINT}")

    def proceed(self) -> None:
        """Prepare the execution of a statement."""
        if self._committed:
            if self.marked:
                self.control(f"RELEASE SAVEPOINT {_COMMIT}")
            self.control(f"SAVEPOINT {_COMMIT}")
            self._committed, self.marked = False, True

    def close(self) -> None:  # noqa: B027
        """Do nothing: the server closes the connection."""

    def end(self) -> None:
        """Refuse all statements from now on: the operation has ended, and other operations use the DBMS."""
        self.watch = None
        self._committed = True
        self.control = self.proceed = _ended  # type: ignore[method-assign, assignment]

    @property
    def in_transaction(self) -> bool:
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.rollback()


def _ended(_sql: str = "") -> None:
    raise sqlite3.ProgrammingError(
        "the connection belongs to an operation that has ended: close sessions and connections at the end of each request"
    )


class Cursor(abc.ABC):
    """A cursor. `execute` runs the whole statement, even if its rows are not fetched."""

    arraysize = 1

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.description: Sequence[Any] | None = None
        self.rowcount = -1
        self._rows: list[Row] = []
        self._next = 0

    @abc.abstractmethod
    def run(self, sql: str, parameters: Any) -> Iterable[Any]:
        """Execute one statement, set `description` and `rowcount`, return the rows."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns of the rows."""
        return tuple(str(d[0]) for d in self.description or ())

    @property
    @abc.abstractmethod
    def lastrowid(self) -> int | None:
        """The id of the last inserted row."""

    def execute(self, sql: str, parameters: Any = ()) -> Self:
        """Execute one statement."""
        refuse_control(sql)
        connection = self.connection
        watch = connection.watch
        given = parameters if isinstance(parameters, dict) else tuple(parameters)
        if watch is not None:
            watch.before(sql, given)
        if connection._committed:
            connection.proceed()
        rows = self.run(sql, given) if watch is None else watch.run(lambda: self.run(sql, given))
        names = self.names
        self._rows = [Row.of(names, row) for row in rows]
        self._next = 0
        if watch is not None:
            watch.after(sql, names, self._rows, lambda: self.lastrowid)
        return self

    def executemany(self, sql: str, parameters: Iterable[Any]) -> Self:
        """Execute one statement once for each set of parameters."""
        total = 0
        for each in parameters:
            total += max(self.execute(sql, each).rowcount, 0)
        self.rowcount = total
        return self

    def fetchone(self) -> Row | None:
        """The next row."""
        if self._next >= len(self._rows):
            return None
        self._next += 1
        return self._rows[self._next - 1]

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """The next rows, at most `size`."""
        found = self._rows[self._next : self._next + (self.arraysize if size is None else size)]
        self._next += len(found)
        return found

    def fetchall(self) -> list[Row]:
        """All remaining rows."""
        found = self._rows[self._next :]
        self._next = len(self._rows)
        return found

    def __iter__(self) -> Iterator[Row]:
        while (row := self.fetchone()) is not None:
            yield row

    def close(self) -> None:
        """Discard the rows."""
        self._rows = []


_CONTROL = {
    "ABORT", "ALTER", "ATTACH", "BEGIN", "COMMIT", "CREATE", "DETACH", "DISCARD", "DROP", "END", "PRAGMA", "PREPARE",
    "RELEASE", "RESET", "ROLLBACK", "SAVEPOINT", "SET", "START", "VACUUM",
}  # fmt: skip
_ASIDE = re.compile(r"""'(?:''|[^'])*'|"[^"]*"|--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\1\$""", re.DOTALL)
"""Strings and comments: they may contain a semicolon or precede the first word."""


def refuse_control(sql: object) -> None:
    """Refuse statements that would change the transaction, the session or the schema.

    >>> refuse_control("SELECT ';'; /* done */ COMMIT")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    sqlite3.NotSupportedError: COMMIT in an operation: the server controls transaction, session and schema; ...
    """
    if not isinstance(sql, str):
        kind = type(sql).__name__
        raise sqlite3.NotSupportedError(
            f"a statement of type {kind} on a DB-API connection: expected SQL as a string; "
            "annotate the parameter with sqlalchemy.Connection to get a connection of SQLAlchemy"
        )
    if (word := _forbidden(sql)) is not None:
        raise sqlite3.NotSupportedError(
            f"{word} in an operation: the server controls transaction, session and schema; "
            "an operation is one transaction, and may call commit() and rollback()"
        )


@functools.lru_cache(maxsize=4096)
def _forbidden(sql: str) -> str | None:
    """The first word of a forbidden statement; None if all statements are allowed."""
    words = [part.split(None, 1)[0].upper() for part in _ASIDE.sub(" ", sql).split(";") if part.strip()]
    return next((word for word in words if word in _CONTROL), None)
