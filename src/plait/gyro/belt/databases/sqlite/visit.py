"""The transaction of a visit of the token in SQLite, and the execution of one operation."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from plait.gyro.belt.databases.database import OURS
from plait.gyro.belt.databases.dbapi import SAVEPOINT
from plait.gyro.belt.databases.outbox import remembered
from plait.gyro.belt.databases.sqlite.changeset import Recorder
from plait.gyro.belt.databases.sqlite.connection import GONE, Plans, SqliteConnection
from plait.gyro.belt.databases.sqlite.outbox import RECORD
from plait.gyro.belt.ids import Ids
from plait.gyro.belt.logs.log import BehindError, FencedError, Log, ReplacedError, TooLargeError, append_surely
from plait.gyro.belt.records import Call, Entry, ForkedError, OperationError, Outcome, failed
from plait.kernel.extras import needs

with needs("serve"):
    import apsw

_DONE = f"INSERT INTO {OURS}done (request, operation, arguments, reply, seq, at) VALUES (?, ?, ?, ?, ?, ?)"
_AGAIN = f"""
SELECT reply, seq, position, operation, arguments, NULL FROM {OURS}done WHERE request = ?1 UNION ALL
SELECT reply, seq, position, operation, arguments, server FROM {OURS}past WHERE request = ?1
"""


class SqliteVisit:
    """Global operations, one after the other, in one transaction. It commits only if the log accepts it."""

    def __init__(
        self,
        db: apsw.Connection,
        place: tuple[int, int],
        ids: Ids,
        plans: Plans,
        changes: Recorder,
        step: Callable[[str], None],
    ) -> None:
        self.seq, self.position = place
        self.chain = chain_of(db)
        self.owed = 0
        self._db = db
        self._ids = ids
        self._plans = plans
        self._changes = changes
        self._step = step

    @property
    def alive(self) -> bool:
        """Whether the transaction is still open."""
        return self._db.in_transaction

    def repeated(self, call: Call) -> Outcome | None:
        """The reply of an earlier execution of this request."""
        return repeated(self._db, call)

    def execute(self, call: Call) -> tuple[bytes, bytes]:
        """Execute an operation in its own savepoint; the reply and the changes."""
        return execute(self._db, call, self._ids, self._plans, self._changes)

    def commit(self, entries: Sequence[Entry], log: Log) -> None:
        """Append to the log, then commit. After the append the operations have happened, even if this process dies."""
        if entries:
            now = time.time()
            self._db.executemany(RECORD, [remembered(e, now) for e in entries])
            last = entries[-1]
            self._db.execute(f"UPDATE {OURS}state SET applied = ?, chain = ?", (last.seq, last.chain))
            self._step("captured")
            self.owed = entries[-1].seq  # until the log certainly refuses them
            try:
                append_surely(log, entries)
            except (BehindError, FencedError, ForkedError, ReplacedError, TooLargeError):
                self.owed = 0
                raise
            self._step("appended")
        self._db.execute("COMMIT")
        self.owed = 0
        self._step("committed")


def execute(
    db: apsw.Connection, call: Call, ids: Ids | None, plans: Plans, changes: Recorder | None
) -> tuple[bytes, bytes]:
    """Run the function of the application; the reply, and the changes if they are recorded."""
    if changes is None:
        return _run(db, call, ids, plans, lambda: b"")
    changes.begin()
    try:
        return _run(db, call, ids, plans, changes.changeset)
    finally:
        changes.end()


def _run(
    db: apsw.Connection, call: Call, ids: Ids | None, plans: Plans, changeset: Callable[[], bytes]
) -> tuple[bytes, bytes]:
    """If the function raises, or its changes cannot be recorded, roll back its effects."""
    db.execute(f"SAVEPOINT {SAVEPOINT}")
    try:
        reply = call.run(SqliteConnection(db, ids, plans))
        if db.status(apsw.SQLITE_DBSTATUS_DEFERRED_FKS)[0]:  # the commit would fail, after the append to the log
            raise OperationError("IntegrityError", "FOREIGN KEY constraint failed")
        update = changeset()
    except GONE:
        raise
    except Exception as error:
        if db.in_transaction:  # some errors of SQLite end the transaction
            db.execute(f"ROLLBACK TO {SAVEPOINT}; RELEASE {SAVEPOINT}")
        raise (error if isinstance(error, OperationError) else failed(error)) from error
    db.execute(f"RELEASE {SAVEPOINT}")
    return reply, update


def repeated(db: apsw.Connection, call: Call) -> Outcome | None:
    """The reply of an earlier execution of this request."""
    for reply, seq, position, operation, arguments, server in db.execute(_AGAIN, (call.request,)):
        call.check_same(operation, arguments)
        return Outcome(reply, seq, max(position, 0), repeated=True, server=server)
    return None


def remember(db: apsw.Connection, request: str, operation: str, arguments: bytes, reply: bytes, seq: int) -> int:
    """Store the reply of a local operation, so that the request is not executed again; its position."""
    db.execute(_DONE, (request, operation, arguments, reply, seq, time.time()))
    return db.last_insert_rowid()


def resolve(reason: int, _change: apsw.TableChange) -> int:
    """The changeset wins: replace rows that exist, ignore rows that are missing."""
    if reason in (apsw.SQLITE_CHANGESET_DATA, apsw.SQLITE_CHANGESET_CONFLICT):
        return int(apsw.SQLITE_CHANGESET_REPLACE)
    if reason == apsw.SQLITE_CHANGESET_NOTFOUND:
        return int(apsw.SQLITE_CHANGESET_OMIT)
    return int(apsw.SQLITE_CHANGESET_ABORT)


def chain_of(db: apsw.Connection) -> str:
    """The hash of the updates that the state contains."""
    ((found,),) = db.execute(f"SELECT chain FROM {OURS}state")
    return str(found)
