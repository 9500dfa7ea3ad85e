"""The PostgreSQL of a server: serializable transactions, triggers that record updates, two-phase commit with the log.

**Why the order is right.** The global operations of a visit are one transaction. A visit begins after the previous one
has committed. Local operations run at the same time. All transactions have the isolation level SERIALIZABLE.
PostgreSQL refuses every transaction that would be the pivot of two consecutive rw-dependencies whose last transaction
committed first. The proof that no cycle remains uses only one fact about wr- and ww-dependencies: one transaction
committed before the other took its snapshot. This is also true of two visits. So there is a serial order of all
transactions in which visits have the order of the log.

**Why the log is right.** PostgreSQL detects conflicts no later than PREPARE TRANSACTION. So a visit is prepared, then
appended to the log, then committed. A prepared transaction survives a crash of the server and of PostgreSQL. Recovery
commits it if the log contains it, and rolls it back otherwise.
"""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from plait.gyro.belt.databases.database import OURS, AgainError
from plait.gyro.belt.databases.dbapi import SAVEPOINT
from plait.gyro.belt.databases.outbox import local_update, remembered
from plait.gyro.belt.databases.postgresql.changes import CHANGES, PostgresqlChanges
from plait.gyro.belt.databases.postgresql.connection import PgConnection
from plait.gyro.belt.databases.postgresql.outbox import RECORD, transaction
from plait.gyro.belt.databases.postgresql.role import confirm_role
from plait.gyro.belt.databases.postgresql.rows import LOCAL, SLOTS, Change, Table, definitions, install, tables
from plait.gyro.belt.databases.postgresql.values import PostgresqlValues
from plait.gyro.belt.logs.log import Log, append_surely
from plait.gyro.belt.records import (
    Call,
    DatabaseGoneError,
    Entry,
    OperationError,
    Outcome,
    failed,
    follow,
)
from plait.kernel.errors import UsageError
from plait.kernel.extras import needs

if TYPE_CHECKING:
    from plait.gyro.belt.databases.postgresql.group import PostgresqlGroup

with needs("serve"):
    import psycopg
    from psycopg import errors, pq, sql

_BEGIN = "BEGIN ISOLATION LEVEL SERIALIZABLE"
CONFLICTS = (errors.SerializationFailure, errors.DeadlockDetected)
_GONE = (psycopg.OperationalError, psycopg.InterfaceError)
_ATTEMPTS = 50
_DONE = (
    f"INSERT INTO {OURS}done (request, operation, arguments, reply, seq, at) "
    "VALUES (%s, %s, %s, %s, %s, %s) RETURNING position"
)
_MOVE = f"WITH gone AS (DELETE FROM {OURS}tail) UPDATE {OURS}state SET applied = %s, chain = %s"
_AGAIN = (
    f"SELECT reply, seq, position, operation, arguments, NULL::int FROM {OURS}done WHERE request = %(request)s UNION ALL "
    f"SELECT reply, seq, position, operation, arguments, server FROM {OURS}past WHERE request = %(request)s"
)
_CHECK = "SAVEPOINT gyro_check; SET CONSTRAINTS ALL IMMEDIATE; ROLLBACK TO gyro_check; RELEASE gyro_check"
"""Check deferred constraints now, so that the operation fails, and not its commit. They stay deferred."""

Result = TypeVar("Result")


