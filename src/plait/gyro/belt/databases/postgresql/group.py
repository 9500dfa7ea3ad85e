"""Global operations that run at the same time in PostgreSQL (Saissi 2019, section 2.6).

Each operation of a *group* has its own connection and transaction, with the isolation level SERIALIZABLE. Operations
that do not conflict are prepared one after the other, appended to the log in this order, and committed in this order.
An operation that conflicts is rolled back, and executes later, alone. Saissi 2019 lets the locks of the DBMS
determine the order of conflicting operations. This would be wrong here: PostgreSQL does not lock what a transaction
reads, and may commit a transaction before another one that comes first in every serial order.

**Why the order is right.** A transaction of the group writes into the table `gyro_tail` that its update was applied.
A *guard* is a transaction that has read this table, and stays open until all transactions of the group are prepared.
So there is an rw-dependency from the guard to each transaction of the group. PostgreSQL refuses every transaction
that is the pivot of two consecutive rw-dependencies whose last transaction was prepared or committed first.

1. There is no dependency between two transactions of a group. They have no wr- or ww-dependency, because neither
   commits before the other takes its snapshot, and PostgreSQL lets only one of two such transactions write a row.
   Suppose there is an rw-dependency T → U. Then guard → T → U. If U is prepared first, PostgreSQL refuses T. If T is
   prepared first, PostgreSQL refuses to prepare U, because U might commit before T.
2. There is no rw-dependency from a transaction T of a group to a local operation L. L has not seen the commit of T,
   because otherwise L follows T. L also reads `gyro_tail`, to know its position, so there is an rw-dependency from L
   to T. PostgreSQL refuses one of two transactions that depend on each other.
3. So there is a serial order of all transactions in which groups and visits have the order of the log. Otherwise
   there is a cycle of dependencies, and of edges from each transaction of a group to the next one. Take the
   transaction Y of the cycle that commits first. The edge X → Y is an rw-dependency, because all other edges follow
   the order of commits. By 1 and 2, X is not in a group. Its predecessor P has no wr- or ww-dependency to X: otherwise
   P commits before X takes its snapshot, and so before Y commits. So P → X → Y are consecutive rw-dependencies, and Y
   commits first: PostgreSQL refuses them.

**Crashes.** Each prepared transaction has its own number in the log. Recovery commits those that the log contains, in
the order of the log, and rolls back the others. Dependencies cannot arise between prepared transactions, so the guard
is not needed any more.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from plait.gyro.belt.databases.database import OURS
from plait.gyro.belt.databases.outbox import remembered
from plait.gyro.belt.databases.postgresql.database import CONFLICTS, changes, place, run
from plait.gyro.belt.databases.postgresql.outbox import RECORD
from plait.gyro.belt.databases.postgresql.rows import Table
from plait.gyro.belt.logs.log import Log, append_surely, size_of
from plait.gyro.belt.records import Call, Entry, OperationError, chained
from plait.kernel.extras import needs

with needs("serve"):
    import psycopg
    from psycopg import errors, sql

_LEFT = (*CONFLICTS, errors.LockNotAvailable, errors.UniqueViolation)
"""Errors after which an operation executes alone: conflicts, and locks of prepared transactions of the same group."""
_BEGIN = "BEGIN ISOLATION LEVEL SERIALIZABLE"
_WAIT = "20ms"
"""How long an operation waits for a row lock. A transaction of the group keeps its locks until the group commits."""
Db = psycopg.Connection[Any]
Make = Callable[[int, Call, bytes, bytes], Entry]
"""Makes an entry of the log: from its seq, the call, the reply and the update; without the hash of the history."""


class PostgresqlGroup:
    """Operations that run at the same time. All their snapshots are taken when it is made."""

    guarded = True
    """Whether the guard reads. False only in tests, to show that it is needed."""

    def __init__(
        self,
        guard: Db,
        connections: Sequence[Db],
        known: dict[str, Table],
        server: int,
        step: Callable[[str], None],
    ) -> None:
        self._connections = connections
        self._guard = guard
        self._tables = known
        self._server = server
        self._step = step
        self._lock = threading.Lock()
        self._prepared: list[tuple[Db, sql.Literal]] = []
        self.entries: list[Entry] = []
        """The updates of the group, in the order of the log."""
        self.seconds = 0.0
        """The mean time that an operation took."""
        guard.execute(_BEGIN)
        self.seq, self.chain = place(guard)
        if not self.guarded:
            guard.execute("ROLLBACK")
        for number, db in enumerate(connections):
            db.execute(_BEGIN)
            db.execute(
                "SELECT set_config('gyro.capture', 'on', true), set_config('gyro.slot', %s, true), "
                "set_config('lock_timeout', %s, true)",
                (str(number), _WAIT),
            )

    def run(self, calls: Sequence[Call], make: Make, largest: int) -> None:
        """Execute and prepare the operations that do not conflict; `largest` limits the size of all updates together."""
        with ThreadPoolExecutor(max_workers=len(calls), thread_name_prefix="group") as threads:
            futures = [threads.submit(self._run, n, call, make, largest) for n, call in enumerate(calls)]
        self.seconds = sum(future.result() for future in futures) / len(calls)
        self._guard.execute("ROLLBACK")

    def _run(self, number: int, call: Call, make: Make, largest: int) -> float:
        db = self._connections[number]
        self._step("execute")
        begin = time.perf_counter()
        took = 0.0
        try:
            reply = run(db, call)
            took = time.perf_counter() - begin
            rows = db.execute(f"DELETE FROM {OURS}changes_{number} RETURNING n, relation, kind, old, new").fetchall()
            update = changes(rows, self._tables)
            self._step("executed")
            if update:
                with self._lock:
                    self._prepare(db, make(self.seq + len(self.entries) + 1, call, reply, update), largest)
        except (OperationError, *_LEFT):
            pass  # it executes alone, and an error of the application is reported then
        finally:
            if not db.closed and db.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                db.execute("ROLLBACK")
        return took

    def _prepare(self, db: Db, entry: Entry, largest: int) -> None:
        """Prepare a transaction, and give it the next place in the order. If it conflicts, this raises an error."""
        (entry,) = chained(self.entries[-1].chain if self.entries else self.chain, [entry])
        if sum(map(size_of, [*self.entries, entry])) > largest:
            return
        db.execute(f"INSERT INTO {OURS}tail (seq, chain) VALUES (%s, %s)", (entry.seq, entry.chain))
        db.execute(RECORD, remembered(entry, time.time()))
        self._step("captured")
        name = sql.Literal(f"{OURS}{self._server}:{entry.epoch}:{entry.turn}:{entry.seq}")
        db.execute(sql.SQL("PREPARE TRANSACTION {}").format(name))
        self.entries.append(entry)
        self._prepared.append((db, name))
        self._step("prepared")

    def commit(self, log: Log) -> None:
        """Append the updates to the log, then commit in the same order."""
        if not self.entries:
            return
        try:
            append_surely(log, self.entries)
        except Exception:
            for db, name in self._prepared:
                db.execute(sql.SQL("ROLLBACK PREPARED {}").format(name))
            raise
        self._step("appended")
        for db, name in self._prepared:
            db.execute(sql.SQL("COMMIT PREPARED {}").format(name))
            self._step("committed")
