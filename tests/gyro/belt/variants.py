"""Servers that differ from what is shipped: rough conditions, parallel operations, and a mistake that judges must see."""

from __future__ import annotations

from typing import Any

import apsw
import pytest

from plait.gyro.belt.databases.mariadb.server import missing
from plait.gyro.belt.databases.postgresql.server import programs
from plait.gyro.belt.databases.sqlite.database import SqliteDatabase
from plait.gyro.belt.records import Entry
from tests.support.engines import Engine, Mariadb, Postgresql, Sqlite

ROUGH: dict[str, Any] = {"crashes": 0.02, "losses": 0.02, "delay": 0.002}
needs_postgresql = pytest.mark.skipif(programs() is None, reason="PostgreSQL is not installed (Debian: postgresql)")

needs_mariadb = pytest.mark.skipif(missing() is not None, reason=f"{missing()} (Debian: mariadb-server)")


class ParallelPostgresql(Postgresql):
    parallel = 4


class ParallelMariadb(Mariadb):
    parallel = 4


class Skipping(SqliteDatabase):
    """Forgets some updates of other servers."""

    def change(self, db: apsw.Connection, entry: Entry) -> None:
        if entry.seq % 4:
            super().change(db, entry)


def engine(made: type[SqliteDatabase]) -> type[Engine]:
    """An engine with databases of this class."""
    return type("Mutant", (Sqlite,), {"made": made})
