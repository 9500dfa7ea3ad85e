"""The SQLite of a server: one writer, readers on snapshots, updates as changesets (`changeset.py`).

There is one writer at a time, so the order of commits is the serial order. A reader comes after the last commit that
its snapshot contains. For an updated row, a changeset contains only the changed columns, because local operations of
another server may have changed the others. When a changeset is applied, the row may differ or be missing here, because
local operations of the executing server changed it. The changeset is still right: other servers do not read these
columns, otherwise the operations would not be local. So the changeset wins all conflicts. It also contains the effects
of triggers and foreign keys, so these are off while it is applied.
"""

from __future__ import annotations

import itertools
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from plait.gyro.belt.databases.database import OURS
from plait.gyro.belt.databases.outbox import local_update
from plait.gyro.belt.databases.sqlite.changes import CHANGES, SqliteChanges, schema_of
from plait.gyro.belt.databases.sqlite.changeset import recorder
from plait.gyro.belt.databases.sqlite.connection import GONE, Plans, SqliteSnapshot
from plait.gyro.belt.databases.sqlite.outbox import STREAM, TABLES
from plait.gyro.belt.databases.sqlite.values import SqliteValues
from plait.gyro.belt.databases.sqlite.visit import SqliteVisit, chain_of, execute, remember, repeated, resolve
from plait.gyro.belt.ids import COUNTERS, Ids, quoted
from plait.gyro.belt.logs.log import Log
from plait.gyro.belt.records import (
    Call,
    DatabaseGoneError,
    Entry,
    OperationError,
    Outcome,
    OversizeError,
    Result,
    failed,
    follow,
    only,
)
from plait.kernel.errors import UsageError
from plait.kernel.extras import needs

with needs("serve"):
    import apsw

_OURS = f"""
CREATE TABLE IF NOT EXISTS {OURS}state (one INTEGER PRIMARY KEY CHECK (one = 1), applied INTEGER NOT NULL,
  chain TEXT NOT NULL);
INSERT OR IGNORE INTO {OURS}state VALUES (1, 0, '');
CREATE TABLE IF NOT EXISTS {OURS}identity (one INTEGER PRIMARY KEY CHECK (one = 1), identity TEXT);
INSERT OR IGNORE INTO {OURS}identity VALUES (1, NULL);
CREATE TABLE IF NOT EXISTS {OURS}done (
  position INTEGER PRIMARY KEY AUTOINCREMENT, request TEXT NOT NULL UNIQUE, operation TEXT NOT NULL, arguments BLOB NOT
  NULL, reply BLOB NOT NULL, seq INTEGER NOT NULL, at REAL NOT NULL);
"""
_PLACE = f"SELECT applied, coalesce((SELECT seq FROM sqlite_sequence WHERE name = '{OURS}done'), 0) FROM {OURS}state"
"""Old replies are deleted, but positions go on."""
FULL, NORMAL = 2, 1


class _TogetherError(Exception):
    """An operation has undone those before it, or cannot be undone without them: each must execute alone."""


