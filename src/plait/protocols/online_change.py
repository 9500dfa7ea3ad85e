"""Online change: the Conveyor Belt gets other members while it works (an extension of Saissi 2019, section 2.4).

Keys are mapped to servers by their remainder modulo the number of members. If a server is added or removed, nearly
all keys get another server, which does not have the rows that local operations have written. So the members change in
phases. Each phase is an entry of the log, which also has the updates of global operations. The log accepts an entry
only from a server that has applied all entries before it. Local updates are shipped to a stream per server, as in
`shipped_updates`.

- *Prepare.* The entry announces the new members.
- *Ready.* A server that has applied it stops its local operations, ships all local updates, and appends that it is
  ready, with the position in its stream. Its local operations wait from then on, also after a crash. Global
  operations go on.
- *Activate.* A server that has applied the readiness of all members appends this entry. A server that applies it
  *merges*: the updates of the log and of all streams up to the positions, each after the updates that it depends on.
  Then all servers have the same rows. Operations go on with the new members. A new server has the same rows by the
  same rule.
- *Abort.* The entry ends a change that is not activated. The log decides which of the two comes first.

A server generates ids that have its own remainder. After a change, it begins above all ids of the merged rows.

Properties: *one_history* (every operation on a key has seen all operations on it before), *one_state* (all servers
have the same rows after the merge), *unique_ids*.

Faulty twins:

- `"eager"`: local operations go on while a server is ready.
- `"unshipped"`: a server is ready before its stream has all local updates.
- `"hasty"`: a server activates when it is ready itself.
- `"alone"`: a server goes on with its own rows, without a merge.
- `"order"`: the merge applies the local updates after all global ones.
- `"amnesia"`: a server that has crashed does not know that it was ready.
- `"wilful"`: a server that waits too long aborts by itself, without an entry of the log.
- `"ids"`: a server begins with its own remainder after a change.

Simplified: a global operation is appended when the log has all local updates before it. An append survives a crash of
its server, as a prepared transaction does. Replies do not wait for the log.
"""

from __future__ import annotations

import itertools
from typing import Literal, get_args

from plait import (
    Message,
    Monitor,
    Pid,
    Process,
    System,
    action,
    always,
    crash_recovery,
    durable,
    field,
    on,
    reachable,
    recovery,
)
from plait.kernel.errors import Argument, UsageError
from plait.model.view import View
from plait.protocols._parameters import at_least, one_of

Fault = Literal["none", "eager", "unshipped", "hasty", "alone", "order", "amnesia", "wilful", "ids"]
Row = tuple[str, ...]
"""The operations that have changed a row. The name of a local operation is the id that its server has generated."""
Local = tuple[int, Row]
"""A key, and its row after a local operation."""
Entry = tuple[str, int, int, Row, int]
"""What it is, its server, a key, the row after it, and the length of the stream of the server before it."""


class Append(Message):
    """An entry for the log, from a server that has applied a number of entries."""

    applied: int
    entry: Entry


class Ship(Message):
    """A local update, at the next position of the stream of its server."""

    position: int
    update: Local


class Read(Message):
    """A server asks for the log."""


class Contents(Message):
    """The log and the streams."""

    entries: tuple[Entry, ...]
    streams: tuple[tuple[Local, ...], ...]


class Log(Process):
    """Has entries in one order, and a stream per server. It survives all faults."""

    entries: tuple[Entry, ...] = ()
    streams: tuple[tuple[Local, ...], ...] = ()

    @on(Append)
    def append(self, m: Append) -> None:
        if m.applied == len(self.entries):
            self.entries += (m.entry,)
        self.send(m.sender, Contents(self.entries, self.streams))

    @on(Ship)
    def ship(self, m: Ship) -> None:
        streams = list(self.streams)
        if m.position == len(streams[m.sender.index]) + 1:
            streams[m.sender.index] += (m.update,)
        self.streams = tuple(streams)
        self.send(m.sender, Contents(self.entries, self.streams))

    @on(Read)
    def read(self, m: Read) -> None:
        self.send(m.sender, Contents(self.entries, self.streams))


