"""The MariaDB of a server: serializable transactions, triggers that record updates, two-phase commit with the log.

**Why the order is right.** Transactions that write have the isolation level SERIALIZABLE. InnoDB then locks all rows and
gaps that a transaction reads or writes, and releases these locks after its commit. So if U depends on T, then U got a lock
after the commit of T: the order of commits is a serial order. A visit keeps its locks while it is prepared: at this
isolation level, XA PREPARE releases none. A visit begins after the previous one has committed, so visits have the order of
the log.

A read-only operation reads a snapshot without locks. InnoDB makes a transaction visible to new snapshots before it
releases its locks. So if a snapshot contains U, and U depends on T, then it contains T. The reader comes after all
transactions of its snapshot, and before all others.

**Which updates a local operation has seen.** It asks at its end, when it has all its locks, and without a lock, on another
connection. All visits that it depends on have committed, so the answer counts them. A visit that commits later either
depends on it, or both have all their locks at the same time: then neither depends on the other.

**Why the log is right.** A visit is prepared, then appended to the log, then committed. A prepared transaction survives a
crash. Recovery (`visit.settle`) commits it if the log contains it, and rolls it back otherwise. If only the server dies,
MariaDB keeps all locks of the visit. If MariaDB dies, it restores the locks on rows that the visit has changed, but not
those on rows that it has read. So a new connection for local operations first waits for the lock of the row in
`gyro_state`, which every prepared visit has changed: local operations run only when recovery is done.
"""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, TypeVar

import msgspec

from plait.gyro.belt.databases.database import OURS, AgainError
from plait.gyro.belt.databases.mariadb.changes import MariadbChanges
from plait.gyro.belt.databases.mariadb.connection import (
    CONFLICTS,
    MODE,
    Db,
    address,
    code,
    connect,
    execute,
    gone,
    line,
)
from plait.gyro.belt.databases.mariadb.limits import MINE, check_schema, check_server
from plait.gyro.belt.databases.mariadb.migration import alone
from plait.gyro.belt.databases.mariadb.outbox import last_position, transaction
from plait.gyro.belt.databases.mariadb.rows import (
    CHANGES,
    TORN,
    clear,
    complete,
    definitions,
    functions,
    install,
    known,
    tables,
    torn,
)
from plait.gyro.belt.databases.mariadb.values import MariadbValues
from plait.gyro.belt.databases.mariadb.visit import (
    MOVE,
    PLACE,
    RECORDED,
    Change,
    MariadbVisit,
    changes,
    place,
    remember,
    repeated,
    run,
    settle,
)
from plait.gyro.belt.databases.outbox import local_update
from plait.gyro.belt.logs.log import Log
from plait.gyro.belt.records import Call, DatabaseGoneError, Entry, Outcome, follow
from plait.kernel.errors import UsageError
from plait.kernel.extras import needs

with needs("serve"):
    import pymysql

_ATTEMPTS = 50
_PATIENCE = 30.0
"""How long an operation runs again because of conflicts, in seconds."""
_SNAPSHOT = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
_TWICE = 1062
_SETTINGS: dict[str, dict[str, Any]] = {
    "": {"tx_isolation": "SERIALIZABLE"},
    "visit": {"tx_isolation": "SERIALIZABLE"},
    "apply": {"tx_isolation": "SERIALIZABLE", "foreign_key_checks": 0, "check_constraint_checks": 0},
    "read": {"tx_isolation": "REPEATABLE-READ"},
    "own": {"tx_isolation": "READ-COMMITTED"},
}
"""The kinds of connections: local operations, visits, updates of others, snapshots, and tables of the protocol."""
_APPLYING = "STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO"
_RIGHTS = "the user needs all privileges on its database (deploy/gyro/role-mariadb.sql)"
_LOCAL = f"CREATE TEMPORARY TABLE {OURS}changes ({CHANGES}) ENGINE=InnoDB"
"""Where a connection records the changes of local operations. It hides the table of visits, in triggers, too."""

