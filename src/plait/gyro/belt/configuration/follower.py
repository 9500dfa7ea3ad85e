"""A database that follows the log from outside: the rows of all servers, for a server that joins or is rebuilt.

It applies every update after the updates that it depends on. So its rows are those of one database that has executed these
operations. A server that joins follows until a configuration begins that has it as a member.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Sequence

import msgspec

from plait.gyro.belt.configuration.changes import encoded, switch_of
from plait.gyro.belt.configuration.configuration import ZERO, Configuration, State, follow, kind_of
from plait.gyro.belt.configuration.merge import Fold
from plait.gyro.belt.databases.changeable import Changeable
from plait.gyro.belt.databases.database import Database
from plait.gyro.belt.identity import Identity, key
from plait.gyro.belt.logs.log import Log
from plait.gyro.belt.records import Entry, LocalUpdate
from plait.kernel.errors import UsageError

_PAGE = 200


class Follower:
    """A database, and how far it has followed."""

    def __init__(self, number: int, database: Changeable, log: Log, first: Configuration) -> None:
        stored = database.configuration()
        self.state = State(first) if stored is None else msgspec.json.decode(stored, type=State)
        self.number = number
        self._database, self._log = database, log
        self._positions = database.absorbed()
        self.applied = self.end = database.applied()
        """The last entry that the database has, and the last one in the log."""

    def step(self, until: int) -> bool:
        """Apply a page of entries, up to a seq. False: there is none."""
        entries = self._log.read(self.applied, min(_PAGE, max(until - self.applied, 1))) if self.applied < until else []
        batch: list[Entry | LocalUpdate] = []
        for entry in entries:
            batch += self._stream(entry.holder, entry.shipped)
            if kind_of(entry):
                self._control(entry, batch)
                batch = []
            else:
                batch.append(entry)
            self.applied = entry.seq
        if batch:
            self._database.absorb(batch)
        return bool(entries)

    def _stream(self, server: int, end: int) -> list[LocalUpdate]:
        """The next local updates of a server, up to a position."""
        found: list[LocalUpdate] = []
        while (position := self._positions.get(server, 0)) < end:
            found += self._log.shipped(server, position, end - position)
            self._positions[server] = found[-1].position
        return found

    def _control(self, entry: Entry, batch: list[Entry | LocalUpdate]) -> None:
        before, after = self.state, follow(self.state, entry)
        change = before.change
        activated = after.configuration is not before.configuration and change is not None
        if activated and change is not None:
            for server, position in change.positions.items():
                batch += self._stream(server, position)
        if batch:
            self._database.absorb(batch)
        if activated and change is not None:
            self._database.switch(switch_of(entry, after, change, self.number, Fold(), []))
        else:
            self._database.advance(entry, encoded(after))
        self.state = after

    def identify(self) -> None:
        """Give the database the identity of this server."""
        incarnation = self._log.fence().incarnations.get(self.number, 0)
        cluster = self._log.agree("identity", uuid.uuid4().hex)
        mine = msgspec.json.encode(Identity(cluster, self.number, uuid.uuid4().hex, incarnation)).decode()
        self._database.identify(mine)
        self._log.agree(key(self.number, incarnation), mine)


def newest(log: Log) -> Configuration | None:
    """The configuration at the end of the log; None if the cluster has not changed since its first start."""
    if (known := log.agreed(ZERO)) is None:
        return None
    state, seq = State(msgspec.json.decode(known, type=Configuration)), 0
    while page := log.read(seq, _PAGE):
        for entry in page:
            state = follow(state, entry)
        seq = page[-1].seq
    return state.configuration if state.configuration.number else None


def follow_to_barrier(number: int, database: Changeable, log: Log) -> None:
    """Give an empty database the rows that all servers had when the present configuration began."""
    now, known = newest(log), log.agreed(ZERO)
    if now is None or known is None:
        return
    if number not in now.numbers:
        raise UsageError(
            f"server {number} is not a member of configuration {now.number}",
            hint=f"members: {', '.join(map(str, now.numbers))}",
        )
    follower = Follower(number, database, log, msgspec.json.decode(known, type=Configuration))
    while follower.applied < now.barrier.seq:
        follower.step(now.barrier.seq)


def deliver(entries: Sequence[Entry], number: int, database: Database, log: Log) -> None:
    """Apply entries to the database of a server: updates of operations, and entries of a change."""
    for kind, found in itertools.groupby(entries, kind_of):
        if not kind:
            database.apply(list(found), number)
            continue
        for entry in found:
            assert isinstance(database, Changeable)  # otherwise there are no changes
            stored = database.configuration()
            state = (
                State(msgspec.json.decode(log.agreed(ZERO) or "", type=Configuration))
                if stored is None
                else msgspec.json.decode(stored, type=State)
            )
            database.advance(entry, encoded(follow(state, entry)))


def reserve(log: Log, used: int, url: str) -> int:
    """The number of a new server: the first one that no other URL has."""
    number = used + 1
    while log.agree(f"server {number}", url) != url:
        number += 1
    return number
