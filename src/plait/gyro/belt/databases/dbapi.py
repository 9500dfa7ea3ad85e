"""DB-API connections for the application's functions: its transaction is the middleware's, so it commits when that does.

An operation is one transaction (Saissi 2019, section 2.4): nobody sees what it did before its function has returned, and if
that raises, nothing of it stays. `commit` only says how far back `rollback` goes. Rows are tuples whose columns have names
as well. This is what connections to all DBMSs have in common; `sqliteapi.py` and `pgapi.py` execute
statements.
"""

from __future__ import annotations

import abc
import functools
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self

SAVEPOINT = "gyro_operation"
"""Where an operation begins."""
_COMMIT = "gyro_commit"
"""Where it called commit()."""


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


class Connection(abc.ABC):
    """A connection inside of a transaction that is not its own."""

    dialect = ""
    """What SQLAlchemy calls the DBMS; empty if it does not run on such connections (`alchemy.py`)."""

    def __init__(self) -> None:
        self.row_factory: Any = None
        """Accepted, and without effect: rows have names in any case."""
        self.native = False
        """Whether SQL has the placeholders of the DBMS's own driver, and no others."""
        self.marked = False
        """Whether commit() was called, and statements executed since."""
        self._committed = False
        """Whether commit() was called, and nothing executed since."""

    @abc.abstractmethod
    def cursor(self) -> Cursor:
        """A new cursor."""

    @abc.abstractmethod
    def control(self, sql: str) -> None:
        """Execute a statement about savepoints."""

    def execute(self, sql: str, parameters: Any = ()) -> Cursor:
        """Execute a statement on a new cursor."""
        return self.cursor().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Any]) -> Cursor:
        """Execute a statement for each of several parameters."""
        return self.cursor().executemany(sql, parameters)

    def commit(self) -> None:
        """Let rollback() go back to here. The middleware commits when the function has returned."""
        self._committed = True

    def rollback(self) -> None:
        """Undo what the operation did since the last commit()."""
        if not self._committed:
            self.undo()

    def undo(self) -> None:
        """Go back to the last commit(), or to the beginning."""
        self.control(f"ROLLBACK TO SAVEPOINT {_COMMIT if self.marked else SAVEPOINT}")

    def proceed(self) -> None:
        """A statement will be executed."""
        if self._committed:
            if self.marked:
                self.control(f"RELEASE SAVEPOINT {_COMMIT}")
            self.control(f"SAVEPOINT {_COMMIT}")
            self._committed, self.marked = False, True

    def close(self) -> None:  # noqa: B027
        """Nothing: the connection is the middleware's."""

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


class Cursor(abc.ABC):
    """A cursor. A statement has run when `execute` returns, whether or not its rows are fetched."""

    arraysize = 1

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.description: Sequence[Any] | None = None
        self.rowcount = -1
        self._rows: list[Row] = []
        self._next = 0

    @abc.abstractmethod
    def run(self, sql: str, parameters: Any) -> Iterable[Any]:
        """Execute one statement, note `description` and `rowcount`; the rows."""

    @property
    @abc.abstractmethod
    def lastrowid(self) -> int | None:
        """The id that the last INSERT made."""

    def execute(self, sql: str, parameters: Any = ()) -> Self:
        """Execute one statement."""
        refuse_control(sql)
        self.connection.proceed()
        rows = self.run(sql, parameters if isinstance(parameters, dict) else tuple(parameters))
        names = tuple(str(d[0]) for d in self.description or ())
        self._rows = [Row.of(names, row) for row in rows]
        self._next = 0
        return self

    def executemany(self, sql: str, parameters: Iterable[Any]) -> Self:
        """Execute one statement for each of several parameters."""
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


_CONTROL = {
    "ABORT", "ALTER", "ATTACH", "BEGIN", "COMMIT", "CREATE", "DETACH", "DISCARD", "DROP", "END", "PRAGMA", "PREPARE",
    "RELEASE", "RESET", "ROLLBACK", "SAVEPOINT", "SET", "START", "VACUUM",
}  # fmt: skip
_ASIDE = re.compile(r"""'(?:''|[^'])*'|"[^"]*"|--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\1\$""", re.DOTALL)
"""What may hold a semicolon, or stand before the first word."""


def refuse_control(sql: object) -> None:
    """Statements that would take the transaction, or the database, out of the middleware's hands.

    >>> refuse_control("SELECT ';'; /* done */ COMMIT")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    sqlite3.NotSupportedError: COMMIT in an operation: transaction, session and schema are the middleware's; ...
    """
    if not isinstance(sql, str):
        kind = type(sql).__name__
        raise sqlite3.NotSupportedError(
            f"a statement of type {kind}, and this is a DB-API connection, which takes SQL as a string; "
            "annotate the parameter with sqlalchemy.Connection to be given one of SQLAlchemy"
        )
    if (word := _forbidden(sql)) is not None:
        raise sqlite3.NotSupportedError(
            f"{word} in an operation: transaction, session and schema are the middleware's; "
            "an operation is one transaction, and may call commit() and rollback()"
        )


@functools.lru_cache(maxsize=4096)
def _forbidden(sql: str) -> str | None:
    """The first word of a statement in it that is not allowed."""
    words = [part.split(None, 1)[0].upper() for part in _ASIDE.sub(" ", sql).split(";") if part.strip()]
    return next((word for word in words if word in _CONTROL), None)
