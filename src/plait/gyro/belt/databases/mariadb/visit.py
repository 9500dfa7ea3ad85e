"""A visit in MariaDB: global operations, one after the other, in one XA transaction."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from plait.gyro.belt.databases.database import OURS
from plait.gyro.belt.databases.dbapi import SAVEPOINT
from plait.gyro.belt.databases.mariadb.connection import CONFLICTS, Db, MariadbConnection, code, execute, gone, inserted
from plait.gyro.belt.databases.mariadb.outbox import RECORD
from plait.gyro.belt.databases.mariadb.rows import Row, Table
from plait.gyro.belt.databases.outbox import remembered
from plait.gyro.belt.logs.log import Log, append_surely
from plait.gyro.belt.records import Call, DatabaseGoneError, Entry, OperationError, Outcome, failed
from plait.kernel.extras import needs

with needs("serve"):
    import pymysql

_NOT_FREE = 1397
"""The branch does not exist, or it still belongs to the connection of a process that has just died."""
_SETTLE = 30.0
"""How long recovery waits, in seconds, until MariaDB notices that such a connection is gone."""
_DONE = f"INSERT INTO {OURS}done (request, operation, arguments, reply, seq, at) VALUES (%s, %s, %s, %s, %s, %s)"
RECORDED = f"DELETE FROM {OURS}changes RETURNING n, relation, kind, old, new"
_AGAIN = (
    f"SELECT reply, seq, position, operation, arguments, NULL FROM {OURS}done WHERE request = %s UNION ALL "
    f"SELECT reply, seq, position, operation, arguments, server FROM {OURS}past WHERE request = %s"
)
PLACE = f"SELECT applied, chain FROM {OURS}state"
MOVE = f"UPDATE {OURS}state SET applied = %s, chain = %s"


class Change(msgspec.Struct, array_like=True):
    """The change of one row: its table, the kind of change, its key, and the changed columns."""

    table: str
    kind: str
    key: Row
    row: Row


class MariadbVisit:
    """Global operations, one after the other, in one transaction. It commits only if the log accepts it."""

    def __init__(
        self,
        db: Db,
        position: int,
        known: dict[str, Table],
        server: int,
        database: str,
        step: Callable[[str], None],
        repeated: Callable[[Call], Outcome | None],
    ) -> None:
        self._db = db
        self._tables = known
        self._step = step
        self._repeated = repeated
        self.position = position
        self.finished = self.prepared = False
        first = last_seq(db) + 1
        self._branch = branch(server, first, secrets.token_hex(4), database)
        execute(db, f"XA START {self._branch}")
        self.seq, self.chain = place(db)
        if self.seq + 1 != first:
            raise DatabaseGoneError("another process applies updates to this database")

    @property
    def alive(self) -> bool:
        """Whether the transaction is still open."""
        return bool(self._db.open)

    def repeated(self, call: Call) -> Outcome | None:
        """The reply of an earlier execution of this request. It is read without locks: replies are never changed."""
        return self._repeated(call)

    def execute(self, call: Call) -> tuple[bytes, bytes]:
        """Execute an operation in its own savepoint. Triggers record the changes."""
        reply, _ = run(self._db, call)
        return reply, changes(execute(self._db, RECORDED), self._tables)

    def commit(self, entries: Sequence[Entry], log: Log) -> None:
        """Prepare the transaction, append to the log, commit."""
        for entry in entries:
            execute(self._db, RECORD, remembered(entry, time.time()))
        if entries:
            execute(self._db, MOVE, (entries[-1].seq, entries[-1].chain))
            self._step("captured")
        execute(self._db, f"XA END {self._branch}")
        if not entries:
            execute(self._db, f"XA COMMIT {self._branch} ONE PHASE")
            self.finished = True
            return
        execute(self._db, f"XA PREPARE {self._branch}")
        self.prepared = True
        self._step("prepared")
        try:
            append_surely(log, entries)
        except Exception:
            execute(self._db, f"XA ROLLBACK {self._branch}")
            self.finished = True
            raise
        self._step("appended")
        execute(self._db, f"XA COMMIT {self._branch}")
        self.finished = True
        self._step("committed")

    def abandon(self) -> None:
        """Roll back if it did not commit. If it is prepared, only the log knows what becomes of it: leave it to `settle`."""
        if self.finished or not self._db.open:
            return
        if self.prepared:
            self._db.close()
            return
        with suppress(pymysql.MySQLError):  # it has ended already, or can only be rolled back
            execute(self._db, f"XA END {self._branch}")
        try:
            execute(self._db, f"XA ROLLBACK {self._branch}")
        except pymysql.MySQLError:
            self._db.close()


def branch(server: int, seq: int, salt: str, database: str) -> str:
    """The name of a transaction: server, the seq of its first update, and the database. XA names are global in a MariaDB."""
    return f"'{OURS}{server}:{seq}:{salt}', '{_digest(database)}'"


def _digest(database: str) -> str:
    return hashlib.blake2b(database.encode(), digest_size=16).hexdigest()


def settle(db: Db, server: int, database: str, log: Log) -> None:
    """Commit the prepared transactions of this server that are in the log, and roll back the others.

    At most one visit is prepared at a time, because it has locked `gyro_state`. The next one begins after this function.
    So an update of this server with this seq is the one of the prepared visit.
    """
    for _, length, _, data in execute(db, "XA RECOVER"):
        name = data.decode("utf-8", "replace") if isinstance(data, bytes) else str(data)
        gtrid, rest = name[:length], name[length:]
        if rest != _digest(database) or not gtrid.startswith(f"{OURS}{server}:"):
            continue
        seq = int(gtrid.split(":")[1])
        entries = log.read(seq - 1, 1)
        logged = bool(entries) and (entries[0].seq, entries[0].holder) == (seq, server)
        _end(db, f"XA {'COMMIT' if logged else 'ROLLBACK'} '{gtrid}', '{rest}'")


def _end(db: Db, statement: str) -> None:
    deadline = time.monotonic() + _SETTLE
    while True:
        try:
            execute(db, statement)
            return
        except pymysql.MySQLError as error:
            if code(error) != _NOT_FREE or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def last_seq(db: Db) -> int:
    """The seq of the last applied update, read without locks."""
    return int(execute(db, PLACE)[0][0])


def place(db: Db) -> tuple[int, str]:
    """The last update that the state contains, and the hash of the updates."""
    ((seq, chain),) = execute(db, PLACE)
    return int(seq), str(chain)


def changes(rows: Sequence[tuple[Any, ...]], known: dict[str, Table]) -> bytes:
    """The rows that triggers have recorded, as a state update; empty if no column has changed."""
    found = []
    for _, name, kind, old, new in sorted(rows):
        if (made := known[name].change(kind, old, new)) is not None:
            found.append(Change(name, kind, *made))
    return msgspec.json.encode(found) if found else b""


def run(db: Db, call: Call, *, snapshot: bool = False) -> tuple[bytes, bool]:
    """Run the function of the application; its reply, and whether it may have written. If it raises, roll back."""
    execute(db, f"SAVEPOINT {SAVEPOINT}")
    connection = MariadbConnection(db, snapshot=snapshot)
    try:
        reply = call.run(connection)
        if connection.conflict is not None:
            raise connection.conflict  # the function caught it
    except Exception as error:
        if connection.conflict is not None:
            raise connection.conflict from None
        if isinstance(error, pymysql.MySQLError) and (gone(error) or code(error) in CONFLICTS or not db.open):
            raise
        execute(db, f"ROLLBACK TO SAVEPOINT {SAVEPOINT}")
        execute(db, f"RELEASE SAVEPOINT {SAVEPOINT}")
        raise (error if isinstance(error, OperationError) else failed(error)) from error
    execute(db, f"RELEASE SAVEPOINT {SAVEPOINT}")
    return reply, connection.wrote


def repeated(db: Db, call: Call) -> Outcome | None:
    """The reply of an earlier execution of this request."""
    for reply, seq, position, operation, arguments, server in execute(db, _AGAIN, (call.request, call.request)):
        call.check_same(operation, arguments)
        return Outcome(reply, seq, max(position, 0), repeated=True, server=server)
    return None


def remember(db: Db, request: str, operation: str, arguments: bytes, reply: bytes, seq: int) -> int:
    """Store the reply of a local operation. Returns its position."""
    return inserted(db, _DONE, (request, operation, arguments, reply, seq, time.time()))