class PostgresqlDatabase(PostgresqlChanges):
    """One database: a pool of connections for local operations, one for visits, one for updates of other servers."""

    def __init__(
        self,
        dsn: str,
        *,
        server: int = 0,
        servers: int = 1,
        rank: int | None = None,
        schema: str = "",
        step: Callable[[str], None] = lambda _: None,
        keep: float = 3600.0,
        parallel: int = 8,
        shipping: int = 0,
    ) -> None:
        self._dsn = dsn
        self._server, self._servers = server, servers
        self._rank = server if rank is None else rank
        self._shipping = shipping
        """The maximal size of a local update; 0 if local updates are not shipped."""
        self._used: dict[str, int] = {}
        """The greatest id of each sequence, in updates that were replayed."""
        self._step = step
        self._keep = keep
        self._pruned = time.time()
        self._alone = threading.Lock() if parallel == 1 else None
        """If local operations run one at a time, the positions in replies give the order of commits."""
        self._closed = False
        self._pool: queue.LifoQueue[psycopg.Connection[Any]] = queue.LifoQueue()
        self._own: dict[str, psycopg.Connection[Any]] = {}
        try:
            with self._connection("") as db:
                install(db, schema, server if rank is None else rank, servers, bool(shipping))
                db.execute(CHANGES)
                confirm_role(db, server)
                self._tables = tables(db)
                self._position = _int(db, f"SELECT last_value * is_called::int FROM {OURS}done_position_seq")
                ((prepared,),) = db.execute("SHOW max_prepared_transactions").fetchall()
                self._workers = min(SLOTS, int(prepared) - 1)
                if int(prepared) < 2:
                    raise UsageError(
                        f"PostgreSQL of server {server}: max_prepared_transactions is {prepared}, expected at least 2",
                        hint="set it to 10 in postgresql.conf and restart PostgreSQL",
                    )
        except BaseException as error:
            self.close()
            if isinstance(error, _GONE):
                raise DatabaseGoneError(f"PostgreSQL of server {server}: {_line(error)}") from None
            if isinstance(error, psycopg.Error):
                raise UsageError(
                    f"PostgreSQL of server {server} refuses the schema or the data: {_line(error)}",
                    hint="correct the SQL; the role must own the database, but needs no superuser (deploy/gyro/role.sql)",
                ) from None
            raise

    def identity(self) -> str | None:
        """The identity of this state."""
        with self._connection("") as db:
            ((found,),) = db.execute(f"SELECT identity FROM {OURS}identity").fetchall()
            return None if found is None else str(found)

    def identify(self, identity: str | None) -> None:
        """Store the identity durably."""
        with self._connection("") as db:
            db.execute(f"UPDATE {OURS}identity SET identity = %s", (identity,))

    def chain(self) -> str:
        """The hash of the updates that the state contains."""
        return self._surely(self._place)[1]

    def schema(self) -> str:
        """Tables, constraints, indexes, triggers, views, types and functions: a line of each, with its definition."""
        with self._connection("") as db:
            return "\n".join(f"{name}: {' '.join(text.split())}" for name, text in definitions(db))

    def values(self) -> PostgresqlValues:
        """The columns of this DBMS, and what they store."""
        return PostgresqlValues(lambda: self._connection(""))

    # -- operations --------------------------------------------------------------------------------------------------

    def applied(self) -> int:
        """The seq of the last update that the state contains."""
        return self._surely(self._place)[0]

    def written(self) -> int:
        """How many local operations have begun to commit. A crash does not make it smaller: the next visit flushes it."""
        return self._query(f"SELECT last_value * is_called::int FROM {OURS}done_position_seq")

    def _query(self, statement: str) -> int:
        with self._connection("") as db:
            return _int(db, statement)

    def _place(self) -> tuple[int, str]:
        with self._connection("") as db:
            return place(db)

    def read(self, call: Call) -> Outcome:
        """Execute at SERIALIZABLE and READ ONLY. A write is an error, which reveals a wrong classification."""
        with self._alone or nullcontext():
            return self._surely(lambda: self._local(call, f"{_BEGIN} READ ONLY", reads=True))

    def write(self, call: Call) -> Outcome:
        """Execute a local operation. The reply is stored in the same transaction, so a request executes only once."""
        with self._alone or nullcontext():
            return self._surely(lambda: self._local(call, _BEGIN, reads=False))

    def _local(self, call: Call, begin: str, *, reads: bool) -> Outcome:
        with self._connection("") as db:
            if not reads and (again := _repeated(db, call)) is not None:
                return again
            recorded = bool(self._shipping) and not reads
            with transaction(db, begin):
                if recorded:
                    db.execute("SET LOCAL gyro.capture = 'local'")
                seq, _ = place(db)
                reply = run(db, call)
                wrote = not reads and _int(db, "SELECT (pg_current_xact_id_if_assigned() IS NOT NULL)::int") == 1
                position = self._position
                if wrote:
                    arguments = msgspec.json.encode(call.arguments)
                    try:
                        position = remember(db, call.request, call.operation, arguments, reply, seq)
                    except errors.UniqueViolation:
                        raise AgainError from None  # the same request came twice at the same time
                    if recorded:
                        rows = db.execute(f"SELECT * FROM {OURS}local_changes").fetchall()
                        update = changes(rows, self._tables)
                        self.post(
                            db,
                            local_update(self._server, seq, position, call, arguments, reply, update, self._shipping),
                        )
            if self._alone is not None:
                self._position = max(position, self._position)
            self._prune(db)
            return Outcome(reply, seq, position, wrote)

    @contextmanager
    def visit(self) -> Iterator[PostgresqlVisit]:
        """Begin the transaction of a visit."""
        try:
            with self._connection("visit") as db:
                db.execute(_BEGIN)
                try:
                    db.execute("SET LOCAL gyro.capture = 'on'")
                    yield PostgresqlVisit(db, *place(db), self._position, self._tables, self._server, self._step)
                finally:
                    if not db.closed and db.info.transaction_status != pq.TransactionStatus.IDLE:
                        db.execute("ROLLBACK")
        except CONFLICTS:
            raise AgainError from None

    def together(self, calls: Sequence[Call]) -> AbstractContextManager[PostgresqlGroup] | None:
        """Begin the transactions of operations that run at the same time; None if they have run before, or are too many."""
        if not 2 <= len(calls) <= self._workers:
            return None
        return self._group(calls)

    @contextmanager
    def _group(self, calls: Sequence[Call]) -> Iterator[PostgresqlGroup]:
        with ExitStack() as stack:
            guard, *connections = (stack.enter_context(self._connection(f"group{n}")) for n in range(len(calls) + 1))
            yield self.groups()(guard, connections, self._tables, self._server, self._step)

    @staticmethod
    def groups() -> type[PostgresqlGroup]:
        """The class of groups. Its module imports this one."""
        from plait.gyro.belt.databases.postgresql.group import PostgresqlGroup

        return PostgresqlGroup

    def apply(self, entries: Sequence[Entry], server: int) -> None:
        """Apply new updates in order. One transaction also stores the seq of the last one."""
        self._surely(lambda: self._apply(entries, server))
        self._step("applied")

    def _apply(self, entries: Sequence[Entry], server: int) -> None:
        with self._connection("apply") as db:
            db.execute("SET session_replication_role = replica")  # their effects are part of the update
            with transaction(db, _BEGIN):
                applied, chain = place(db)
                for entry in entries:
                    if entry.seq <= applied:
                        continue
                    if entry.seq != applied + 1:
                        raise ValueError(f"update {entry.seq} cannot follow update {applied}")
                    chain = follow(chain, entry)
                    self.change(db, entry)
                    if entry.holder == server:
                        self.record(db, entry)
                    applied = entry.seq
                db.execute(_MOVE, (applied, chain))

    def change(self, db: psycopg.Connection[Any], entry: Entry) -> None:
        """Apply one update."""
        self.patch(db, entry.update, f"update {entry.seq} ({entry.operation} at server {entry.holder})")

    def patch(self, db: psycopg.Connection[Any], update: bytes, name: str) -> None:
        """Apply row images."""
        try:
            for change in msgspec.json.decode(update, type=list[Change]) if update else ():
                table = self._tables[change.table]
                table.apply(db, change.kind, change.key, change.row)
                for column, sequence in table.sequences.items():
                    if (used := change.row.get(column)) is not None:
                        self._used[sequence] = max(int(used), self._used.get(sequence, 0))
        except (KeyError, psycopg.IntegrityError, psycopg.ProgrammingError) as error:
            raise DatabaseGoneError(
                f"{name} cannot be applied here: {error}; "
                "the states of the servers differ, or the schema of the analysis lacks a unique column"
            ) from None

    def settle(self, log: Log) -> None:
        """Commit the prepared transactions that are in the log, and roll back the others."""
        with self._connection("") as db:
            mine = f"{OURS}{self._server}:%"
            found = db.execute(
                "SELECT gid FROM pg_prepared_xacts WHERE database = current_database() AND gid LIKE %s", (mine,)
            )
            parts = {gid: [int(part) for part in gid.split(":")[1:]] for (gid,) in found.fetchall()}
            for gid, (epoch, turn, seq) in sorted(parts.items(), key=lambda each: each[1][-1]):
                entries = log.read(seq - 1, 1)
                logged = bool(entries) and (entries[0].seq, entries[0].epoch, entries[0].turn, entries[0].holder) == (
                    seq, epoch, turn, self._server,
                )  # fmt: skip
                db.execute(sql.SQL(f"{'COMMIT' if logged else 'ROLLBACK'} PREPARED {{}}").format(sql.Literal(gid)))

    def _prune(self, db: psycopg.Connection[Any]) -> None:
        now = time.time()
        if now - self._pruned > self._keep / 10:
            self._pruned = now
            db.execute(f"DELETE FROM {OURS}done WHERE at < %s", (now - self._keep,))
            db.execute(f"DELETE FROM {OURS}past WHERE at < %s", (now - self._keep,))

    # -- connections -------------------------------------------------------------------------------------------------

    @contextmanager
    def _connection(self, name: str) -> Iterator[psycopg.Connection[Any]]:
        """The connection with this name, or one of the pool. A broken connection is discarded."""
        db = self._own.pop(name, None) if name else None
        try:
            db = db or (None if name else self._pool.get_nowait())
        except queue.Empty:
            db = None
        try:
            if db is None or db.closed:
                if self._closed:
                    raise DatabaseGoneError("the server is shutting down")
                db = psycopg.connect(self._dsn, autocommit=True, connect_timeout=5)
                if self._shipping and not name:
                    self._set_up(db)
            yield db
        except _GONE as error:
            if isinstance(error, CONFLICTS):
                raise
            raise DatabaseGoneError(f"PostgreSQL of server {self._server}: {_line(error)}") from None
        finally:
            if db is not None and not db.closed:
                if self._closed or db.info.transaction_status != pq.TransactionStatus.IDLE:
                    db.close()
                else:
                    if name:
                        self._own[name] = db
                    else:
                        self._pool.put(db)
                    if self._closed:
                        self.close()

    @staticmethod
    def _set_up(db: psycopg.Connection[Any]) -> None:
        try:
            db.execute(LOCAL)
        except BaseException:
            db.close()
            raise

    def _surely(self, attempt: Callable[[], Result]) -> Result:
        """Retry until PostgreSQL reports no serialization failure."""
        for count in range(_ATTEMPTS):
            try:
                return attempt()
            except (*CONFLICTS, AgainError):
                time.sleep(random.random() * 0.001 * min(2**count, 100))
        raise DatabaseGoneError(f"PostgreSQL of server {self._server}: {_ATTEMPTS} serialization failures in a row")

    def close(self) -> None:
        """Close the unused connections. Others are closed after their use."""
        self._closed = True
        with suppress(queue.Empty):
            while True:
                self._pool.get_nowait().close()
        for name in list(self._own):
            if (db := self._own.pop(name, None)) is not None:
                db.close()


