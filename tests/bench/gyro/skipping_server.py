"""A server that forgets some updates of other servers: `plait bench gyro --faults` must notice it."""

import sys
from pathlib import Path
from typing import Any

import apsw

from plait.gyro.belt.databases.sqlite.database import SqliteDatabase
from plait.gyro.belt.records import Entry
from plait.gyro.belt.server import main
from plait.gyro.belt.service.watch import exit_with
from plait.gyro.belt.settings import Settings


class Skipping(SqliteDatabase):
    """Forgets some updates of other servers."""

    def change(self, db: apsw.Connection, entry: Entry) -> None:
        if entry.seq % 4:
            super().change(db, entry)


def open_database(number: int, settings: Settings, step: Any) -> Skipping:
    """The database of a server."""
    folder = Path(settings.folder) / f"server-{number}"
    folder.mkdir(exist_ok=True)
    return Skipping(
        folder / "app.db",
        server=number,
        servers=settings.servers,
        schema=settings.schema,
        step=step,
        keep=settings.keep,
    )


if __name__ == "__main__":
    exit_with(main(sys.argv[1:], open_database=open_database))
