"""The outbox of PostgreSQL."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from plait.gyro.belt.databases.database import OURS
from plait.gyro.belt.databases.outbox import posted, remembered
from plait.gyro.belt.databases.postgresql.rows import Table, skip
from plait.gyro.belt.records import Entry, LocalUpdate, follow
from plait.kernel.extras import needs

with needs("serve"):
    import psycopg

_POSITIONS = f"{OURS}done_position_seq"
RECORD = f"INSERT INTO {OURS}done VALUES (%s, %s, %s, %s, %s, %s, %s)"
_RECORD_AGAIN = (
    f"{RECORD} ON CONFLICT (request) DO UPDATE SET (position, operation, arguments, reply, seq, at) = "
    "(excluded.position, excluded.operation, excluded.arguments, excluded.reply, excluded.seq, excluded.at)"
)
"""A DELETE would read, and conflict with operations that run."""
_USE = f"SELECT setval('{_POSITIONS}', greatest(last_value, %s)) FROM {_POSITIONS}"


class PostgresqlOutbox:
    """The part of a PostgresqlDatabase that ships local updates, and applies them again."""

    _server: int
    _servers: int
    _rank: int
    _tables: dict[str, Table]
    _position: int
    _used: dict[str, int]
    """The greatest id of each sequence, in updates that were applied."""

    def _connection(self, name: str) -> AbstractContextManager[psycopg.Connection[Any]]:
        raise NotImplementedError

    def _query(self, statement: str) -> int:
        raise NotImplementedError

    def patch(self, db: psycopg.Connection[Any], update: bytes, name: str) -> None:
        """Apply row images."""
        raise NotImplementedError

    def post(self, db: psycopg.Connection[Any], update: LocalUpdate) -> None:
        """Add a local update to the outbox, in the transaction of its operation."""
        columns = "seq, place, request, operation, arguments, reply, updates"
        db.execute(f"INSERT INTO {OURS}outbox ({columns}) VALUES (%s, %s, %s, %s, %s, %s, %s)", posted(update))

    def outbox(self, known: Collection[int], limit: int) -> list[LocalUpdate]:
        """The first local updates of the outbox.

        They are in an order of dependencies. If an operation reads or overwrites rows of another one, the other one
        has committed before the snapshot of this one. So it has a smaller number, and a reader of this one sees it, too.
        """
        with self._connection("") as db:  # not SERIALIZABLE: local operations do not conflict with this query
            rows = db.execute(f"SELECT * FROM {OURS}outbox ORDER BY number LIMIT %s", (limit + len(known),)).fetchall()
            return [
                LocalUpdate(0, 0, self._server, seq, number, *rest)
                for number, seq, *rest in rows
                if number not in known
            ]

    def shipped(self) -> tuple[int, str]:
        """The position and the hash of the last local update that is not in the outbox any more."""
        with self._connection("") as db:
            ((position, chain),) = db.execute(f"SELECT position, chain FROM {OURS}stream").fetchall()
            return int(position), str(chain)

    def forget(self, updates: Sequence[LocalUpdate], *, patient: bool) -> bool:
        """Remove updates that the log has from the outbox."""
        with self._connection("") as db, transaction(db, "BEGIN"):
            db.execute(f"DELETE FROM {OURS}outbox WHERE number = ANY(%s)", ([u.number for u in updates],))
            self._advance(db, updates[-1])
        return True

    @staticmethod
    def _advance(db: psycopg.Connection[Any], last: LocalUpdate) -> None:
        db.execute(f"UPDATE {OURS}stream SET position = %s, chain = %s", (last.position, last.chain))

    def whole(self) -> bool:
        """Whether the outbox got all local updates since the rows of the schema."""
        return bool(self._query(f"SELECT whole::int FROM {OURS}stream"))

    def replay(self, updates: Sequence[LocalUpdate]) -> None:
        """Apply own local updates of the log, in one transaction."""
        with self._connection("apply") as db:
            db.execute("SET session_replication_role = replica")
            with transaction(db, "BEGIN"):
                chain = self.shipped()[1]
                for update in updates:
                    chain = follow(chain, update)
                    self.patch(db, update.update, f"local update {update.position} ({update.operation})")
                    db.execute(_USE, (update.order,))
                    self.record(db, update)
                self._advance(db, updates[-1])

    @staticmethod
    def record(db: psycopg.Connection[Any], update: Entry | LocalUpdate) -> None:
        """Store the reply of an update of the log. If the name of the request was used again later, the last one counts."""
        db.execute(_RECORD_AGAIN, remembered(update, time.time()))

    def renew(self, gap: int) -> None:
        """Leave out a number of generated ids."""
        with self._connection("") as db, transaction(db, "BEGIN"):
            for table in self._tables.values():
                skip(db, table, self._rank, self._servers, self._used, gap)
        self._position = self._query(f"SELECT last_value * is_called::int FROM {_POSITIONS}")


@contextmanager
def transaction(db: psycopg.Connection[Any], begin: str) -> Iterator[None]:
    """Commit after the block; roll back after an error."""
    db.execute(begin)
    try:
        yield
    except BaseException:
        if not db.closed:
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")