class PostgresqlVisit:
    """Global operations, one after the other, in one transaction. It commits only if the log accepts it."""

    def __init__(
        self,
        db: psycopg.Connection[Any],
        seq: int,
        chain: str,
        position: int,
        known: dict[str, Table],
        server: int,
        step: Callable[[str], None],
    ) -> None:
        self.seq, self.chain, self.position = seq, chain, position
        self._db = db
        self._tables = known
        self._server = server
        self._step = step

    @property
    def alive(self) -> bool:
        """Whether the transaction is still open."""
        return self._db.info.transaction_status == pq.TransactionStatus.INTRANS

    def repeated(self, call: Call) -> Outcome | None:
        """The reply of an earlier execution of this request."""
        return _repeated(self._db, call)

    def execute(self, call: Call) -> tuple[bytes, bytes]:
        """Execute an operation in its own savepoint. Triggers record the changes."""
        reply = run(self._db, call)
        rows = self._db.execute(f"DELETE FROM {OURS}changes RETURNING n, relation, kind, old, new").fetchall()
        return reply, changes(rows, self._tables)

    def commit(self, entries: Sequence[Entry], log: Log) -> None:
        """Prepare the transaction, append to the log, commit."""
        if not entries:
            self._db.execute("COMMIT")
            return
        first = entries[0]
        for entry in entries:
            self._db.execute(RECORD, remembered(entry, time.time()))
        self._db.execute(_MOVE, (entries[-1].seq, entries[-1].chain))
        self._step("captured")
        name = sql.Literal(f"{OURS}{self._server}:{first.epoch}:{first.turn}:{first.seq}")
        self._db.execute(sql.SQL("PREPARE TRANSACTION {}").format(name))
        self._step("prepared")
        try:
            append_surely(log, entries)
        except Exception:
            self._db.execute(sql.SQL("ROLLBACK PREPARED {}").format(name))
            raise
        self._step("appended")
        self._db.execute(sql.SQL("COMMIT PREPARED {}").format(name))
        self._step("committed")