Result = TypeVar("Result")


class MariadbDatabase(MariadbChanges):
    """One database, with pools of connections."""

    mode = MODE
    """The SQL mode of operations."""

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
        shipping: int = 0,
        rank: int | None = None,
    ) -> None:
        self._dsn, self._database = dsn, str(address(dsn)["database"])
        self._server, self._servers = server, servers
        self._rank = server if rank is None else rank
        self._where = f"MariaDB of server {server}"
        self._shipping = shipping
        """The maximal size of a local update; 0 if local updates are not shipped."""
        self._used: dict[str, int] = {}
        self._step = step
        self._keep = keep
        self._pruned = time.time()
        self._alone = threading.Lock() if parallel == 1 else None
        """If local operations run one at a time, the positions in replies give the order of commits."""
        self._closed = False
        self._pools: dict[str, queue.LifoQueue[Db]] = {name: queue.LifoQueue() for name in _SETTINGS}
        try:
            self._prepare(schema)
            with self._connection("own") as db:
                self._look_again(db)
                self._begin_ids(db)
                self._position = last_position(db)
        except pymysql.MySQLError as error:
            self.close()
            raise UsageError(f"{self._where}: {line(error)}", hint=_RIGHTS) from None
        except BaseException:
            self.close()
            raise

    def _prepare(self, schema: str) -> None:
        """Check the DBMS, and set up the database once."""
        with self._connection("own") as db:
            check_server(db, self._where)
            if torn(db):
                self.torn = True
                with alone(db, self._database):
                    clear(db, keep=TORN)
            if known(db):
                check_schema(db, self._where)
                complete(db)
                return
            if not self.torn and execute(db, f"SHOW TABLES LIKE '{OURS.replace('_', chr(92) + '_')}%'"):
                raise UsageError(
                    f"{self._where}: the set-up of the database {self._database} was interrupted",
                    hint="drop the database and create it again",
                )
            empty = not execute(db, f"SELECT 1 FROM information_schema.TABLES WHERE {MINE} LIMIT 1")
            try:
                if empty:
                    self._fill(schema)
                check_schema(db, self._where)
                complete(db)
                install(db, whole=empty and bool(self._shipping))
            except (pymysql.MySQLError, UsageError) as error:
                if empty and db.open:
                    clear(db)
                if isinstance(error, UsageError) or gone(error):
                    raise
                raise UsageError(
                    f"{self._where} refuses the schema or the data: {line(error)}",
                    hint=f"correct the SQL; {_RIGHTS}",
                ) from None

    def _fill(self, schema: str) -> None:
        """Execute the statements of the schema. MariaDB commits after each one that creates something."""
        db = connect(self._dsn, server=self._rank, servers=self._servers, mode=self.mode, several=True)
        try:
            with db.cursor() as cursor:
                if schema.strip():
                    cursor.execute(schema)
                    while cursor.nextset():
                        pass
        finally:
            db.close()

    def _look_again(self, db: Db) -> None:
        """Read the tables and functions of the application."""
        self._tables = tables(db)
        self._functions = functions(db)

    def identity(self) -> str | None:
        """The identity of this state."""
        with self._connection("read") as db:
            ((found,),) = execute(db, f"SELECT identity FROM {OURS}identity")
            return None if found is None else str(found)

    def identify(self, identity: str | None) -> None:
        """Store the identity durably. A database that was built again is whole from now on."""
        with self._connection("own") as db, transaction(db):
            execute(db, f"UPDATE {OURS}identity SET identity = %s", (identity,))
            execute(db, f"DELETE FROM {TORN}")

    def chain(self) -> str:
        """The hash of the updates that the state contains."""
        with self._connection("read") as db:
            return place(db)[1]

    def schema(self) -> str:
        """Tables, views, triggers and functions: a line of each, with its definition."""
        with self._connection("read") as db:
            return "\n".join(f"{name}: {' '.join(text.split())}" for name, text in definitions(db))

    def values(self) -> MariadbValues:
        """The columns of this DBMS, and what they store."""
        return MariadbValues(lambda: self._connection("own"))

    # -- operations --------------------------------------------------------------------------------------------------

    def applied(self) -> int:
        """The seq of the last update that the state contains."""
        with self._connection("read") as db:
            return place(db)[0]

    def written(self) -> int:
        """It is not known: MariaDB tells no counter that never becomes smaller."""
        return 0

    def read(self, call: Call) -> Outcome:
        """Execute on a snapshot. A write is an error, which reveals a wrong classification."""
        with self._alone or nullcontext():
            return self._surely(lambda: self._look(call))

    def _look(self, call: Call) -> Outcome:
        with self._connection("read") as db, transaction(db, _SNAPSHOT):
            seq, _ = place(db)
            position = self._position
            reply, _ = run(db, call, snapshot=True)
            return Outcome(reply, seq, position)

    def write(self, call: Call) -> Outcome:
        """Execute a local operation. The reply is stored in the same transaction, so a request executes only once."""
        with self._alone or nullcontext():
            return self._surely(lambda: self._local(call))

    def _local(self, call: Call) -> Outcome:
        if (again := self._repeated(call)) is not None:
            return again
        with self._connection("") as db:
            with transaction(db):
                reply, wrote = run(db, call)
                seq = self.applied()
                position = self._position
                if wrote := wrote or self._functions:
                    arguments = msgspec.json.encode(call.arguments)
                    try:
                        position = remember(db, call.request, call.operation, arguments, reply, seq)
                    except pymysql.IntegrityError as error:
                        if code(error) != _TWICE:
                            raise
                        raise AgainError from None  # the same request came twice at the same time
                    if self._shipping:
                        update = changes(execute(db, RECORDED), self._tables)
                        self.post(
                            db,
                            local_update(self._server, seq, position, call, arguments, reply, update, self._shipping),
                        )
            if self._alone is not None:
                self._position = max(position, self._position)
        self._prune()
        return Outcome(reply, seq, position, wrote)

    def _repeated(self, call: Call) -> Outcome | None:
        with self._connection("read") as db:
            return repeated(db, call)

    @contextmanager
    def visit(self) -> Iterator[MariadbVisit]:
        """Begin the transaction of a visit."""
        try:
            with self._connection("visit") as db:
                visit = None
                try:
                    visit = MariadbVisit(
                        db, self._position, self._tables, self._server, self._database, self._step, self._repeated
                    )
                    yield visit
                finally:
                    if visit is not None:
                        visit.abandon()
                    else:
                        db.close()
        except pymysql.MySQLError as error:
            if code(error) not in (*CONFLICTS, _TWICE):
                raise
            raise AgainError from None

    def together(self, calls: Sequence[Call]) -> None:
        """Always None: the operations of a visit run one after the other."""

    def apply(self, entries: Sequence[Entry], server: int) -> None:
        """Apply new updates in order. One transaction also stores the seq of the last one."""
        self._surely(lambda: self._apply(entries, server))
        self._step("applied")

    def _apply(self, entries: Sequence[Entry], server: int) -> None:
        with self._connection("apply") as db, transaction(db):
            ((applied, chain),) = execute(db, f"{PLACE} FOR UPDATE")
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
            execute(db, MOVE, (applied, chain))

    def change(self, db: Db, entry: Entry) -> None:
        """Apply one update."""
        self.patch(db, entry.update, f"update {entry.seq} ({entry.operation} at server {entry.holder})")

    def patch(self, db: Db, update: bytes, name: str) -> None:
        """Apply row images."""
        try:
            for change in msgspec.json.decode(update, type=list[Change]) if update else ():
                table = self._tables[change.table]
                table.apply(db, change.kind, change.key, change.row)
                if used := change.row.get(table.generated):
                    self._used[table.name] = max(int(used), self._used.get(table.name, 0))
        except (KeyError, pymysql.IntegrityError, pymysql.ProgrammingError, pymysql.DataError) as error:
            raise DatabaseGoneError(
                f"{name} cannot be applied here: {line(error)}; "
                "the states of the servers differ, or the schema of the analysis lacks a unique column"
            ) from None

    def settle(self, log: Log) -> None:
        """Commit the prepared transactions that are in the log, and roll back the others."""
        with self._connection("own") as db:
            settle(db, self._server, self._database, log)

    def _prune(self) -> None:
        """Delete old replies."""
        now = time.time()
        if now - self._pruned > self._keep / 10:
            self._pruned = now
            with self._connection("own") as db:
                for name in ("done", "past"):
                    execute(db, f"DELETE FROM {OURS}{name} WHERE at < %s", (now - self._keep,))

    # -- connections -------------------------------------------------------------------------------------------------

    @contextmanager
    def _connection(self, name: str) -> Iterator[Db]:
        """A connection of this kind. A broken connection, or one with an open transaction, is discarded."""
        db: Db = None
        try:
            with suppress(queue.Empty):
                db = self._pools[name].get_nowait()
            if db is None or not db.open:
                db = self._open(name)
            yield db
        except pymysql.MySQLError as error:
            if not gone(error):
                raise
            self._discard()
            raise DatabaseGoneError(f"{self._where}: {line(error)}") from None
        finally:
            if db is not None and db.open:
                if self._closed or db.server_status & 1:  # a transaction is open
                    db.close()
                else:
                    self._pools[name].put(db)
                    if self._closed:
                        self._discard()

    def _open(self, name: str) -> Db:
        if self._closed:
            raise DatabaseGoneError("the server is shutting down")
        try:
            db = connect(
                self._dsn, server=self._rank, servers=self._servers,
                mode=_APPLYING if name == "apply" else self.mode, **_SETTINGS[name],
            )  # fmt: skip
        except (pymysql.MySQLError, OSError) as error:
            raise DatabaseGoneError(f"{self._where}: {line(error)}") from None
        try:
            if name == "apply":
                execute(db, "SET @gyro_applying = 1")
            if name == "visit":
                execute(db, "SET @gyro_capture = 1")
            if name == "":
                self._wait(db)
                if self._shipping:
                    execute(db, _LOCAL)
                    execute(db, "SET @gyro_capture = 1")
        except BaseException:
            db.close()
            raise
        return db

    def _wait(self, db: Db) -> None:
        """Wait until no visit is prepared: a crash of MariaDB has released the locks on rows that it has read."""
        try:
            execute(db, f"{PLACE} LOCK IN SHARE MODE")
        except pymysql.MySQLError as error:
            if code(error) not in CONFLICTS:
                raise
            raise DatabaseGoneError(f"{self._where}: a visit is prepared, and the log does not answer") from None

    def _surely(self, attempt: Callable[[], Result]) -> Result:
        """Run again while there are conflicts."""
        deadline = time.monotonic() + _PATIENCE
        for count in range(_ATTEMPTS):
            try:
                return attempt()
            except (pymysql.MySQLError, AgainError) as error:
                if isinstance(error, pymysql.MySQLError) and code(error) not in CONFLICTS:
                    raise DatabaseGoneError(f"{self._where}: {line(error)}") from error
                if time.monotonic() > deadline:
                    break
                time.sleep(random.random() * 0.001 * min(2**count, 100))
        raise DatabaseGoneError(f"{self._where}: the operation ran {count + 1} times, each time with a conflict")

    def close(self) -> None:
        """Close the unused connections. Others are closed after their use."""
        self._closed = True
        self._discard()

    def _discard(self) -> None:
        """Close the unused connections: if one is broken, all may be."""
        for pool in self._pools.values():
            while not pool.empty():
                with suppress(pymysql.MySQLError, queue.Empty):
                    pool.get_nowait().close()
