"""The identity of a history: which log and which states of servers belong together.

The log has an identity, and it knows the identity of each server's database since its first start. A server starts only if
its database is the one that the log knows, and if the log has all updates that the database has applied. So a log or a
database that was lost, swapped, copied or restored from an older backup is noticed before it answers a request. A server
that is rebuilt (`replication/rebuild.py`) gets a new database and a new *incarnation*. The old database is then refused.
If local updates are not replicated, an older copy of a database lacks local operations. The log knows the last start of each
server, and how many local operations it had executed at its last global one. So such a copy is noticed, too.
A process that starts says so in the log, and a process of the same server that still runs then stops. So two processes do
not act as one server for long, with copies of one database.
"""

from __future__ import annotations

import uuid

import msgspec

from plait.gyro.belt.databases.database import Database
from plait.gyro.belt.databases.outbox import Outbox, strange
from plait.gyro.belt.logs.log import Log
from plait.kernel.errors import Argument, UsageError

_STARTS = 8
"""Processes that start at the same time with one database: whichever is the last one in the log, the database knows it."""


class Identity(msgspec.Struct, frozen=True, omit_defaults=True):
    """The identity of a database: its cluster, the number of its server, and a name that no copy of it changes."""

    cluster: str
    server: int
    name: str
    incarnation: int = 0
    """How often the server was rebuilt."""
    start: int = 0
    """The number of the last start with this database, or a smaller one; 0 if local updates are replicated."""
    starts: tuple[str, ...] = ()
    """The names of the last starts, the newest first."""

    def named(self) -> str:
        """What the log knows."""
        return msgspec.json.encode(msgspec.structs.replace(self, start=0, starts=())).decode()


def confirm(number: int, database: Database, log: Log, *, older: bool = False) -> int:
    """Check that the database of a server and the log belong together, and that none of them is an older copy.

    `older` allows an older copy of a database whose local updates are not replicated. Returns the incarnation of the server.
    """
    cluster = log.agree("identity", uuid.uuid4().hex)
    incarnation = log.fence().incarnations.get(number, 0)
    known = database.identity()
    if known is None:
        _introduce(number, incarnation, cluster, database, log)
    else:
        _recognise(number, incarnation, cluster, msgspec.json.decode(known, type=Identity), log)
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
    if isinstance(database, Outbox) and database.whole():
        _compare(number, database, log)
    elif not older:
        _confirm_newest(number, database, log)
    return incarnation


def _confirm_newest(number: int, database: Database, log: Log) -> None:
    """Refuse a database that lacks local operations, as far as the log can tell."""
    after = database.applied()
    known = 0
    while found := log.read(after):
        known = max([known, *(entry.shipped for entry in found if entry.holder == number)])
        after = found[-1].seq
    mine = msgspec.json.decode(database.identity() or "", type=Identity)
    last = _last(number, log)
    restarted = bool(mine.starts) and last > mine.start and log.agreed(_start(number, last)) not in mine.starts
    if restarted or known > database.written():
        raise UsageError(
            f"the database of server {number} is an older copy: local operations that it executed since then are missing",
            hint=(
                "use its newest database, or restore all servers and the log from one backup; to go on without these "
                "operations: ",
                Argument("older_copy", number),
            ),
        )


def _compare(number: int, database: Outbox, log: Log) -> None:
    """Compare the local updates of the database with those in the log."""
    position, chain = database.shipped()
    end = log.stream(number).last
    if position > end:
        raise UsageError(
            f"the log is behind: it has {end} local updates of server {number}, which has shipped {position}",
            hint="the log is an older copy: restore a newer one, or restore all servers and the log from one backup",
        )
    if position and log.shipped(number, position - 1, 1)[0].chain != chain:
        raise UsageError(
            f"the log and server {number} have different histories: local update {position} is another one in the log",
            hint="the log or the database was restored, and went on from there: restore all of them from one backup",
        )
    while found := log.shipped(number, position):
        if strange(found, database):
            raise UsageError(
                f"the database of server {number} is an older copy: the log has local updates that it does not have",
                hint=("move it away, and rebuild the server from the log: ", Argument("rebuild", number)),
            )
        position = found[-1].position


def _introduce(number: int, incarnation: int, cluster: str, database: Database, log: Log) -> None:
    """Give a new database its identity. It is stored before the log knows it: a crash in between is harmless."""
    if incarnation:
        raise UsageError(
            f"server {number} was rebuilt, and this database is another one, or the rebuild did not finish",
            hint=("use the rebuilt database, or remove this one and rebuild again: ", Argument("rebuild", number)),
        )
    mine = Identity(cluster, number, uuid.uuid4().hex).named()
    database.identify(mine)
    if log.agree(key(number), mine) != mine:
        database.identify(None)
        raise UsageError(
            f"the database of server {number} is empty, but the log knows another one: its rows are missing",
            hint=(
                "rebuild it from the log with ",
                Argument("rebuild", number),
                " if local updates are replicated, or restore it from its backup; "
                "to begin anew, use a new folder and a new log",
            ),
        )


def _recognise(number: int, incarnation: int, cluster: str, found: Identity, log: Log) -> None:
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
    if found.incarnation != incarnation:
        raise UsageError(
            f"server {number} was rebuilt since this database was used: it has incarnation {found.incarnation}, "
            f"and the log knows incarnation {incarnation}",
            hint="remove this database: the rebuilt one has everything that the log has",
        )
    mine = found.named()
    if log.agree(key(number, incarnation), mine) != mine:
        raise UsageError(
            f"the log knows another database of server {number} than this one",
            hint="use the database with which the server was started before, or its backup",
        )


def announce(number: int, database: Database, log: Log) -> int:
    """Record a start of a server in the log; its number. All earlier processes of this server then stop (`overtaken`).

    The database stores the name of the start before the log does, so a crash in between is harmless.
    """
    mine = uuid.uuid4().hex
    last = _last(number, log)
    if not (isinstance(database, Outbox) and database.whole()):
        known = msgspec.json.decode(database.identity() or "", type=Identity)
        noted = msgspec.structs.replace(known, start=last + 1, starts=(mine, *known.starts)[:_STARTS])
        database.identify(msgspec.json.encode(noted).decode())
    while log.agree(_start(number, last + 1), mine) != mine:
        last += 1
    return last + 1


def _last(number: int, log: Log) -> int:
    """The number of the last start of a server; 0 if there was none."""
    last = 0
    step = 1
    while log.agreed(_start(number, last + step)) is not None:  # numbers have no holes
        last, step = last + step, 2 * step
    while step := step // 2:
        last += step if log.agreed(_start(number, last + step)) is not None else 0
    return last


def overtaken(number: int, start: int, log: Log) -> bool:
    """Whether another process has started as this server since: with the same database, or with a copy of it."""
    return log.agreed(_start(number, start + 1)) is not None


def _start(number: int, start: int) -> str:
    return f"start {start} of server {number}"


def key(number: int, incarnation: int = 0) -> str:
    """Where the log stores the identity of the database of a server."""
    return f"database of server {number}" + (f", incarnation {incarnation}" if incarnation else "")
