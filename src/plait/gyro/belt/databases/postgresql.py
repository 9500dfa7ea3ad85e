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
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec

from plait.gyro.belt.databases.database import OURS, AgainError
from plait.gyro.belt.databases.dbapi import SAVEPOINT
from plait.gyro.belt.databases.postgresql_connection import PgConnection
from plait.gyro.belt.databases.postgresql_rows import Table, install, tables
from plait.gyro.belt.logs.log import Log, append_surely
from plait.gyro.belt.records import Call, DatabaseGoneError, Entry, OperationError, Outcome, failed, follow
from plait.kernel.errors import UsageError
from plait.kernel.extras import needs

with needs("serve"):
    import psycopg
    from psycopg import errors, pq, sql

_BEGIN = "BEGIN ISOLATION LEVEL SERIALIZABLE"
_CONFLICTS = (errors.SerializationFailure, errors.DeadlockDetected)
_GONE = (psycopg.OperationalError, psycopg.InterfaceError)
_ATTEMPTS = 50
_DONE = (
    f"INSERT INTO {OURS}done (request, operation, arguments, reply, seq, at) "
    "VALUES (%s, %s, %s, %s, %s, %s) RETURNING position"
)
_AGAIN = f"SELECT reply, seq, position, operation, arguments FROM {OURS}done WHERE request = %s"

Result = TypeVar("Result")


class Change(msgspec.Struct, array_like=True):
    """The change of one row: its table, the kind of change, its key, and the changed columns."""

    table: str
    kind: str
    key: dict[str, Any]
    row: dict[str, Any]