def changes(rows: Sequence[tuple[Any, ...]], known: dict[str, Table]) -> bytes:
    """The rows that triggers have recorded, as a state update; empty if no column has changed."""
    found = []
    for _, name, kind, old, new in sorted(rows, key=lambda r: r[0]):
        if (made := known[name].change(kind, old, new)) is not None:
            found.append(Change(name, kind, *made))
    return msgspec.json.encode(found) if found else b""


def run(db: psycopg.Connection[Any], call: Call) -> bytes:
    """Run the function of the application. If it raises, roll back its effects."""
    db.execute(f"SAVEPOINT {SAVEPOINT}")
    connection = PgConnection(db)
    try:
        reply = call.run(connection)
        if connection.conflict is not None:
            raise connection.conflict  # the function caught it
        if db.info.transaction_status == pq.TransactionStatus.INERROR:
            raise OperationError("TransactionError", "the function continued after an error of the database")
        db.execute(_CHECK)
    except (*CONFLICTS, *_GONE) as error:
        if isinstance(error, CONFLICTS) or db.closed:
            raise
        raise _undone(db, error) from error
    except Exception as error:
        if connection.conflict is not None:
            raise connection.conflict from None
        raise _undone(db, error) from error
    db.execute(f"RELEASE SAVEPOINT {SAVEPOINT}")
    return reply