class Server(Process):
    """Executes operations on the keys that are mapped to it."""

    number: int = durable()
    old: tuple[int, ...] = durable()
    """The members before the change."""
    new: tuple[int, ...] = durable()
    """The members after it."""
    keys: tuple[int, ...] = durable()
    adds: int = durable()
    """The number of local operations on each key that clients request here, before and after the change."""
    orders: int = durable()
    """The number of global operations that clients request here, before the change."""
    prepares: int = durable(default=0)
    aborts: int = durable(default=0)
    faulty: Fault = durable(default="none")
    rows: tuple[Row, ...] = durable(default=())
    applied: int = durable(default=0)
    phase: Literal["out", "old", "prepared", "ready", "new"] = durable(default="old")
    ready: tuple[tuple[int, int], ...] = durable(default=())
    """The servers that are ready, with the positions of their streams."""
    merged: tuple[Row, ...] | None = durable(default=None)
    """The rows directly after the merge."""
    outbox: tuple[Local, ...] = durable(default=())
    shipped: int = durable(default=0)
    last: int = durable(default=-1)
    """The greatest id that this server has generated with its present remainder."""
    done: tuple[int, ...] = durable(default=())
    """The keys on which it has executed local operations, before the change."""
    done_after: tuple[int, ...] = durable(default=())
    visiting: Entry | None = durable(default=None)
    """An entry whose fate the server does not know yet."""
    asking: bool = False

    def members(self) -> tuple[int, ...]:
        return self.new if self.phase == "new" else self.old

    def mine(self, key: int) -> bool:
        """Whether a key is mapped to this server."""
        members = self.members()
        return members[key % len(members)] == self.number

    def may_add(self, key: int) -> bool:
        """Whether a local operation on a key may begin."""
        if self.phase == "out" or self.visiting is not None or not self.mine(key):
            return False
        if self.phase == "ready" and self.faulty != "eager":
            return False
        return (self.done_after if self.phase == "new" else self.done).count(key) < self.adds

    def next_id(self) -> int:
        """The next id with the remainder of this server."""
        members = self.members()
        known = self.last
        if self.faulty != "ids":
            known = max([known, *(int(i) for row in self.merged or () for i in row if i.isdigit())])
        rank = members.index(self.number)
        return known + 1 + (rank - known - 1) % len(members)

    @action(when=lambda self: any(self.may_add(key) for key in self.keys))
    def add(self) -> None:
        """A local operation, on the first key that is left."""
        place = next(n for n, key in enumerate(self.keys) if self.may_add(key))
        key = self.keys[place]
        self.last = self.next_id()
        row = (*self.rows[place], str(self.last))
        self.rows = (*self.rows[:place], row, *self.rows[place + 1 :])
        self.outbox += ((key, row),)
        if self.phase == "new":
            self.done_after += (key,)
        else:
            self.done += (key,)
        self.announce((key, row, self.number))

    @action(when=lambda self: bool(self.outbox) and not self.asking)
    def ship(self) -> None:
        self.asking = True
        self.send(Log.pid(0), Ship(self.shipped + 1, self.outbox[0]))

    @action(when=lambda self: not self.asking and (self.visiting is not None or self.phase != "new"))
    def read(self) -> None:
        """Ask for the log, or send an entry again whose fate is not known."""
        self.asking = True
        if self.visiting is not None:
            self.send(Log.pid(0), Append(self.applied, self.visiting))
        else:
            self.send(Log.pid(0), Read())

    # -- entries -----------------------------------------------------------------------------------------------------

    def may_visit(self) -> bool:
        return self.visiting is None and self.phase not in ("out", "new")

    def visit(self, kind: str, key: int = 0, row: Row = ()) -> None:
        self.visiting = (kind, self.number, key, row, self.shipped)

    @action(
        when=lambda self: self.may_visit() and self.orders > 0 and not self.outbox and any(map(self.mine, self.keys))
    )
    def order(self) -> None:
        """A global operation on the first key of this server."""
        place = next(n for n, key in enumerate(self.keys) if self.mine(key))
        self.orders -= 1
        self.visit("order", self.keys[place], (*self.rows[place], f"order {self.number}.{self.orders}"))

    @action(when=lambda self: self.may_visit() and self.phase == "old" and self.prepares > 0)
    def prepare(self) -> None:
        self.prepares -= 1
        self.visit("prepare")

    @action(when=lambda self: self.may_visit() and self.phase == "prepared" and self.may_be_ready())
    def be_ready(self) -> None:
        """Local operations stop here: none begins while the entry is on its way."""
        self.visit("ready")

    def may_be_ready(self) -> bool:
        return not self.outbox or self.faulty == "unshipped"

    @action(when=lambda self: self.may_visit() and self.phase == "ready" and self.all_ready())
    def activate(self) -> None:
        self.visit("activate")

    def all_ready(self) -> bool:
        return len(self.ready) == len(self.old) or self.faulty == "hasty"

    @action(when=lambda self: self.may_visit() and self.phase in ("prepared", "ready") and self.aborts > 0)
    def abort(self) -> None:
        self.aborts -= 1
        if self.faulty == "wilful":
            self.phase = "old"
            self.ready = ()
        else:
            self.visit("abort")

    # -- the log -----------------------------------------------------------------------------------------------------

    @on(Contents)
    def learn(self, m: Contents) -> None:
        """Apply what is new; this answer may be an old one."""
        self.asking = False
        sent = len(m.streams[self.number])
        if sent > self.shipped:
            self.outbox = self.outbox[sent - self.shipped :]
            self.shipped = sent
        mine = self.visiting
        if mine is not None and len(m.entries) > self.applied:  # its place is taken, by itself or by another one
            self.visiting = None
            if m.entries[self.applied] == mine and mine[0] == "order":
                self.announce((mine[2], mine[3], self.number))
        for place in range(self.applied, len(m.entries)):
            self.apply(place, m)
            self.applied = place + 1

    def apply(self, place: int, m: Contents) -> None:
        kind, server, key, row, shipped = m.entries[place]
        if kind == "order":
            self.rows = tuple(row if k == key else r for k, r in zip(self.keys, self.rows, strict=True))
        elif kind == "prepare" and self.phase == "old":
            self.phase = "prepared"
        elif kind == "ready" and self.phase in ("prepared", "ready", "out"):
            self.ready += ((server, shipped),)
            self.phase = "ready" if server == self.number else self.phase
        elif kind == "abort" and self.phase != "new":
            self.phase = "out" if self.phase == "out" else "old"
            self.ready = ()
        elif kind == "activate" and self.phase != "new":
            if self.faulty != "alone" or self.phase == "out":
                self.merge(m.entries[:place], m.streams)
            self.merged = self.rows
            self.phase = "new"
            self.last = -1

    def merge(self, entries: tuple[Entry, ...], streams: tuple[tuple[Local, ...], ...]) -> None:
        """Apply all updates to the first state, each after the updates that it depends on."""
        rows: dict[int, Row] = dict.fromkeys(self.keys, ())
        merged = [0] * len(streams)
        late: list[Local] = []

        def local(server: int, end: int) -> None:
            found = streams[server][merged[server] : end]
            merged[server] = max(merged[server], end)
            if self.faulty == "order":
                late.extend(found)
            else:
                rows.update(found)

        for kind, server, key, row, shipped in entries:
            if kind == "order":
                local(server, shipped)
                rows[key] = row
        for server, position in self.ready:
            local(server, position)
        rows.update(late)
        self.rows = tuple(rows[key] for key in self.keys)

    @recovery
    def recover(self) -> None:
        """The phase is durable, except with the fault "amnesia"."""
        if self.faulty == "amnesia" and self.phase == "ready":
            self.phase = "old"