class PostgresqlDatabase:
    """One database: a pool of connections for local operations, one for visits, one for updates of other servers."""

    def __init__(
        self,
        dsn: str,
        *,
        server: int = 0,
        servers: int = 1,
        schema: str = "",
        step: Callable[[str], None] = lambda _: None,
        keep: float = 3600.0,
        parallel: int = 8,
    ) -> None:
        self._dsn = dsn
        self._server = server
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
                install(db, schema, server, servers)
                self._tables = tables(db)
                self._position = _int(db, f"SELECT last_value * is_called::int FROM {OURS}done_position_seq")
                ((prepared,),) = db.execute("SHOW max_prepared_transactions").fetchall()
                if int(prepared) < 2:
                    raise UsageError(
                        f"PostgreSQL of server {server}: max_prepared_transactions is {prepared}, expected at least 2",
                        hint="set it to 10 in postgresql.conf and restart PostgreSQL",
                    )
        except _GONE as error:
            raise DatabaseGoneError(f"PostgreSQL of server {server}: {_line(error)}") from None
        except psycopg.Error as error:
            raise UsageError(
                f"PostgreSQL of server {server} refuses the schema or the data: {_line(error)}",
                hint="correct the SQL; the role must be a superuser",
            ) from None

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
        with self._connection("") as db:
            return _chain(db)

    def schema(self) -> str:
        """Tables, columns and keys, as text."""
        return "\n".join(
            f"{t.name} ({', '.join(f'{n} {k}' for n, k in t.types.items())}; key {', '.join(t.key)})"
            for t in sorted(self._tables.values(), key=lambda t: t.name)
        )

    # -- operations --------------------------------------------------------------------------------------------------

    def applied(self) -> int:
        """The seq of the last update that the state contains."""
        return self._surely(lambda: self._query(f"SELECT applied FROM {OURS}state"))

    def _query(self, statement: str) -> int:
        with self._connection("") as db:
            return _int(db, statement)

    def read(self, call: Call) -> Outcome:
        """Execute at SERIALIZABLE and READ ONLY. A write is an error, which reveals a wrong classification."""
        with self._in_order():
            return self._surely(lambda: self._local(call, f"{_BEGIN} READ ONLY", reads=True))

    def write(self, call: Call) -> Outcome:
        """Execute a local operation. The reply is stored in the same transaction, so a request executes only once."""
        with self._in_order():
            return self._surely(lambda: self._local(call, _BEGIN, reads=False))

    def _local(self, call: Call, begin: str, *, reads: bool) -> Outcome:
        with self._connection("") as db:
            if not reads and (again := _repeated(db, call)) is not None:
                return again
            with _transaction(db, begin):
                seq = _int(db, f"SELECT applied FROM {OURS}state")
                reply = _run(db, call)
                wrote = not reads and _int(db, "SELECT (pg_current_xact_id_if_assigned() IS NOT NULL)::int") == 1
                position = self._position
                if wrote:
                    arguments = msgspec.json.encode(call.arguments)
                    try:
                        position = _remember(db, call.request, call.operation, arguments, reply, seq)
                    except errors.UniqueViolation:
                        raise AgainError from None  # the same request came twice at the same time
            if self._alone is not None:
                self._position = max(position, self._position)
            self._prune(db)
            return Outcome(reply, seq, position, wrote)

    @contextmanager
    def _in_order(self) -> Iterator[None]:
        if self._alone is None:
            yield
        else:
            with self._alone:
                yield

    @contextmanager
    def visit(self) -> Iterator[PostgresqlVisit]:
        """Begin the transaction of a visit."""
        try:
            with self._connection("visit") as db:
                db.execute(_BEGIN)
                try:
                    db.execute("SET LOCAL gyro.capture = 'on'")
                    seq = _int(db, f"SELECT applied FROM {OURS}state")
                    yield PostgresqlVisit(db, seq, self._position, self._tables, self._server, self._step)
                finally:
                    if not db.closed and db.info.transaction_status != pq.TransactionStatus.IDLE:
                        db.execute("ROLLBACK")
        except _CONFLICTS:
            raise AgainError from None

    def apply(self, entries: Sequence[Entry], server: int) -> None:
        """Apply new updates in order. One transaction also stores the seq of the last one."""
        self._surely(lambda: self._apply(entries, server))
        self._step("applied")

    def _apply(self, entries: Sequence[Entry], server: int) -> None:
        with self._connection("apply") as db:
            db.execute("SET session_replication_role = replica")  # their effects are part of the update
            with _transaction(db, _BEGIN):
                applied, chain = _int(db, f"SELECT applied FROM {OURS}state"), _chain(db)
                for entry in entries:
                    if entry.seq <= applied:
                        continue
                    if entry.seq != applied + 1:
                        raise ValueError(f"update {entry.seq} cannot follow update {applied}")
                    chain = follow(chain, entry)
                    self.change(db, entry)
                    if entry.holder == server:
                        _remember(db, entry.request, entry.operation, entry.arguments, entry.reply, entry.seq)
                    applied = entry.seq
                db.execute(f"UPDATE {OURS}state SET applied = %s, chain = %s", (applied, chain))

    def change(self, db: psycopg.Connection[Any], entry: Entry) -> None:
        """Apply one update."""
        try:
            for change in msgspec.json.decode(entry.update, type=list[Change]):
                self._tables[change.table].apply(db, change.kind, change.key, change.row)
        except (KeyError, psycopg.IntegrityError, psycopg.ProgrammingError) as error:
            raise DatabaseGoneError(
                f"update {entry.seq} ({entry.operation} at server {entry.holder}) cannot be applied here: {error}; "
                "the states of the servers differ, or the schema of the analysis lacks a unique column"
            ) from None

    def settle(self, log: Log) -> None:
        """Commit the prepared transactions that are in the log, and roll back the others."""
        with self._connection("") as db:
            mine = f"{OURS}{self._server}:%"
            found = db.execute(
                "SELECT gid FROM pg_prepared_xacts WHERE database = current_database() AND gid LIKE %s", (mine,)
            )
            for (gid,) in found.fetchall():
                epoch, turn, seq = (int(part) for part in gid.split(":")[1:])
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
            yield db
        except _GONE as error:
            if isinstance(error, _CONFLICTS):
                raise
            raise DatabaseGoneError(f"PostgreSQL of server {self._server}: {_line(error)}") from None
        finally:
            if db is not None and not db.closed:
                if self._closed or db.info.transaction_status != pq.TransactionStatus.IDLE:
                    db.close()
                elif name:
                    self._own[name] = db
                else:
                    self._pool.put(db)

    def _surely(self, attempt: Callable[[], Result]) -> Result:
        """Retry until PostgreSQL reports no serialization failure."""
        for count in range(_ATTEMPTS):
            try:
                return attempt()
            except (*_CONFLICTS, AgainError):
                time.sleep(random.random() * 0.001 * min(2**count, 100))
        raise DatabaseGoneError(f"PostgreSQL of server {self._server}: {_ATTEMPTS} serialization failures in a row")

    def close(self) -> None:
        """Close the unused connections. Others are closed after their use."""
        self._closed = True
        while not self._pool.empty():
            self._pool.get_nowait().close()
        for db in self._own.values():
            db.close()


