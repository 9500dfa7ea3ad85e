"""The outbox of SQLite. There is one writer at a time, so the numbers of updates have the order of their commits."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager

from plait.gyro.belt.databases.database import OURS
from plait.gyro.belt.databases.outbox import posted, remembered
from plait.gyro.belt.ids import Ids
from plait.gyro.belt.records import Entry, LocalUpdate, follow
from plait.kernel.extras import needs

with needs("serve"):
    import apsw

TABLES = f"""
CREATE TABLE IF NOT EXISTS {OURS}outbox (
  number INTEGER PRIMARY KEY AUTOINCREMENT, seq INTEGER NOT NULL, place INTEGER NOT NULL, request TEXT NOT NULL,
  operation TEXT NOT NULL, arguments BLOB NOT NULL, reply BLOB NOT NULL, updates BLOB NOT NULL);
"""
RECORD = f"INSERT INTO {OURS}done VALUES (?, ?, ?, ?, ?, ?, ?)"
STREAM = f"""
CREATE TABLE IF NOT EXISTS {OURS}stream (one INTEGER PRIMARY KEY CHECK (one = 1), position INTEGER NOT NULL,
  chain TEXT NOT NULL, whole INTEGER NOT NULL);
INSERT OR IGNORE INTO {OURS}stream VALUES (1, 0, '', %d);
"""


class SqliteOutbox:
    """The part of a SqliteDatabase that ships local updates, and applies them again."""

    _server: int
    _ids: Ids
    _turn: threading.Lock
    _local: apsw.Connection
    _remote: apsw.Connection

    def _reader(self) -> AbstractContextManager[apsw.Connection]:
        raise NotImplementedError

    def _transaction(self, db: apsw.Connection) -> AbstractContextManager[apsw.Connection]:
        raise NotImplementedError

    @staticmethod
    def patch(db: apsw.Connection, update: bytes, name: str) -> None:
        """Apply row images."""
        raise NotImplementedError

    def post(self, db: apsw.Connection, update: LocalUpdate) -> None:
        """Add a local update to the outbox, in the transaction of its operation."""
        db.execute(f"INSERT INTO {OURS}outbox VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", posted(update))

    def outbox(self, known: Collection[int], limit: int) -> list[LocalUpdate]:
        """The first local updates of the outbox. SQLite numbers them in the order of their commits."""
        with self._reader() as db:
            rows = db.execute(f"SELECT * FROM {OURS}outbox ORDER BY number LIMIT ?", (limit + len(known),))
            return [
                LocalUpdate(0, 0, self._server, seq, number, *rest)
                for number, seq, *rest in rows
                if number not in known
            ]

    def shipped(self) -> tuple[int, str]:
        """The position and the hash of the last local update that is not in the outbox any more."""
        with self._reader() as db:
            ((position, chain),) = db.execute(f"SELECT position, chain FROM {OURS}stream")
            return int(position), str(chain)

    def forget(self, updates: Sequence[LocalUpdate], *, patient: bool) -> bool:
        """Remove updates that the log has from the outbox. A power failure may undo this: then the log tells again."""
        if not self._turn.acquire(blocking=patient):
            return False
        try:
            with self._transaction(self._remote) as db:
                db.executemany(f"DELETE FROM {OURS}outbox WHERE number = ?", [(u.number,) for u in updates])
                self._advance(db, updates[-1])
            return True
        finally:
            self._turn.release()

    @staticmethod
    def _advance(db: apsw.Connection, last: LocalUpdate) -> None:
        db.execute(f"UPDATE {OURS}stream SET position = ?, chain = ?", (last.position, last.chain))

    def whole(self) -> bool:
        """Whether the outbox got all local updates since the rows of the schema."""
        with self._reader() as db:
            ((found,),) = db.execute(f"SELECT whole FROM {OURS}stream")
            return bool(found)

    def replay(self, updates: Sequence[LocalUpdate]) -> None:
        """Apply own local updates of the log, in one transaction."""
        with self._turn, self._transaction(self._remote) as db:
            ((_, chain),) = db.execute(f"SELECT position, chain FROM {OURS}stream")
            for update in updates:
                chain = follow(chain, update)
                self.patch(db, update.update, f"local update {update.position} ({update.operation})")
                self.record(db, update)
            self._advance(db, updates[-1])

    @staticmethod
    def record(db: apsw.Connection, update: Entry | LocalUpdate) -> None:
        """Store the reply of an update of the log. If the name of the request was used again later, the last one counts."""
        db.execute(f"DELETE FROM {OURS}done WHERE request = ?", (update.request,))
        db.execute(RECORD, remembered(update, time.time()))

    def renew(self, gap: int) -> None:
        """Leave out a number of generated ids."""
        with self._turn, self._transaction(self._local) as db:
            self._ids.skip(db, gap)
