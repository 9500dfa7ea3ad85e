"""A single server: executes requests one after the other on one database, with the ids of the servers that executed them.

`python -m tests.gyro.web.judge APPLICATION RECORDING DATA` reads a list of events from stdin, prints the responses. It has
no routing, no contract and no replication.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import apsw
import msgspec

from plait.gyro.belt.databases.dbapi import SAVEPOINT
from plait.gyro.belt.databases.sqlite.connection import SqliteConnection
from plait.gyro.belt.ids import COUNTERS, Ids
from plait.gyro.source.listing import schema_text
from plait.gyro.web.engine import inside, install
from plait.gyro.web.frameworks import load_application
from plait.gyro.web.requests import WebRequest, WebResponse


class Event(msgspec.Struct):
    """A request, the server that executed it, and its place in the order."""

    request: WebRequest
    server: int
    order: tuple[int, int, int, int, int]


class Stage(msgspec.Struct):
    """A configuration: its first seq, its members, and the migration that has begun it."""

    seq: int
    members: list[int]
    migration: str = ""


class Run(msgspec.Struct):
    """What the servers have executed, and their configurations."""

    events: list[Event]
    stages: list[Stage]


def main(application: str, recording: str, data: str) -> None:
    schema = schema_text(Path(recording)) + Path(data).read_text(encoding="utf-8")
    install("sqlite", schema)
    framework, _ = load_application(application)
    db = apsw.Connection(":memory:")
    db.pragma("foreign_keys", 1)
    db.execute(schema)
    db.execute(COUNTERS)
    run = msgspec.json.decode(sys.stdin.buffer.read(), type=Run)
    replies: list[WebResponse] = []
    ends = [stage.seq for stage in run.stages[1:]] + [1 << 62]
    for number, (stage, end) in enumerate(zip(run.stages, ends, strict=True)):
        db.execute(stage.migration)
        ids = _begin(db, stage.members, first=number == 0)
        for event in run.events:
            if not stage.seq <= event.order[0] < end:
                continue
            ids[event.server].install(db)
            db.execute(f"BEGIN; SAVEPOINT {SAVEPOINT}")
            connection = SqliteConnection(db, ids[event.server])
            with inside(connection):
                replies.append(framework.respond(event.request))
            connection.rollback()
            db.execute("COMMIT")
    sys.stdout.buffer.write(msgspec.json.encode(replies))


def _begin(db: apsw.Connection, members: list[int], *, first: bool) -> dict[int, Ids]:
    """Ids of a configuration go on above all ids, with the remainders of its members."""
    keys: dict[str, tuple[str, tuple[str, ...]]] = {}
    for (table,) in list(
        db.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name NOT LIKE 'gyro%'"
        )
    ):
        columns: list[Any] = list(db.execute(f'PRAGMA table_info("{table}")'))
        key = [c for c in columns if c[5]]
        if len(key) == 1 and str(key[0][2]).upper() == "INTEGER":
            keys[str(table)] = (str(key[0][1]), tuple(str(c[1]) for c in columns))
    count = len(members)
    for table, (name, _) in {} if first else keys.items():
        ((used,),) = db.execute(f"SELECT coalesce(max(last), 0) FROM gyro_ids WHERE name = '{table}'")
        ((greatest,),) = db.execute(f'SELECT coalesce(max("{name}"), 0) FROM "{table}"')
        base = max(used, greatest) // count * count
        db.execute(f"DELETE FROM gyro_ids WHERE name = '{table}'")
        for rank in range(count):
            db.execute(f"INSERT INTO gyro_ids VALUES ('{table}', {rank}, {base + rank})")
    return {server: Ids(keys, rank, count) for rank, server in enumerate(members)}


if __name__ == "__main__":
    main(*sys.argv[1:])