class SqliteDatabase(SqliteChanges):
    """One file, with three connections that write in turn, and a pool of connections that read."""

    visits = SqliteVisit
    lanes = 1
    """SQLite and the interpreter of Python execute one operation at a time."""

    def __init__(
        self,
        file: Path,
        *,
        server: int = 0,
        servers: int = 1,
        rank: int | None = None,
        schema: str = "",
        step: Callable[[str], None] = lambda _: None,
        keep: float = 3600.0,
        shipping: int = 0,
    ) -> None:
        self._file = str(file)
        self._server = server
        self._shipping = shipping
        """The maximal size of a local update; 0 if local updates are not shipped."""
        self._step = step
        self._keep = keep
        self._pruned = time.time()
        self._owed = 0
        """The seq of an update that may be in the log, but is not committed here; 0 if there is none."""
        self._reading: Plans = {}
        self._writing: Plans = {}
        """What is known about statements."""
        self._turn = threading.Lock()
        self._readers: queue.LifoQueue[apsw.Connection] = queue.LifoQueue()
        self._opened: list[apsw.Connection] = []
        try:
            fresh = not file.exists() or file.stat().st_size == 0
            self._local = self._open(FULL)
            if fresh:
                self._create(schema, file)
            self._local.execute(_OURS + COUNTERS + TABLES + CHANGES + STREAM % 0)
            self._check()
            self._ids = Ids(self._generated(), server if rank is None else rank, servers)
            self._global = self._open(NORMAL)  # the log has what these two lose in a power failure
            self._remote = self._open(NORMAL)
            self._remote.pragma("foreign_keys", 0)
            self._remote.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
            for db in (self._local, self._global):
                db.pragma("foreign_keys", 1)
                self._ids.install(db)
            self._guard()
            self._changes = recorder(self._global)
            self._local_changes = recorder(self._local) if shipping else None
        except GONE as error:
            raise DatabaseGoneError(f"{file}: {error}") from None

    def _open(self, synchronous: int) -> apsw.Connection:
        db = apsw.Connection(self._file)
        db.set_busy_timeout(10_000)
        db.pragma("journal_mode", "wal")
        db.pragma("synchronous", synchronous)
        self._opened.append(db)
        return db

    def _create(self, schema: str, file: Path) -> None:
        try:
            with self._local:
                self._local.execute(schema)
                self._local.execute(STREAM % bool(self._shipping))
        except apsw.Error as error:
            raise UsageError(
                f"{file}: SQLite refuses the schema or the data: {error}", hint="correct the SQL"
            ) from None

    # -- the schema --------------------------------------------------------------------------------------------------

    def _tables(self) -> list[str]:
        found = self._local.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY name"
        )
        return [str(name) for (name,) in found if not str(name).startswith(OURS)]

    def _columns(self, table: str) -> list[tuple[str, str, bool, int]]:
        rows = self._local.execute(f"PRAGMA table_xinfo({quoted(table)})")
        return [(str(r[1]), str(r[2]), bool(r[3]), int(r[5])) for r in rows]

    def _check(self) -> None:
        for table in self._tables():
            if not any(place for _, _, _, place in self._columns(table)):
                raise UsageError(
                    f"table {table} has no primary key, so updates cannot identify its rows",
                    hint="give every table a primary key",
                )

    def _generated(self) -> dict[str, tuple[str, tuple[str, ...]]]:
        """The tables whose primary key SQLite generates."""
        found = {}
        for table in self._tables():
            columns = self._columns(table)
            keys = [(name, kind) for name, kind, _, place in columns if place]
            if len(keys) == 1 and keys[0][1].upper() == "INTEGER":
                found[table] = (keys[0][0], tuple(name for name, *_ in columns))
        return found

    def _guard(self) -> None:
        """Forbid NULL in primary keys where changes are recorded: changesets omit such rows."""
        recorded = [self._global, *([self._local] if self._shipping else [])]
        for number, table in enumerate(self._tables()):
            keys = [(name, kind, strict) for name, kind, strict, place in self._columns(table) if place]
            if len(keys) == 1 and keys[0][1].upper() == "INTEGER":
                continue
            if nullable := [name for name, _, strict in keys if not strict]:
                condition = " OR ".join(f"NEW.{quoted(name)} IS NULL" for name in nullable)
                for db, when in itertools.product(recorded, ("INSERT", "UPDATE")):
                    db.execute(
                        f"CREATE TEMP TRIGGER {OURS}{when}_{number} BEFORE {when} ON main.{quoted(table)} WHEN {condition} "
                        f"BEGIN SELECT RAISE(ABORT, 'the primary key of {table.replace(chr(39), '')} is NULL'); END"
                    )

    def identity(self) -> str | None:
        """The identity of this state."""
        with self._reader() as db:
            ((found,),) = db.execute(f"SELECT identity FROM {OURS}identity")
            return None if found is None else str(found)

    def identify(self, identity: str | None) -> None:
        """Store the identity durably."""
        with self._turn, self._transaction(self._local) as db:
            db.execute(f"UPDATE {OURS}identity SET identity = ?", (identity,))

    def chain(self) -> str:
        """The hash of the updates that the state contains."""
        with self._reader() as db:
            return chain_of(db)

    def schema(self) -> str:
        """Tables, indexes, views and triggers: a line of each, with its name and its definition."""
        return schema_of(self._local)

    def values(self) -> SqliteValues:
        """The columns of this DBMS, and what they store."""
        found = {}
        for table in self._tables():
            for name, *_ in self._columns(table):
                declared, collation, *_ = self._local.column_metadata("main", table, name)
                found[f"{table}.{name}".lower()] = (declared or "", collation)
        return SqliteValues(found)

    # -- operations --------------------------------------------------------------------------------------------------

    def applied(self) -> int:
        """The seq of the last update that the state contains."""
        with self._reader() as db:
            return self._place(db)[0]

    def written(self) -> int:
        """How many local operations were committed here."""
        with self._reader() as db:
            return self._place(db)[1]

    @staticmethod
    def _place(db: apsw.Connection) -> tuple[int, int]:
        ((seq, position),) = db.execute(_PLACE)
        return int(seq), int(position)

    def read(self, call: Call) -> Outcome:
        """Execute a read-only operation."""
        return only(self.reads([call]))

    def write(self, call: Call) -> Outcome:
        """Execute a local operation, once per request."""
        return only(self.writes([call]))

    def reads(self, calls: Iterable[Call]) -> Sequence[Result]:
        """Execute on one snapshot. A write is an error, which reveals a wrong classification."""
        found: list[Result] = []
        with self._reader() as db:
            db.execute("BEGIN")
            try:
                seq, position = self._place(db)
                for call in calls:
                    try:
                        found.append(Outcome(call.run(SqliteSnapshot(db, self._reading)), seq, position))
                    except GONE:
                        raise
                    except Exception as error:
                        found.append(error if isinstance(error, OperationError) else failed(error))
                        if not db.in_transaction:  # an error of SQLite has ended it
                            break
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")
        return found

    def writes(self, calls: Iterable[Call]) -> Sequence[Result]:
        """Execute in one transaction, each in its own savepoint. It also stores replies: a request executes only once."""
        taken: list[Call] = []
        rest = iter(calls)
        with self._turn:
            try:
                with self._transaction(self._local) as db:
                    return self._each(db, rest, taken)
            except _TogetherError:
                pass
            found: list[Result] = []
            for call in itertools.chain(taken, rest):
                try:
                    with self._transaction(self._local) as db:
                        found.append(self._write(db, call, *self._place(db)))
                except OperationError as error:
                    found.append(error)
            return found

    def _each(self, db: apsw.Connection, calls: Iterable[Call], taken: list[Call]) -> list[Result]:
        """Execute operations one after the other."""
        self._whole()
        seq, position = self._place(db)
        found: list[Result] = []
        for call in calls:
            taken.append(call)
            try:
                outcome = self._write(db, call, seq, position)
            except OperationError as error:
                if isinstance(error, OversizeError) or not db.in_transaction:
                    raise _TogetherError from None
                found.append(error)
                continue
            position = outcome.position if outcome.wrote else position
            found.append(outcome)
        return found

    def _write(self, db: apsw.Connection, call: Call, seq: int, position: int) -> Outcome:
        """Execute an operation after update `seq` and `position` writers. OversizeError: it has left changes."""
        if (again := repeated(db, call)) is not None:
            return again
        before = db.total_changes()
        reply, update = execute(db, call, self._ids, self._writing, self._local_changes)
        if wrote := db.total_changes() > before:
            arguments = msgspec.json.encode(call.arguments)
            position = remember(db, call.request, call.operation, arguments, reply, seq)
            if self._shipping:
                made = local_update(self._server, seq, position, call, arguments, reply, update, self._shipping)
                self.post(db, made)
            self._prune(db)
        return Outcome(reply, seq, position, wrote)

    @contextmanager
    def visit(self) -> Iterator[SqliteVisit]:
        """Begin the transaction of a visit. Local writers wait until it ends."""
        with self._turn:
            try:
                self._whole()
                self._global.execute("BEGIN IMMEDIATE")
                place = self._place(self._global)
                visit = self.visits(self._global, place, self._ids, self._writing, self._changes, self._step)
                try:
                    yield visit
                finally:
                    self._owed = visit.owed
                    if self._global.in_transaction:
                        self._global.execute("ROLLBACK")
            except GONE as error:
                raise DatabaseGoneError(str(error)) from None

    def _whole(self) -> None:
        """Refuse to execute if an update of this server is in the log, but not in the state."""
        if self._owed:
            raise DatabaseGoneError(f"update {self._owed} may be in the log, but is not committed here yet")

    def together(self, calls: Sequence[Call]) -> None:
        """Always None: SQLite has one writer."""

    def apply(self, entries: Sequence[Entry], server: int) -> None:
        """Apply new updates in order. One transaction also stores the seq of the last one."""
        with self._turn, self._transaction(self._remote) as db:
            applied, chain = self._place(db)[0], chain_of(db)
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
            db.execute(f"UPDATE {OURS}state SET applied = ?, chain = ?", (applied, chain))
            self._step("applied")
        self._owed = 0 if applied >= self._owed else self._owed

    def change(self, db: apsw.Connection, entry: Entry) -> None:
        """Apply one update."""
        self.patch(db, entry.update, f"update {entry.seq} ({entry.operation} at server {entry.holder})")

    @staticmethod
    def patch(db: apsw.Connection, update: bytes, name: str) -> None:
        """Apply row images."""
        try:
            if update:
                apsw.Changeset.apply(update, db, conflict=resolve)
        except (apsw.AbortError, apsw.ConstraintError, apsw.SchemaChangeError) as error:
            raise DatabaseGoneError(
                f"{name} cannot be applied here: {error}; "
                "the states of the servers differ, or the schema of the analysis lacks a unique column"
            ) from None

    def settle(self, log: Log) -> None:
        """Do nothing: SQLite has rolled back open transactions, and missing updates will be applied from the log."""

    def _prune(self, db: apsw.Connection) -> None:
        """Delete old replies."""
        now = time.time()
        if now - self._pruned > self._keep / 10:
            self._pruned = now
            for table in ("done", "past"):
                db.execute(f"DELETE FROM {OURS}{table} WHERE at < ?", (now - self._keep,))

    # -- connections -------------------------------------------------------------------------------------------------

    @contextmanager
    def _transaction(self, db: apsw.Connection) -> Iterator[apsw.Connection]:
        try:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")
        except GONE as error:
            raise DatabaseGoneError(str(error)) from None

    @contextmanager
    def _reader(self) -> Iterator[apsw.Connection]:
        try:
            db = self._readers.get_nowait()
        except queue.Empty:
            db = self._open(NORMAL)
            db.pragma("query_only", 1)
        try:
            yield db
        except GONE as error:
            raise DatabaseGoneError(str(error)) from None
        finally:
            self._readers.put(db)

    def close(self) -> None:
        """Close all connections. Open transactions are rolled back, and statements of other threads are interrupted."""
        for db in self._opened:
            while True:
                try:
                    db.close(True)
                    break
                except apsw.ThreadingViolationError:  # it is in use at this moment
                    db.interrupt()
                    time.sleep(0.001)
