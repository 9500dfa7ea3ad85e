"""Rebuilds the database of a server whose disk was lost: from the schema, the global updates, and its own local updates.

The state of a server is the result of its own history: the rows of the schema, and then the global updates and its own
local updates in the order in which it applied and executed them. Both are row images in the log. A local update
carries the seq of the last global update before it. So the same images can be applied again in the same order. The
local updates of other servers are not needed: this server never had them. If the configuration has changed, the rows
at its beginning are those of all servers (`configuration/follower.py`).
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import uuid
import zlib

import msgspec

from plait.gyro.belt.databases.changeable import Changeable
from plait.gyro.belt.databases.database import Database
from plait.gyro.belt.databases.outbox import Outbox
from plait.gyro.belt.identity import Identity, key
from plait.gyro.belt.logs.log import Log, LogGoneError
from plait.kernel.errors import Argument, UsageError

GAP = 1 << 20
"""So many generated ids are left out after a rebuild. Local operations that were lost may have used some of them."""
_PIECE = 1 << 19
"""The maximal length of a value in the log."""
_PAGE = 500
_REPLICATION, _INITIAL = "replication", "initial state"


def check_replication(number: int, replicate: bool, schema: str, database: Database, log: Log) -> None:
    """Check that local updates are shipped since the first start, or never were; store the initial state in the log."""
    if replicate and not isinstance(database, Outbox):
        raise UsageError(
            "local updates cannot be replicated with this DBMS", hint=("use ", Argument("replicate", "none"))
        )
    whole = isinstance(database, Outbox) and database.whole()
    if replicate and not whole:
        raise UsageError(
            f"server {number}: its database has rows that are not in the log, so they cannot be replicated",
            hint=("begin with an empty database and a new folder, or use ", Argument("replicate", "none")),
        )
    if whole and not replicate:
        raise UsageError(
            f"server {number}: its local updates are replicated since its first start, and this cannot be switched off",
            hint=("use ", Argument("replicate", "background"), " or ", Argument("replicate", "acknowledged")),
        )
    mine = "on" if replicate else "off"
    if log.agree(_REPLICATION, mine) != mine:
        raise UsageError(
            f"server {number}: replication is {mine} here, but not at the other servers",
            hint=("give all servers the same ", Argument("replicate")),
        )
    if replicate and database.identity() is None and store_initial(log, schema) != schema:
        raise UsageError(
            f"server {number}: its schema or its data differ from those of the cluster",
            hint="start all servers with the same schema and data",
        )


def store_initial(log: Log, schema: str) -> str:
    """Store the schema and the rows of every server in the log, once; return what is stored."""
    packed = base64.b64encode(zlib.compress(schema.encode())).decode()
    digest = hashlib.blake2b(schema.encode(), digest_size=16).hexdigest()
    if log.agreed(_INITIAL) is None:
        pieces = [packed[i : i + _PIECE] for i in range(0, len(packed), _PIECE)]
        for count, piece in enumerate(pieces):
            log.agree(f"{_INITIAL} {digest} {count}", piece)
        log.agree(_INITIAL, f"{digest} {len(pieces)}")
    return initial(log)


def initial(log: Log) -> str:
    """The schema and the initial rows of every server."""
    found = log.agreed(_INITIAL)
    if found is None:
        raise UsageError(
            "the log does not have the initial state of the servers: their local updates are not replicated",
            hint=("replication must be on since the first start: ", Argument("replicate", "background")),
        )
    digest, count = found.split()
    packed = "".join(log.agreed(f"{_INITIAL} {digest} {n}") or "" for n in range(int(count)))
    return zlib.decompress(base64.b64decode(packed)).decode()


def replicated(log: Log) -> bool:
    """Whether the log has all local updates of the cluster."""
    return log.agreed(_REPLICATION) == "on"


def check_rebuild(number: int, log: Log) -> None:
    """Refuse to rebuild a server whose local updates are not in the log."""
    if not replicated(log):
        raise UsageError(
            f"server {number} cannot be rebuilt: the rows that its local operations wrote are only in its own database, "
            "because local updates are not replicated; all of them would be lost",
            hint=("restore the database from its backup; for a new cluster, see ", Argument("replicate")),
        )


def rebuild(number: int, database: Outbox, log: Log) -> tuple[int, int]:
    """Rebuild the state of a server in a new database; return the numbers of its global and local updates.

    First, a new incarnation begins: from now on, the log refuses everything that the old server sends. So its stream does
    not grow any more.
    """
    check_rebuild(number, log)
    if database.identity() is not None or database.applied() or database.shipped()[0]:
        raise UsageError(
            f"the database of server {number} is not empty, so it cannot be rebuilt",
            hint="a server is only rebuilt if its database is lost: move the old one away, or drop it",
        )
    known = log.fence().incarnations.get(number, 0)
    incarnation = log.replace(number, known)
    if incarnation is None:
        raise UsageError(
            f"server {number} is being rebuilt by another process", hint="wait until that process has finished"
        )
    build(number, database, log)
    return database.applied(), database.shipped()[0]


def build(number: int, database: Outbox, log: Log) -> None:
    """Apply the history of a server to a new database, and give it the identity of the present incarnation."""
    from plait.gyro.belt.configuration.follower import follow_to_barrier  # it imports this module

    if isinstance(database, Changeable):
        follow_to_barrier(number, database, log)
    last, end = log.fence().last, log.stream(number).last
    while database.shipped()[0] < end:
        page = log.shipped(number, database.shipped()[0], _PAGE)
        if not page:
            raise LogGoneError(f"the log lacks local updates of server {number}; expected updates up to {end}")
        for seq, updates in itertools.groupby(page, lambda u: u.seq):
            _catch_up(number, database, log, seq)
            database.replay(list(updates))
    _catch_up(number, database, log, last)
    database.renew(GAP)
    incarnation = log.fence().incarnations.get(number, 0)
    cluster = log.agree("identity", uuid.uuid4().hex)
    mine = msgspec.json.encode(Identity(cluster, number, uuid.uuid4().hex, incarnation)).decode()
    if log.agree(key(number, incarnation), mine) != mine:
        raise UsageError(f"server {number} was rebuilt at the same time by another process", hint="use that database")
    database.identify(mine)


def _catch_up(number: int, database: Outbox, log: Log, last: int) -> None:
    """Apply global updates up to a seq. In PostgreSQL, a later local update may have a smaller seq: it did not wait."""
    from plait.gyro.belt.configuration.follower import deliver

    while (applied := database.applied()) < last:
        found = log.read(applied, min(_PAGE, last - applied))
        if not found:
            raise LogGoneError(f"the log has no update after {applied}; expected updates up to {last}")
        deliver(found, number, database, log)
