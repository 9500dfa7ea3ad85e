"""The outbox of MariaDB."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from plait.gyro.belt.databases.database import OURS
from plait.gyro.belt.databases.mariadb.connection import Db, execute
from plait.gyro.belt.databases.mariadb.rows import Table, begin_ids, first_id
from plait.gyro.belt.databases.outbox import posted, remembered
from plait.gyro.belt.records import Entry, LocalUpdate, follow

RECORD = f"INSERT INTO {OURS}done VALUES (%s, %s, %s, %s, %s, %s, %s)"


class MariadbOutbox:
    """The part of a MariadbDatabase that ships local updates, and applies them again."""

    _server: int
    _servers: int
    _rank: int
    _tables: dict[str, Table]
    _position: int
    _used: dict[str, int]
    """The greatest generated id of each table, in updates that were applied."""

    def _connection(self, name: str) -> AbstractContextManager[Db]:
        raise NotImplementedError

    def patch(self, db: Db, update: bytes, name: str) -> None:
        """Apply row images."""
        raise NotImplementedError

    def post(self, db: Db, update: LocalUpdate) -> None:
        """Add a local update to the outbox, in the transaction of its operation."""
        columns = "seq, place, request, operation, arguments, reply, updates"
        execute(db, f"INSERT INTO {OURS}outbox ({columns}) VALUES (%s, %s, %s, %s, %s, %s, %s)", posted(update))

    def outbox(self, known: Collection[int], limit: int) -> list[LocalUpdate]:
        """The first local updates of the outbox.

        They are in an order of dependencies. An operation gets its number when it has all its locks. If another operation
        depends on it, it got one of these locks later, after the commit. So the other one has a greater number, and a
        snapshot that contains the other one contains this one.
        """
        with self._connection("read") as db:
            rows = execute(db, f"SELECT * FROM {OURS}outbox ORDER BY number LIMIT %s", (limit + len(known),))
            return [
                LocalUpdate(0, 0, self._server, seq, number, *rest)
                for number, seq, *rest in rows
                if number not in known
            ]

    def shipped(self) -> tuple[int, str]:
        """The position and the hash of the last local update that is not in the outbox any more."""
        with self._connection("read") as db:
            ((position, chain),) = execute(db, f"SELECT position, chain FROM {OURS}stream")
            return int(position), str(chain)

    def forget(self, updates: Sequence[LocalUpdate], *, patient: bool) -> bool:
        """Remove updates that the log has from the outbox."""
        with self._connection("own") as db, transaction(db):
            marks = ", ".join(["%s"] * len(updates))
            execute(db, f"DELETE FROM {OURS}outbox WHERE number IN ({marks})", [u.number for u in updates])
            self._advance(db, updates[-1])
        return True

    @staticmethod
    def _advance(db: Db, last: LocalUpdate) -> None:
        execute(db, f"UPDATE {OURS}stream SET position = %s, chain = %s", (last.position, last.chain))

    def whole(self) -> bool:
        """Whether the outbox got all local updates since the rows of the schema."""
        with self._connection("read") as db:
            return bool(execute(db, f"SELECT whole FROM {OURS}stream")[0][0])

    def replay(self, updates: Sequence[LocalUpdate]) -> None:
        """Apply own local updates of the log, in one transaction."""
        with self._connection("apply") as db, transaction(db):
            ((chain,),) = execute(db, f"SELECT chain FROM {OURS}stream")
            for update in updates:
                chain = follow(chain, update)
                self.patch(db, update.update, f"local update {update.position} ({update.operation})")
                self.record(db, update)
            self._advance(db, updates[-1])

    @staticmethod
    def record(db: Db, update: Entry | LocalUpdate) -> None:
        """Store the reply of an update of the log. If the name of the request was used again later, the last one counts."""
        execute(db, f"REPLACE{RECORD.removeprefix('INSERT')}", remembered(update, time.time()))

    def renew(self, gap: int) -> None:
        """Leave out a number of generated ids."""
        with self._connection("own") as db:
            for table in self._tables.values():
                if table.generated:
                    used = self._used.get(table.name, 0)
                    begin_ids(db, table.name, first_id(db, table, self._rank, self._servers, used, gap))
            self._position = last_position(db)


@contextmanager
def transaction(db: Db, begin: str = "START TRANSACTION") -> Iterator[None]:
    """Commit after the block; roll back after an error."""
    execute(db, begin)
    try:
        yield
    except BaseException:
        if db.open:
            execute(db, "ROLLBACK")
        raise
    execute(db, "COMMIT")


def last_position(db: Db) -> int:
    """The position of the last reply."""
    return int(execute(db, f"SELECT COALESCE(MAX(position), 0) FROM {OURS}done WHERE position > 0")[0][0])
