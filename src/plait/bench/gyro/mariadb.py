"""A node of Galera as the DBMS of a server, to measure: every operation is executed at once, and the DBMS coordinates.

It knows nothing of the token, and keeps no replies. What it gives is what Galera gives: transactions on snapshots, of which
conflicting writers are refused when they commit and run again. That is less than serializability.
"""

from __future__ import annotations

import functools
import queue
import random
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from plait.gyro.belt.databases.dbapi import Connection, Cursor
from plait.gyro.belt.databases.placeholders import placeholders
from plait.gyro.belt.logs.log import Log
from plait.gyro.belt.records import Call, DatabaseGoneError, Entry, OperationError, Outcome, failed
from plait.kernel.errors import UsageError
from plait.kernel.extras import needs

with needs("peers"):
    import pymysql
with needs("gyro"):
    import sqlglot
    from sqlglot import exp

DATABASE = "application"
_AGAIN = {1205, 1213, 1180, 1020}
"""Lock waits, deadlocks, transactions that were refused."""
_ATTEMPTS = 100
_HOURS = re.compile(r"datetime\('now', '\+(\d+) hours'\)")


@functools.lru_cache(maxsize=4096)
def translated(sql: str) -> str:
    """A statement of the examples as MariaDB has it.

    >>> translated("UPDATE t SET until = datetime('now', '+2 hours') WHERE id = ?")
    'UPDATE t SET until = NOW() + INTERVAL 2 HOUR WHERE id = %s'
    """
    return placeholders(_HOURS.sub(r"NOW() + INTERVAL \1 HOUR", sql))


def ddl(schema: str) -> list[str]:
    """DDL and data of SQLite for MariaDB: short texts, and keys that the DBMS generates.

    >>> ddl("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT UNIQUE)")
    ['CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(255) UNIQUE)']
    """
    made = []
    for statement in sqlglot.parse(schema, read="sqlite"):
        if statement is None:
            continue
        for column in statement.find_all(exp.ColumnDef):
            if column.kind is None:
                continue
            if column.kind.is_type("text"):
                column.set("kind", exp.DataType.build("varchar(255)"))
            elif column.kind.is_type("int") and column.find(exp.PrimaryKeyColumnConstraint):
                generated = exp.ColumnConstraint(kind=exp.AutoIncrementColumnConstraint())
                column.set("constraints", [generated, *column.constraints])
        made.append(statement.sql("mysql"))
    return made


def fill(db: Any, schema: str) -> None:
    """Make the tables on one node; the others get them from it."""
    try:
        with db.cursor() as cursor:
            for statement in (f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}", *ddl(schema)):
                cursor.execute(statement)
    except pymysql.MySQLError as error:
        raise UsageError(f"MariaDB refuses the schema: {_said(error)}", hint="write it with less of SQLite") from None


class MariadbDatabase:
    """Connections to one node."""

    def __init__(self, socket: str, *, server: int = 0) -> None:
        self._socket = socket
        self._server = server
        self._pool: queue.LifoQueue[Any] = queue.LifoQueue()
        self.refused = 0
        """How often a transaction had to run again."""
        with self._connection():
            pass

    def applied(self) -> int:
        """There are no updates of ours."""
        return 0

    def schema(self) -> str:
        """The tables."""
        with self._connection() as db, db.cursor() as cursor:
            cursor.execute("SHOW TABLES")
            return "\n".join(sorted(str(name) for (name,) in cursor.fetchall()))

    def read(self, call: Call) -> Outcome:
        """Execute an operation that only reads."""
        return Outcome(self._run(call, "START TRANSACTION READ ONLY"), 0, 0)

    def write(self, call: Call) -> Outcome:
        """Execute an operation; if the cluster refuses it, again."""
        return Outcome(self._run(call, "START TRANSACTION"), 0, 0, wrote=True)

    def _run(self, call: Call, begin: str) -> bytes:
        for count in range(_ATTEMPTS):
            with self._connection() as db:
                try:
                    db.query(begin)
                    reply = call.run(MariadbConnection(db))
                    db.commit()
                    return reply
                except pymysql.MySQLError as error:
                    db.rollback()
                    if error.args[0] not in _AGAIN:
                        raise failed(error) from error
                except Exception as error:
                    db.rollback()
                    raise error if isinstance(error, OperationError) else failed(error) from error
            self.refused += 1
            time.sleep(random.random() * 0.001 * min(2**count, 100))
        raise DatabaseGoneError(f"MariaDB of server {self._server} refused it {_ATTEMPTS} times: too many conflicts")

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        db = None
        try:
            try:
                db = self._pool.get_nowait()
            except queue.Empty:
                db = pymysql.connect(unix_socket=self._socket, user="root", database=DATABASE)
            yield db
        except (pymysql.OperationalError, pymysql.InterfaceError) as error:
            raise DatabaseGoneError(f"MariaDB of server {self._server}: {_said(error)}") from None
        finally:
            if db is not None and db.open:
                self._pool.put(db)

    def visit(self) -> NoReturn:
        """Nothing is executed with the token here."""
        raise UsageError("a node of Galera executes no global operations", hint="classify all of them as local")

    def apply(self, entries: Sequence[Entry], server: int) -> NoReturn:
        """Nothing is applied here."""
        raise UsageError("a node of Galera takes no updates of servers", hint="classify all operations as local")

    def settle(self, log: Log) -> None:
        """The cluster settles by itself."""

    def close(self) -> None:
        """Close the connections."""
        while not self._pool.empty():
            self._pool.get_nowait().close()


class MariadbConnection(Connection):
    """A connection to MariaDB."""

    def __init__(self, db: Any) -> None:
        super().__init__()
        self._db = db

    def cursor(self) -> MariadbCursor:
        """A new cursor."""
        return MariadbCursor(self)

    def control(self, sql: str) -> None:
        """Execute a statement about savepoints."""
        self._db.query(sql)

    def undo(self) -> None:
        """Go back; an operation begins with its transaction here."""
        if self.marked:
            super().undo()
        else:
            self._db.rollback()
            self._db.begin()


class MariadbCursor(Cursor):
    """A cursor."""

    connection: MariadbConnection

    def __init__(self, connection: MariadbConnection) -> None:
        super().__init__(connection)
        self._last: int | None = None

    def run(self, sql: str, parameters: Any) -> Iterable[Any]:
        """Execute one statement."""
        with self.connection._db.cursor() as cursor:
            self.rowcount = cursor.execute(translated(sql), parameters or None)
            self.description = cursor.description
            self._last = cursor.lastrowid
            return list(cursor.fetchall()) if self.description else []

    @property
    def lastrowid(self) -> int | None:
        return self._last


def _said(error: Exception) -> str:
    return " ".join(str(a) for a in error.args) or type(error).__name__