class History(Monitor):
    """What operations have seen: the key, the row after the operation, and its server."""

    seen: set[tuple[int, Row, int]] = field(default_factory=set)

    def observe(self, process: Pid, event: tuple[int, Row, int]) -> None:
        self.seen.add(event)


# -- properties ------------------------------------------------------------------------------------------------------


@always
def one_history(s: View) -> bool:
    """Every operation on a key has seen all operations on it before."""
    rows = sorted(s[History].seen, key=lambda each: (each[0], len(each[1])))
    return all(
        one[0] != other[0] or (len(one[1]) < len(other[1]) and other[1][: len(one[1])] == one[1])
        for one, other in itertools.pairwise(rows)
    )


@always
def one_state(s: View) -> bool:
    """All servers have the same rows after the merge."""
    return len({server.merged for server in s.get(Server) if server.merged is not None}) <= 1


@always
def unique_ids(s: View) -> bool:
    """No id is generated twice."""
    ids = [row[-1] for _, row, _ in s[History].seen if row[-1].isdigit()]
    return len(ids) == len(set(ids))


@reachable
def goes_on(s: View) -> bool:
    """After the change, an operation has seen one from before it."""
    return any(
        server.phase == "new"
        and any(len(server.rows[n]) > len((server.merged or ())[n]) > 0 for n in range(len(server.keys)))
        for server in s.get(Server)
    )


# -- the model -------------------------------------------------------------------------------------------------------


def online_change(
    before: int = 1,
    after: int = 2,
    keys: int = 1,
    adds: int = 1,
    orders: int = 1,
    changes: int = 1,
    aborts: int = 1,
    crashes: int = 1,
    faulty: Fault = "none",
) -> System:
    """Members 0 to `before` - 1 change to `after` members. If there are fewer of them, the first ones are removed."""
    at_least(1, before=before, after=after, keys=keys)
    at_least(0, adds=adds, orders=orders, changes=changes, aborts=aborts, crashes=crashes)
    one_of(get_args(Fault), faulty=faulty)
    if before == after:
        raise UsageError(
            (Argument("after", after, parameter=True), " is the number of members before the change"),
            hint="choose another number",
        )
    old = tuple(range(before))
    new = tuple(range(after)) if after > before else old[before - after :]
    used = tuple(range(before, before + keys))
    servers = [
        Server(
            number=n,
            old=old,
            new=new,
            keys=used,
            adds=adds,
            orders=orders if n in old else 0,
            prepares=changes if n == 0 else 0,
            aborts=aborts if n == 0 else 0,
            faulty=faulty,
            rows=((),) * keys,
            phase="old" if n in old else "out",
        )
        for n in range(max(before, after))
    ]
    return System(
        [*servers, Log(streams=((),) * len(servers))],
        faults=[crash_recovery(Server, budget=crashes)] if crashes else [],
        monitors=[History()],
        properties=[one_history, one_state, unique_ids, *([goes_on] if changes and adds else [])],
        name="online_change",
    )
