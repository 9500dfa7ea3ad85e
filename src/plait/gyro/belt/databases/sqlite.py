"""The SQLite of a server: one writer, readers on snapshots, updates as changesets of the session extension.

There is one writer at a time, so the order of commits is the serial order. A reader comes after the last commit that
its snapshot contains. For an updated row, a changeset contains only the changed columns, because local operations of
another server may have changed the others. When a changeset is applied, the row may differ or be missing here, because
local operations of the executing server changed it. The changeset is still right: other servers do not read these
columns, otherwise the operations would not be local. So the changeset wins all conflicts. It also contains the effects
of triggers and foreign keys, so these are off while it is applied.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from plait.gyro.belt.databases.database import OURS
from plait.gyro.belt.databases.dbapi import SAVEPOINT
from plait.gyro.belt.databases.sqlite_connection import GONE, SqliteConnection
from plait.gyro.belt.ids import COUNTERS, TABLE, Ids, quoted
from plait.gyro.belt.logs.log import BehindError, FencedError, Log, TooLargeError, append_surely
from plait.gyro.belt.records import Call, DatabaseGoneError, Entry, ForkedError, OperationError, Outcome, failed, follow
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
_DONE = f"INSERT INTO {OURS}done (request, operation, arguments, reply, seq, at) VALUES (?, ?, ?, ?, ?, ?)"
_AGAIN = f"SELECT reply, seq, position, operation, arguments FROM {OURS}done WHERE request = ?"
_PLACE = f"SELECT applied, (SELECT coalesce(max(position), 0) FROM {OURS}done) FROM {OURS}state"
FULL, NORMAL = 2, 1


class SqliteDatabase:
    """One file, with three connections that write in turn, and a pool of connections that read."""

    visits: type[SqliteVisit]

    def __init__(
        self,
        file: Path,
        *,
        server: int = 0,
        servers: int = 1,
        schema: str = "",
        step: Callable[[str], None] = lambda _: None,
        keep: float = 3600.0,
    ) -> None:
        self._file = str(file)
        self._step = step
        self._keep = keep
        self._pruned = time.time()
        self._owed = 0
        """The seq of an update that may be in the log, but is not committed here; 0 if there is none."""
        self._turn = threading.Lock()
        self._readers: queue.LifoQueue[apsw.Connection] = queue.LifoQueue()
        self._opened: list[apsw.Connection] = []
        try:
            fresh = not file.exists() or file.stat().st_size == 0
            self._local = self._open(FULL)
            if fresh:
                self._create(schema, file)
            self._local.execute(_OURS + COUNTERS)
            self._check()
            self._ids = Ids(self._generated(), server, servers)
            self._global = self._open(NORMAL)  # the log has what these two lose in a power failure
            self._remote = self._open(NORMAL)
            self._remote.pragma("foreign_keys", 0)
            self._remote.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
            for db in (self._local, self._global):
                db.pragma("foreign_keys", 1)
                self._ids.install(db)
            self._guard()
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
        """Forbid NULL in primary keys for global operations: changesets omit such rows."""
        for number, table in enumerate(self._tables()):
            keys = [(name, kind, strict) for name, kind, strict, place in self._columns(table) if place]
            if len(keys) == 1 and keys[0][1].upper() == "INTEGER":
                continue
            if nullable := [name for name, _, strict in keys if not strict]:
                condition = " OR ".join(f"NEW.{quoted(name)} IS NULL" for name in nullable)
                for when in ("INSERT", "UPDATE"):
                    self._global.execute(
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
            return _chain(db)

    def schema(self) -> str:
        """Tables, columns and keys, as text."""
        lines = []
        for table in self._tables():
            columns = [f"{name} {kind}{' KEY' if place else ''}" for name, kind, _, place in self._columns(table)]
            lines.append(f"{table} ({', '.join(columns)})")
        return "\n".join(lines)

    # -- operations --------------------------------------------------------------------------------------------------

    def applied(self) -> int:
        """The seq of the last update that the state contains."""
        with self._reader() as db:
            return self._place(db)[0]

    @staticmethod
    def _place(db: apsw.Connection) -> tuple[int, int]:
        ((seq, position),) = db.execute(_PLACE)
        return int(seq), int(position)

    def read(self, call: Call) -> Outcome:
        """Execute on a snapshot. A write is an error, which reveals a wrong classification."""
        with self._reader() as db:
            db.execute("BEGIN")
            try:
                seq, position = self._place(db)
                return Outcome(_run(db, call, None), seq, position)
            finally:
                db.execute("ROLLBACK")

    def write(self, call: Call) -> Outcome:
        """Execute a local operation. The reply is stored in the same transaction, so a request executes only once."""
        with self._turn, self._transaction(self._local) as db:
            self._whole()
            if (again := _repeated(db, call)) is not None:
                return again
            before = db.total_changes()
            reply = _run(db, call, self._ids)
            seq, position = self._place(db)
            if wrote := db.total_changes() > before:
                position = _remember(db, call.request, call.operation, msgspec.json.encode(call.arguments), reply, seq)
                self._prune(db)
            return Outcome(reply, seq, position, wrote)

    @contextmanager
    def visit(self) -> Iterator[SqliteVisit]:
        """Begin the transaction of a visit. Local writers wait until it ends."""
        with self._turn:
            try:
                self._whole()
                self._global.execute("BEGIN IMMEDIATE")
                visit = self.visits(self._global, self._place(self._global), self._ids, self._step)
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

    def apply(self, entries: Sequence[Entry], server: int) -> None:
        """Apply new updates in order. One transaction also stores the seq of the last one."""
        with self._turn, self._transaction(self._remote) as db:
            applied, chain = self._place(db)[0], _chain(db)
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
            db.execute(f"UPDATE {OURS}state SET applied = ?, chain = ?", (applied, chain))
            self._step("applied")
        self._owed = 0 if applied >= self._owed else self._owed

    def change(self, db: apsw.Connection, entry: Entry) -> None:
        """Apply one update."""
        try:
            apsw.Changeset.apply(entry.update, db, conflict=_resolve)
        except (apsw.AbortError, apsw.ConstraintError, apsw.SchemaChangeError) as error:
            raise DatabaseGoneError(
                f"update {entry.seq} ({entry.operation} at server {entry.holder}) cannot be applied here: {error}; "
                "the states of the servers differ, or the schema of the analysis lacks a unique column"
            ) from None

    def settle(self, log: Log) -> None:
        """Do nothing: SQLite has rolled back open transactions, and missing updates will be applied from the log."""

    def _prune(self, db: apsw.Connection) -> None:
        """Delete old replies."""
        now = time.time()
        if now - self._pruned > self._keep / 10:
            self._pruned = now
            db.execute(f"DELETE FROM {OURS}done WHERE at < ?", (now - self._keep,))

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


class SqliteVisit:
    """Global operations, one after the other, in one transaction. It commits only if the log accepts it."""

    def __init__(self, db: apsw.Connection, place: tuple[int, int], ids: Ids, step: Callable[[str], None]) -> None:
        self.seq, self.position = place
        self.chain = _chain(db)
        self.owed = 0
        self._db = db
        self._ids = ids
        self._step = step

    @property
    def alive(self) -> bool:
        """Whether the transaction is still open."""
        return self._db.in_transaction

    def repeated(self, call: Call) -> Outcome | None:
        """The reply of an earlier execution of this request."""
        return _repeated(self._db, call)

    def execute(self, call: Call) -> tuple[bytes, bytes]:
        """Execute an operation in its own savepoint. A session records the changes."""
        session = apsw.Session(self._db, "main")
        try:
            session.table_filter(lambda name: name == TABLE or not name.startswith(OURS))
            session.attach()
            reply = _run(self._db, call, self._ids)
            return reply, session.changeset()
        finally:
            session.close()

    def commit(self, entries: Sequence[Entry], log: Log) -> None:
        """Append to the log, then commit. After the append the operations have happened, even if this process dies."""
        for entry in entries:
            _remember(self._db, entry.request, entry.operation, entry.arguments, entry.reply, entry.seq)
        if entries:
            last = entries[-1]
            self._db.execute(f"UPDATE {OURS}state SET applied = ?, chain = ?", (last.seq, last.chain))
            self._step("captured")
            self.owed = entries[-1].seq  # until the log certainly refuses them
            try:
                append_surely(log, entries)
            except (BehindError, FencedError, ForkedError, TooLargeError):
                self.owed = 0
                raise
            self._step("appended")
        self._db.execute("COMMIT")
        self.owed = 0
        self._step("committed")


def _run(db: apsw.Connection, call: Call, ids: Ids | None) -> bytes:
    """Run the function of the application. If it raises, roll back its effects."""
    db.execute(f"SAVEPOINT {SAVEPOINT}")
    try:
        reply = call.run(SqliteConnection(db, ids))
    except GONE:
        raise
    except Exception as error:
        if db.in_transaction:  # some errors of SQLite end the transaction
            db.execute(f"ROLLBACK TO {SAVEPOINT}; RELEASE {SAVEPOINT}")
        raise (error if isinstance(error, OperationError) else failed(error)) from error
    db.execute(f"RELEASE {SAVEPOINT}")
    return reply


def _repeated(db: apsw.Connection, call: Call) -> Outcome | None:
    for reply, seq, position, operation, arguments in db.execute(_AGAIN, (call.request,)):
        call.check_same(operation, arguments)
        return Outcome(reply, seq, position, repeated=True)
    return None


def _remember(db: apsw.Connection, request: str, operation: str, arguments: bytes, reply: bytes, seq: int) -> int:
    db.execute(_DONE, (request, operation, arguments, reply, seq, time.time()))
    return db.last_insert_rowid()


def _resolve(reason: int, _change: apsw.TableChange) -> int:
    """The changeset wins: replace rows that exist, ignore rows that are missing."""
    if reason in (apsw.SQLITE_CHANGESET_DATA, apsw.SQLITE_CHANGESET_CONFLICT):
        return int(apsw.SQLITE_CHANGESET_REPLACE)
    if reason == apsw.SQLITE_CHANGESET_NOTFOUND:
        return int(apsw.SQLITE_CHANGESET_OMIT)
    return int(apsw.SQLITE_CHANGESET_ABORT)


SqliteDatabase.visits = SqliteVisit


def _chain(db: apsw.Connection) -> str:
    """The hash of the updates that the state contains."""
    ((found,),) = db.execute(f"SELECT chain FROM {OURS}state")
    return str(found)