class PostgresqlVisit:
    """Global operations, one after the other, in one transaction. It commits only if the log accepts it."""

    def __init__(
        self,
        db: psycopg.Connection[Any],
        seq: int,
        position: int,
        known: dict[str, Table],
        server: int,
        step: Callable[[str], None],
    ) -> None:
        self.seq, self.position = seq, position
        self.chain = _chain(db)
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
        reply = _run(self._db, call)
        rows = self._db.execute(f"DELETE FROM {OURS}changes RETURNING n, relation, kind, old, new").fetchall()
        changes = []
        for _, name, kind, old, new in sorted(rows, key=lambda r: r[0]):
            table = self._tables[name]
            if (made := table.change(kind, old, new)) is not None:
                changes.append(Change(name, kind, *made))
        return reply, msgspec.json.encode(changes) if changes else b""

    def commit(self, entries: Sequence[Entry], log: Log) -> None:
        """Prepare the transaction, append to the log, commit."""
        if not entries:
            self._db.execute("COMMIT")
            return
        first = entries[0]
        for entry in entries:
            _remember(self._db, entry.request, entry.operation, entry.arguments, entry.reply, entry.seq)
        self._db.execute(f"UPDATE {OURS}state SET applied = %s, chain = %s", (entries[-1].seq, entries[-1].chain))
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


@contextmanager
def _transaction(db: psycopg.Connection[Any], begin: str) -> Iterator[None]:
    db.execute(begin)
    try:
        yield
    except BaseException:
        if not db.closed:
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def _run(db: psycopg.Connection[Any], call: Call) -> bytes:
    """Run the function of the application. If it raises, roll back its effects."""
    db.execute(f"SAVEPOINT {SAVEPOINT}")
    connection = PgConnection(db)
    try:
        reply = call.run(connection)
        if connection.conflict is not None:
            raise connection.conflict  # the function caught it
        if db.info.transaction_status == pq.TransactionStatus.INERROR:
            raise OperationError("TransactionError", "the function continued after an error of the database")
    except (*_CONFLICTS, *_GONE) as error:
        if isinstance(error, _CONFLICTS) or db.closed:
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
    for reply, seq, position, operation, arguments in db.execute(_AGAIN, (call.request,)).fetchall():
        call.check_same(operation, arguments)
        return Outcome(reply, seq, position, repeated=True)
    return None


def _remember(
    db: psycopg.Connection[Any], request: str, operation: str, arguments: bytes, reply: bytes, seq: int
) -> int:
    ((position,),) = db.execute(_DONE, (request, operation, arguments, reply, seq, time.time())).fetchall()
    return int(position)


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _chain(db: psycopg.Connection[Any]) -> str:
    """The hash of the updates that the state contains."""
    ((found,),) = db.execute(f"SELECT chain FROM {OURS}state").fetchall()
    return str(found)
