"""DB-API connections to PostgreSQL for functions of the application, with placeholders of SQLite or psycopg."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from plait.gyro.belt.databases.dbapi import Connection, Cursor
from plait.gyro.belt.databases.placeholders import placeholders
from plait.kernel.extras import needs

with needs("serve"):
    import psycopg
    from psycopg import errors


class PgConnection(Connection):
    """A connection to PostgreSQL."""

    dialect = "postgresql"

    def __init__(self, db: psycopg.Connection[Any]) -> None:
        super().__init__()
        self._db = db
        self.conflict: Exception | None = None
        """The serialization failure of a statement, even if the function catches the exception."""

    def cursor(self) -> PgCursor:
        """A new cursor."""
        return PgCursor(self)

    def control(self, sql: str) -> None:
        """Execute a statement for savepoints."""
        self._db.execute(sql)

    @property
    def closed(self) -> bool:
        return self._db.closed

    @property
    def broken(self) -> bool:
        return self._db.broken


class PgCursor(Cursor):
    """A cursor. It queries the generated id of an INSERT only when `lastrowid` is read."""

    connection: PgConnection

    def __init__(self, connection: PgConnection) -> None:
        super().__init__(connection)
        self._cursor = connection._db.cursor()

    def run(self, sql: str, parameters: Any) -> Iterable[Any]:
        """Execute one statement."""
        if not self.connection.native:
            sql, parameters = placeholders(sql), parameters or None
        try:
            self._cursor.execute(sql, parameters)
        except (errors.SerializationFailure, errors.DeadlockDetected) as error:
            self.connection.conflict = error
            raise
        self.description = self._cursor.description
        self.rowcount = self._cursor.rowcount
        return self._cursor.fetchall() if self.description else []

    @property
    def lastrowid(self) -> int | None:
        ((found,),) = self.connection._db.execute("SELECT lastval()").fetchall()
        return int(found)
