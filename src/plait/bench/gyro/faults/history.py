"""Two judges of a run: the replay of its order on one database, and cycles among who saw whose appends."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

import msgspec

from plait.gyro.belt.databases.dbapi import SAVEPOINT
from plait.gyro.belt.databases.sqlite.connection import SqliteConnection
from plait.gyro.belt.ids import COUNTERS, Ids
from plait.gyro.belt.routing import Kind
from plait.kernel.extras import needs

with needs("serve"):
    import apsw


class Event(msgspec.Struct):
    """An operation that was answered."""

    operation: str
    arguments: dict[str, Any]
    kind: Kind
    server: int
    reply: Any
    seq: int
    position: int
    wrote: bool

    @property
    def order(self) -> tuple[int, int, int, int, int]:
        """The order of the proof: an update at its seq, a local operation after what its server had applied."""
        if self.kind == "global" and self.wrote:
            return self.seq, 0, 0, 0, 0
        return self.seq, 1, self.server, self.position, 0 if self.wrote else 1


class Replay:
    """One database that executes all operations one after the other, with the ids of the servers that executed them."""

    def __init__(self, module: ModuleType, servers: int) -> None:
        self._module = module
        self.db = apsw.Connection(":memory:")
        self.db.pragma("foreign_keys", 1)
        self.db.execute(module.SCHEMA + COUNTERS)
        keys = {}
        for (table,) in list(
            self.db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'gyro%'")
        ):
            columns = [(r[1], r[2], r[5]) for r in self.db.execute(f"PRAGMA table_info({table})")]
            first = [c for c in columns if c[2]]
            if len(first) == 1 and first[0][1] == "INTEGER":
                keys[table] = (first[0][0], tuple(c[0] for c in columns))
        self._ids = [Ids(keys, n, servers) for n in range(servers)]

    def run(self, events: Iterable[Event]) -> list[tuple[Event, Any]]:
        """The events whose reply differs, with the reply that one database gives."""
        wrong = []
        for event in sorted(events, key=lambda e: e.order):
            ids = self._ids[event.server]
            ids.install(self.db)
            self.db.execute(f"BEGIN; SAVEPOINT {SAVEPOINT}")
            try:
                reply = getattr(self._module, event.operation)(SqliteConnection(self.db, ids), **event.arguments)
            except Exception as error:
                self.db.execute("ROLLBACK")
                wrong.append((event, error))
                continue
            self.db.execute("COMMIT")
            reply = msgspec.json.decode(msgspec.json.encode(reply))
            if reply != event.reply:
                wrong.append((event, reply))
        return wrong

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The result of a query."""
        return list(self.db.execute(query))


class Observation(msgspec.Struct):
    """What a transaction of a list-append history did, as its client saw it: appends, and whole lists that it read."""

    appends: list[tuple[str, str]] = []
    reads: list[tuple[str, list[str]]] = []


def find_cycle(history: Sequence[Observation]) -> list[int] | str | None:
    """A cycle of dependencies (wr, ww, rw), a broken list, or None. It looks at nothing but replies.

    The elements of a list are unique, so a read shows the order of the appends before it. All reads of a list must be
    prefixes of the longest.
    """
    longest: dict[str, list[str]] = {}
    writer: dict[tuple[str, str], int] = {}
    for number, each in enumerate(history):
        for append in each.appends:
            if append in writer:
                return f"{append} was appended twice"
            writer[append] = number
        for key, found in each.reads:
            if len(found) > len(longest.get(key, [])):
                longest[key] = found
    edges: dict[int, set[int]] = {n: set() for n in range(len(history))}
    for key, found in longest.items():
        if len(set(found)) != len(found):
            return f"{key} has an element twice: {found}"
        for one, other in itertools.pairwise(found):
            if (key, one) in writer and (key, other) in writer:
                edges[writer[key, one]].add(writer[key, other])
    for number, each in enumerate(history):
        for key, found in each.reads:
            whole = longest.get(key, [])
            if whole[: len(found)] != found:
                return f"{key}: {found} is no prefix of {whole}"
            if found and (key, found[-1]) in writer:
                edges[writer[key, found[-1]]].add(number)
            following = whole[len(found) :]
            if following and (key, following[0]) in writer:
                edges[number].add(writer[key, following[0]])
    return _cycle({n: {m for m in targets if m != n} for n, targets in edges.items()})


def _cycle(edges: dict[int, set[int]]) -> list[int] | None:
    state: dict[int, int] = {}
    for root in edges:
        if root in state:
            continue
        path = [root]
        stack = [iter(sorted(edges[root]))]
        state[root] = 1
        while stack:
            following = next(stack[-1], None)
            if following is None:
                state[path.pop()] = 2
                stack.pop()
            elif state.get(following) == 1:
                return path[path.index(following) :]
            elif following not in state:
                state[following] = 1
                path.append(following)
                stack.append(iter(sorted(edges[following])))
    return None
