"""DB-API connections to PostgreSQL for the application's functions; SQL may have SQLite's placeholders or psycopg's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Self

import psycopg
from psycopg import errors

from plait.gyro.belt.dbapi import Row, Rows, refuse_control
from plait.gyro.belt.placeholders import placeholders

SAVEPOINT = "gyro_operation"


class PgConnection:
    """A connection inside of a transaction that is not its own."""

    def __init__(self, db: psycopg.Connection[Any]) -> None:
        self._db = db
        self.conflict: Exception | None = None
        """A refusal for the sake of serializability, whatever the function makes of it."""
        self.row_factory: Any = None

    def cursor(self) -> PgCursor:
        """A new cursor."""
        return PgCursor(self)

    def execute(self, sql: str, parameters: Any = ()) -> PgCursor:
        """Execute a statement on a new cursor."""
        return self.cursor().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Any]) -> PgCursor:
        """Execute a statement for each of several parameters."""
        return self.cursor().executemany(sql, parameters)

    def commit(self) -> None:
        """Nothing: the middleware commits when the function has returned."""

    def rollback(self) -> None:
        """Undo what the operation did so far."""
        self._db.execute(f"ROLLBACK TO SAVEPOINT {SAVEPOINT}")

    def close(self) -> None:
        """Nothing: the connection is the middleware's."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.rollback()


class PgCursor(Rows):
    """A cursor. The id that an INSERT generated is asked for when it is wanted."""

    def __init__(self, connection: PgConnection) -> None:
        super().__init__()
        self.connection = connection
        self._cursor = connection._db.cursor()

    def execute(self, sql: str, parameters: Any = ()) -> PgCursor:
        """Execute one statement."""
        refuse_control(sql)
        given = parameters if isinstance(parameters, dict) else tuple(parameters)
        try:
            self._cursor.execute(placeholders(sql), given or None)
        except (errors.SerializationFailure, errors.DeadlockDetected) as error:
            self.connection.conflict = error
            raise
        self._next = 0
        described = self._cursor.description
        names = tuple(str(d.name) for d in described or ())
        self._rows = [Row.of(names, row) for row in self._cursor.fetchall()] if described else []
        return self

    def executemany(self, sql: str, parameters: Iterable[Any]) -> PgCursor:
        """Execute one statement for each of several parameters."""
        for each in parameters:
            self.execute(sql, each)
        return self

    @property
    def description(self) -> Sequence[Any] | None:
        return self._cursor.description

    @property
    def rowcount(self) -> int:
        return self._cursor.rowcount

    @property
    def lastrowid(self) -> int:
        ((found,),) = self.connection._db.execute("SELECT lastval()").fetchall()
        return int(found)
