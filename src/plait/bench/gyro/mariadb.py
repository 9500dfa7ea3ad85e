"""A node of Galera as the DBMS of a server. The server executes each operation at once, and the DBMS coordinates.

It does not use the token, and keeps no replies. It has the guarantees of Galera: transactions run on snapshots; a
writer that conflicts is refused at its commit and runs again. This is weaker than serializability.
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

from plait.gyro.belt.databases.mariadb.connection import (
    CONFLICTS,
    MariadbConnection,
    MariadbCursor,
    line,
    local_socket,
)
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
_AGAIN = {*CONFLICTS, 1180}
"""MariaDB's errors for conflicts, and for transactions that the cluster refuses: the transaction runs again."""
_ATTEMPTS = 100
_HOURS = re.compile(r"datetime\('now', '\+(\d+) hours'\)")


@functools.lru_cache(maxsize=4096)
def translated(sql: str) -> str:
    """Translate a statement of the examples to MariaDB's SQL.

    >>> translated("UPDATE t SET until = datetime('now', '+2 hours') WHERE id = ?")
    'UPDATE t SET until = NOW() + INTERVAL 2 HOUR WHERE id = %s'
    """
    return placeholders(_HOURS.sub(r"NOW() + INTERVAL \1 HOUR", sql))


def ddl(schema: str) -> list[str]:
    """Translate DDL and data from SQLite to MariaDB: texts get a length, and integer keys are generated.

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
    """Create the tables on one node. The other nodes get them from it."""
    try:
        with db.cursor() as cursor:
            for statement in (f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}", *ddl(schema)):
                cursor.execute(statement)
    except pymysql.MySQLError as error:
        raise UsageError(
            f"MariaDB refuses the schema: {line(error)}", hint="use fewer features that only SQLite has"
        ) from None


class GaleraDatabase:
    """Connections to one node."""

    def __init__(self, socket: str, *, server: int = 0) -> None:
        self._socket = socket
        self._server = server
        self._identity: str | None = None
        self._pool: queue.LifoQueue[Any] = queue.LifoQueue()
        self.refused = 0
        """The number of times that a transaction ran again."""
        with self._connection():
            pass

    def applied(self) -> int:
        """Always 0: Galera replicates, so servers apply no updates."""
        return 0

    def written(self) -> int:
        """Always 0: it is not known."""
        return 0

    def chain(self) -> str:
        """Always empty: servers apply no updates."""
        return ""

    def identity(self) -> str | None:
        """The identity while this process runs: Galera itself keeps nodes apart that do not belong together."""
        return self._identity

    def identify(self, identity: str | None) -> None:
        """Set the identity."""
        self._identity = identity

    def schema(self) -> str:
        """The names of the tables."""
        with self._connection() as db, db.cursor() as cursor:
            cursor.execute("SHOW TABLES")
            return "\n".join(sorted(str(name) for (name,) in cursor.fetchall()))

    def values(self) -> NoReturn:
        """Not known: operations have no keys, and execute at the nearest server."""
        raise UsageError("MariaDB cannot route by keys", hint="remove the keys of all routes")

    def read(self, call: Call) -> Outcome:
        """Execute an operation that only reads."""
        return Outcome(self._run(call, "START TRANSACTION READ ONLY"), 0, 0)

    def write(self, call: Call) -> Outcome:
        """Execute an operation. If the cluster refuses it, execute it again."""
        return Outcome(self._run(call, "START TRANSACTION"), 0, 0, wrote=True)

    def _run(self, call: Call, begin: str) -> bytes:
        for count in range(_ATTEMPTS):
            with self._connection() as db:
                try:
                    db.query(begin)
                    reply = call.run(GaleraConnection(db))
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
        raise DatabaseGoneError(
            f"MariaDB of server {self._server} refused the operation {_ATTEMPTS} times because of conflicts"
        )

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        db = None
        try:
            try:
                db = self._pool.get_nowait()
            except queue.Empty:
                db = pymysql.connect(unix_socket=self._socket, user="root", database=DATABASE, defer_connect=True)
                db.connect(local_socket(self._socket))
            yield db
        except (pymysql.OperationalError, pymysql.InterfaceError) as error:
            raise DatabaseGoneError(f"MariaDB of server {self._server}: {line(error)}") from None
        finally:
            if db is not None and db.open:
                self._pool.put(db)

    def visit(self) -> NoReturn:
        """Not supported: a node of Galera does not use the token."""
        raise UsageError("a node of Galera cannot execute global operations", hint="classify all operations as local")

    def together(self, calls: Sequence[Call]) -> None:
        """Always None: there are no global operations."""

    def apply(self, entries: Sequence[Entry], server: int) -> NoReturn:
        """Not supported: a node of Galera applies no updates of other servers."""
        raise UsageError(
            "a node of Galera cannot apply updates of other servers", hint="classify all operations as local"
        )

    def settle(self, log: Log) -> None:
        """Do nothing: the cluster recovers by itself."""

    def close(self) -> None:
        """Close the connections."""
        while not self._pool.empty():
            self._pool.get_nowait().close()


class GaleraConnection(MariadbConnection):
    """A connection to a node, in a transaction without savepoints."""

    def cursor(self) -> GaleraCursor:
        """A new cursor."""
        return GaleraCursor(self)

    def undo(self) -> None:
        """Undo to the last savepoint, or to the start of the transaction."""
        if self.marked:
            super().undo()
        else:
            self._db.rollback()
            self._db.begin()


class GaleraCursor(MariadbCursor):
    """A cursor that translates statements of the examples."""

    def run(self, sql: str, parameters: Any) -> Iterable[Any]:
        """Execute one statement."""
        return super().run(translated(sql), parameters)
