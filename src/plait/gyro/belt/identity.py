"""The identity of a history: which log and which states of servers belong together.

The log has an identity, and it knows the identity of each server's database since its first start. A server starts only if
its database is the one that the log knows, and if the log has all updates that the database has applied. So a log or a
database that was lost, swapped, copied or restored from an older backup is noticed before it answers a request.
"""

from __future__ import annotations

import uuid

import msgspec

from plait.gyro.belt.databases.database import Database
from plait.gyro.belt.logs.log import Log
from plait.kernel.errors import UsageError


class Identity(msgspec.Struct, frozen=True):
    """The identity of a database: its cluster, the number of its server, and a name that no copy of it changes."""

    cluster: str
    server: int
    name: str


def confirm(number: int, database: Database, log: Log) -> None:
    """Check that the database of a server and the log belong together, and that the log is not behind."""
    cluster = log.agree("identity", uuid.uuid4().hex)
    known = database.identity()
    if known is None:
        _introduce(number, cluster, database, log)
    else:
        _recognise(number, cluster, msgspec.json.decode(known, type=Identity), log)
    applied, last = database.applied(), log.fence().last
    if applied > last:
        raise UsageError(
            f"the log is behind: its last update is {last}, but server {number} has applied update {applied}",
            hint="the log is an older copy: restore a newer one, or restore all servers and the log from one backup",
        )
    if applied and log.read(applied - 1, 1)[0].chain != database.chain():
        raise UsageError(
            f"the log and server {number} have different histories: update {applied} is another one in the log",
            hint="the log or the database was restored, and went on from there: restore all of them from one backup",
        )


def _introduce(number: int, cluster: str, database: Database, log: Log) -> None:
    """Give a new database its identity. It is stored before the log knows it: a crash in between is harmless."""
    mine = msgspec.json.encode(Identity(cluster, number, uuid.uuid4().hex)).decode()
    database.identify(mine)
    if log.agree(_key(number), mine) != mine:
        database.identify(None)
        raise UsageError(
            f"the database of server {number} is empty, but the log knows another one: its rows are missing",
            hint="restore the database of this server from its backup; to begin anew, use a new folder and a new log",
        )


def _recognise(number: int, cluster: str, found: Identity, log: Log) -> None:
    if found.server != number:
        raise UsageError(
            f"the database of server {number} is that of server {found.server}",
            hint="databases were swapped or copied: give each server its own",
        )
    if found.cluster != cluster:
        raise UsageError(
            f"the log belongs to another cluster than the database of server {number}",
            hint="the log is new or was exchanged: use the log of this cluster, or restore it from its backup",
        )
    mine = msgspec.json.encode(found).decode()
    if log.agree(_key(number), mine) != mine:
        raise UsageError(
            f"the log knows another database of server {number} than this one",
            hint="use the database with which the server was started before, or its backup",
        )


def _key(number: int) -> str:
    return f"database of server {number}"
