"""Global operations of one server that take time in PostgreSQL, one after the other and at the same time (section 2.6)."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from plait.bench.gyro.deployment import Sample
from plait.gyro.belt.databases.postgresql.database import PostgresqlDatabase
from plait.gyro.belt.databases.postgresql.server import PostgresServer
from plait.gyro.belt.logs.embedded import EmbeddedLog
from plait.gyro.belt.node import Node
from plait.gyro.belt.records import Call, Token

CLIENTS = 8
_ROWS = 64
_SCHEMA = f"""
CREATE TABLE counters (id INTEGER PRIMARY KEY, n INTEGER NOT NULL);
INSERT INTO counters SELECT id, 0 FROM generate_series(0, {_ROWS - 1}) AS id;
ANALYZE counters;
"""


class Nowhere:
    """The messages of a server that is alone."""

    def send(self, server: int, token: Token) -> bool:
        """Nobody gets it."""
        return False

    def hint(self) -> None:
        """Nobody waits."""


class Parallel:
    """One server with PostgreSQL, and clients that call operations of a given duration."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="plait-gyro-"))
        self._folder.chmod(0o755)
        self._postgresql = PostgresServer(self._folder / "postgresql")
        self._postgresql.start()
        dsn = f"{self._postgresql.dsn} options='-c enable_seqscan=off -c jit=off'"  # as in a table with many rows
        self._database = PostgresqlDatabase(dsn, schema=_SCHEMA)
        self._log = EmbeddedLog(self._folder / "log.db")
        self._node = Node(0, 1, self._database, self._log, Nowhere(), idle=0.01)
        self._node.start()

    def run(self, seconds: float, calls: int, *, together: bool, conflict: bool) -> tuple[list[Sample], float]:
        """Each client calls an operation again and again. Returns one sample per operation, and operations per second."""
        self._node.slow = Node.slow if together else float("inf")
        samples: list[Sample] = []

        def act(row: int) -> Any:
            def run(db: Any) -> bytes:
                db.execute("SELECT 1 FROM pg_sleep(?)", (seconds,))
                db.execute("UPDATE counters SET n = n + 1 WHERE id = ?", (row,))
                return b"null"

            return run

        def client(number: int) -> None:
            for count in range(calls):
                row = 0 if conflict else (number + CLIENTS * count) % _ROWS
                begin = time.perf_counter()
                name = f"{self._node.slow}-{seconds}-{conflict}-{number}-{count}"
                self._node.submit(Call(name, "act", {}, act(row))).result(timeout=60)
                took = time.perf_counter() - begin
                samples.append(Sample(took, took, True))

        threads = [threading.Thread(target=client, args=(n,), daemon=True) for n in range(CLIENTS)]
        begin = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return samples, len(samples) / (time.perf_counter() - begin)

    def close(self) -> None:
        """Stop the server."""
        self._node.stop()
        self._log.close()
        self._database.close()
        self._postgresql.close()
        shutil.rmtree(self._folder, ignore_errors=True)