def _undone(db: psycopg.Connection[Any], error: Exception) -> OperationError:
    db.execute(f"ROLLBACK TO SAVEPOINT {SAVEPOINT}")
    db.execute(f"RELEASE SAVEPOINT {SAVEPOINT}")
    return error if isinstance(error, OperationError) else failed(error)


def _int(db: psycopg.Connection[Any], statement: str) -> int:
    ((found,),) = db.execute(statement).fetchall()
    return int(found)


def _repeated(db: psycopg.Connection[Any], call: Call) -> Outcome | None:
    rows = db.execute(_AGAIN, {"request": call.request}).fetchall()
    for reply, seq, position, operation, arguments, server in rows:
        call.check_same(operation, arguments)
        return Outcome(reply, seq, max(position, 0), repeated=True, server=server)
    return None


def remember(
    db: psycopg.Connection[Any], request: str, operation: str, arguments: bytes, reply: bytes, seq: int
) -> int:
    """Store the reply of a local operation. Returns its position."""
    ((position,),) = db.execute(_DONE, (request, operation, arguments, reply, seq, time.time())).fetchall()
    return int(position)


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def place(db: psycopg.Connection[Any]) -> tuple[int, str]:
    """The last update that the state contains, and the hash of the updates. Groups write into the tail, visits clear it."""
    ((seq, chain),) = db.execute(
        f"SELECT seq, chain FROM (SELECT seq, chain FROM {OURS}tail UNION ALL SELECT applied, chain FROM {OURS}state) AS s "
        "ORDER BY seq DESC LIMIT 1"
    ).fetchall()
    return int(seq), str(chain)
