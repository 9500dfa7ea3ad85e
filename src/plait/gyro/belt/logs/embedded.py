"""The log for servers on one machine: a shared SQLite file, which is flushed to disk on every append."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from plait.gyro.belt.logs.log import Fence, LogGoneError, admit
from plait.gyro.belt.records import Entry
from plait.kernel.extras import needs

with needs("serve"):
    import apsw

_TABLES = """
CREATE TABLE IF NOT EXISTS fence (one INTEGER PRIMARY KEY CHECK (one = 1), epoch INTEGER, turn INTEGER, last INTEGER,
  chain TEXT);
INSERT OR IGNORE INTO fence VALUES (1, 0, 0, 0, '');
CREATE TABLE IF NOT EXISTS entries (
  seq INTEGER PRIMARY KEY, epoch INTEGER, turn INTEGER, holder INTEGER, request TEXT, operation TEXT,
  arguments BLOB, reply BLOB, updates BLOB, chain TEXT);
CREATE TABLE IF NOT EXISTS agreed (key TEXT PRIMARY KEY, value TEXT);
"""


class EmbeddedLog:
    """A log in one file, with one transaction per append."""

    largest = 256 << 20

    def __init__(self, file: Path) -> None:
        self._lock = threading.Lock()
        try:
            self._db = apsw.Connection(str(file))
            self._db.set_busy_timeout(10_000)
            self._db.pragma("journal_mode", "wal")
            self._db.pragma("synchronous", 2)
            with self._transaction():
                self._db.execute(_TABLES)
        except apsw.Error as error:
            raise LogGoneError(f"{file}: {error}") from None

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                try:
                    yield
                except BaseException:
                    self._db.execute("ROLLBACK")
                    raise
                self._db.execute("COMMIT")
            except apsw.Error as error:
                raise LogGoneError(str(error)) from None

    def _query(self, sql: str, *bindings: int | str) -> list[tuple[object, ...]]:
        with self._lock:
            try:
                return list(self._db.execute(sql, bindings))
            except apsw.Error as error:
                raise LogGoneError(str(error)) from None

    def fence(self) -> Fence:
        """The current fence."""
        return Fence(*self._query("SELECT epoch, turn, last, chain FROM fence")[0])  # type: ignore[arg-type]

    def append(self, entries: Sequence[Entry]) -> None:
        """Append entries of one turn, all or none."""
        with self._transaction():
            (row,) = self._db.execute("SELECT epoch, turn, last, chain FROM fence")
            after = admit(Fence(*row), entries)
            self._db.executemany(
                "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [msgspec.structs.astuple(entry) for entry in entries],
            )
            self._db.execute(
                "UPDATE fence SET epoch = ?, turn = ?, last = ?, chain = ?", msgspec.structs.astuple(after)
            )

    def read(self, after: int, limit: int = 1000) -> list[Entry]:
        """The entries after a seq."""
        rows = self._query("SELECT * FROM entries WHERE seq > ? ORDER BY seq LIMIT ?", after, limit)
        return [Entry(*row) for row in rows]  # type: ignore[arg-type]

    def reissue(self, epoch: int) -> int | None:
        """End an epoch; return the new one, or None if it has already ended."""
        with self._transaction():
            self._db.execute("UPDATE fence SET epoch = epoch + 1, turn = 0 WHERE epoch = ?", (epoch,))
            return epoch + 1 if self._db.changes() else None

    def agree(self, key: str, value: str) -> str:
        """The first value that any server gave for a key."""
        with self._transaction():
            self._db.execute("INSERT OR IGNORE INTO agreed VALUES (?, ?)", (key, value))
            ((found,),) = self._db.execute("SELECT value FROM agreed WHERE key = ?", (key,))
            return str(found)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()
