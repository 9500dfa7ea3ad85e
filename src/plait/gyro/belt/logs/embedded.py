"""The log for servers on one machine: a shared SQLite file, which is flushed to disk on every append."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from plait.gyro.belt.logs.log import Fence, LogGoneError, Stream, admit, admit_local, replaced
from plait.gyro.belt.records import Entry, LocalUpdate
from plait.kernel.extras import needs

with needs("serve"):
    import apsw

_TABLES = """
CREATE TABLE IF NOT EXISTS fence (one INTEGER PRIMARY KEY CHECK (one = 1), epoch INTEGER, turn INTEGER, last INTEGER,
  chain TEXT, incarnations TEXT);
INSERT OR IGNORE INTO fence VALUES (1, 0, 0, 0, '', '{}');
CREATE TABLE IF NOT EXISTS entries (
  seq INTEGER PRIMARY KEY, epoch INTEGER, turn INTEGER, holder INTEGER, request TEXT, operation TEXT,
  arguments BLOB, reply BLOB, updates BLOB, chain TEXT, incarnation INTEGER, shipped INTEGER);
CREATE TABLE IF NOT EXISTS streams (
  server INTEGER PRIMARY KEY, incarnation INTEGER NOT NULL, last INTEGER NOT NULL, chain TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS local_updates (
  position INTEGER, incarnation INTEGER, server INTEGER, seq INTEGER, number INTEGER, place INTEGER, request TEXT,
  operation TEXT, arguments BLOB, reply BLOB, updates BLOB, chain TEXT, PRIMARY KEY (server, position)) WITHOUT ROWID;
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
        return _fence(self._query("SELECT epoch, turn, last, chain, incarnations FROM fence")[0])

    def append(self, entries: Sequence[Entry]) -> None:
        """Append entries of one turn, all or none."""
        with self._transaction():
            (row,) = self._db.execute("SELECT epoch, turn, last, chain, incarnations FROM fence")
            after = admit(_fence(row), entries)
            self._db.executemany(
                "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [msgspec.structs.astuple(entry) for entry in entries],
            )
            self._set(after)

    def _set(self, fence: Fence) -> None:
        row = (fence.epoch, fence.turn, fence.last, fence.chain, msgspec.json.encode(fence.incarnations).decode())
        self._db.execute("UPDATE fence SET epoch = ?, turn = ?, last = ?, chain = ?, incarnations = ?", row)

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

    def agreed(self, key: str) -> str | None:
        """The value of a key that servers have agreed on."""
        found = self._query("SELECT value FROM agreed WHERE key = ?", key)
        return str(found[0][0]) if found else None

    def ship(self, server: int, updates: Sequence[LocalUpdate]) -> None:
        """Append to the stream of a server, all or none."""
        with self._transaction():
            after = admit_local(_stream(list(self._db.execute(_STREAM, (server,)))), updates)
            self._db.executemany(
                "INSERT INTO local_updates VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [msgspec.structs.astuple(update) for update in updates],
            )
            self._end(server, after)

    def _end(self, server: int, stream: Stream) -> None:
        self._db.execute("REPLACE INTO streams VALUES (?, ?, ?, ?)", (server, *msgspec.structs.astuple(stream)))

    def shipped(self, server: int, after: int, limit: int = 1000) -> list[LocalUpdate]:
        """The local updates of a server after a position."""
        sql = "SELECT * FROM local_updates WHERE server = ? AND position > ? ORDER BY position LIMIT ?"
        return [LocalUpdate(*row) for row in self._query(sql, server, after, limit)]  # type: ignore[arg-type]

    def stream(self, server: int) -> Stream:
        """The end of the stream of a server."""
        return _stream(self._query(_STREAM, server))

    def replace(self, server: int, incarnation: int) -> int | None:
        """Begin a new incarnation of a server."""
        with self._transaction():
            (row,) = self._db.execute("SELECT epoch, turn, last, chain, incarnations FROM fence")
            after = replaced(_fence(row), server, incarnation)
            if after is None:
                return None
            self._set(after)
            stream = _stream(list(self._db.execute(_STREAM, (server,))))
            self._end(server, msgspec.structs.replace(stream, incarnation=incarnation + 1))
            return incarnation + 1

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()


_STREAM = "SELECT incarnation, last, chain FROM streams WHERE server = ?"


def _fence(row: Sequence[object]) -> Fence:
    known = msgspec.json.decode(str(row[-1]), type=dict[int, int])
    return msgspec.convert((*row[:-1], known), Fence)


def _stream(rows: Sequence[Sequence[object]]) -> Stream:
    return Stream(*rows[0]) if rows else Stream()  # type: ignore[arg-type]
