"""Shipped updates: a server of the Conveyor Belt whose disk may be lost (an extension of Saissi 2019, section 2.4).

In `conveyor_belt`, the rows that local operations write are only at their server. Here, the server also *ships* them to a
stream of its own in the log, besides the order of global updates. If its disk is lost, another process is rebuilt from the
log and takes its place. The old process may still run: nobody can tell a lost server from a slow one. A backup reads the
log while the servers work.

- A local operation commits its effect and an entry of the *outbox* in one transaction. The outbox is shipped one by one. The
  log accepts only the next position, and answers with the last position that it has. So a server that has crashed ships its
  outbox again without harm.
- A reply, also that of a query, waits until the log has everything that the operation has seen.
- A global operation is appended to the log only when the outbox is empty. It carries what it has read.
- To rebuild a server, the log first begins a new *incarnation*. From then on it refuses the old one. Then its contents are
  read.
- A backup reads the global updates first, and the stream after them. It leaves out local updates that depend on global
  updates that it does not have.

Properties: *nothing_lost* (what a reply has shown is in the rebuilt server), *grounded* (the log has all local updates that
its global updates depend on), *closed* (a backup has, with each update, the updates that it depends on).

Faulty twins:

- `"outbox"`: the entry of the outbox is written after the transaction.
- `"hasty"`: a local operation is acknowledged before the log has its update.
- `"dirty"`: a query is answered at once, although it has seen an update that the log may not have.
- `"late"`: a global operation is appended while the outbox is not empty.
- `"fence"`: the log accepts updates of any incarnation.
- `"peek"`: the new server reads the log before the new incarnation begins.
- `"stream first"`: a backup reads the stream before the global updates.
- `"whole stream"`: a backup contains all of the stream that it has read.

Simplified: there is one server besides its replacement, so there is no token, and global updates of others are left out.
An append survives a crash of its server, as a prepared transaction does.
"""

from __future__ import annotations

from typing import Literal, get_args

from plait import Message, Monitor, Pid, Process, System, action, always, crash_recovery, durable, field, on, reachable
from plait.model.view import View
from plait.protocols._parameters import at_least, one_of

Fault = Literal["none", "outbox", "hasty", "dirty", "late", "fence", "peek", "stream first", "whole stream"]

Local = tuple[str, int]
"""A local operation, and the number of global operations before it."""
Order = tuple[str, tuple[str, ...]]
"""A global operation, and the local operations that it has seen."""


class Ship(Message):
    """A local update, at the next position of the stream."""

    incarnation: int
    position: int
    update: Local


class Shipped(Message):
    """The number of local updates that the log has."""

    last: int


class Append(Message):
    """A global update."""

    incarnation: int
    update: Order


class Appended(Message):
    """The global update is in the log."""


class Refused(Message):
    """The server was replaced."""


class Replace(Message):
    """A new incarnation shall begin."""


class Contents(Message):
    """The log, for a server that is rebuilt."""

    orders: tuple[Order, ...]
    stream: tuple[Local, ...]


class Read(Message):
    """A question for one part of the log."""

    part: str


class Part(Message):
    """The answer."""

    orders: tuple[Order, ...]
    stream: tuple[Local, ...]


class Server(Process):
    """Executes operations. The second server replaces the first one, when it is rebuilt."""

    incarnation: int = durable()
    adds: int = durable()
    """The number of local operations that clients will still request."""
    looks: int = durable()
    """The number of queries that clients will still request."""
    orders: int = durable()
    """The number of global operations that clients will still request."""
    faulty: Fault = durable(default="none")
    up: bool = durable(default=True)
    asked: bool = durable(default=False)
    cart: tuple[str, ...] = durable(default=())
    stock: tuple[str, ...] = durable(default=())
    outbox: tuple[Local, ...] = durable(default=())
    last: int = durable(default=0)
    """The number of local updates that the log has, as far as this server knows."""
    visiting: Order | None = durable(default=None)
    """A global operation whose answer from the log is awaited."""
    unposted: tuple[Local, ...] = ()
    """Only with the fault "outbox": updates that are not in the outbox yet."""
    waiting: tuple[tuple[int, tuple[str, ...]], ...] = ()
    """Replies: the position that the log must have, and what the reply shows."""
    sending: bool = False

    @action(when=lambda self: self.up and self.adds > 0 and self.visiting is None)
    def add(self) -> None:
        """A local operation: one transaction for its effect and the outbox."""
        name = f"add {self.incarnation}.{self.adds}"
        self.adds -= 1
        self.cart += (name,)
        if self.faulty == "outbox":
            self.unposted += ((name, len(self.stock)),)
        else:
            self.outbox += ((name, len(self.stock)),)
        self.reply(self.faulty == "hasty")

    @action(when=lambda self: self.up and self.looks > 0 and self.visiting is None)
    def look(self) -> None:
        """A query."""
        self.looks -= 1
        self.reply(self.faulty == "dirty")

    def reply(self, at_once: bool) -> None:
        """Reply with the cart, when the log has all of it."""
        needed = self.last + len(self.outbox) + len(self.unposted)
        if at_once or needed == self.last:
            self.announce(self.cart)
        else:
            self.waiting += ((needed, self.cart),)

    @action(when=lambda self: self.up and bool(self.outbox or self.unposted) and not self.sending)
    def ship(self) -> None:
        self.outbox += self.unposted
        self.unposted = ()
        self.sending = True
        self.send(Log.pid(0), Ship(self.incarnation, self.last + 1, self.outbox[0]))

    @on(Shipped)
    def shipped(self, m: Shipped) -> None:
        """The log has updates up to a position; this answer may be an old one."""
        self.sending = False
        if m.last > self.last:
            self.outbox = self.outbox[m.last - self.last :]
            self.last = m.last
        for needed, seen in self.waiting:
            if needed <= self.last:
                self.announce(seen)
        self.waiting = tuple(each for each in self.waiting if each[0] > self.last)

    @action(
        when=lambda self: (
            self.up
            and self.orders > 0
            and self.visiting is None
            and (not (self.outbox or self.unposted) or self.faulty == "late")
        )
    )
    def order(self) -> None:
        """A global operation, when the log has all local updates before it."""
        self.visiting = (f"order {self.incarnation}.{self.orders}", self.cart)
        self.orders -= 1
        self.send(Log.pid(0), Append(self.incarnation, self.visiting))

    @on(Appended)
    def appended(self, m: Appended) -> None:
        if self.visiting is None:
            return  # the server was replaced meanwhile
        self.stock += (self.visiting[0],)
        self.announce((self.visiting[0], *self.visiting[1]))
        self.visiting = None

    @on(Refused)
    def refused(self, m: Refused) -> None:
        """Another incarnation exists: stop."""
        self.up = False
        self.visiting = None
        self.waiting = ()

    @action(when=lambda self: not self.up and not self.asked and self.incarnation > 0)
    def rebuild(self) -> None:
        self.asked = True
        self.send(Log.pid(0), Replace())

    @on(Contents)
    def rebuilt(self, m: Contents) -> None:
        self.cart = tuple(name for name, _ in m.stream)
        self.stock = tuple(name for name, _ in m.orders)
        self.last = len(m.stream)
        self.up = True
        if self.faulty == "peek":
            self.send(Log.pid(0), Replace())


class Log(Process):
    """Keeps updates, survives all faults, and knows the present incarnation."""

    faulty: Fault
    orders: tuple[Order, ...] = ()
    stream: tuple[Local, ...] = ()
    incarnation: int = 0
    peeked: bool = False

    @on(Ship)
    def ship(self, m: Ship) -> None:
        if m.incarnation < self.incarnation and self.faulty != "fence":
            self.send(m.sender, Refused())
        else:
            if m.position == len(self.stream) + 1:
                self.stream += (m.update,)
            self.send(m.sender, Shipped(len(self.stream)))

    @on(Append)
    def append(self, m: Append) -> None:
        if m.incarnation < self.incarnation and self.faulty != "fence":
            self.send(m.sender, Refused())
        else:
            self.orders += (m.update,)
            self.send(m.sender, Appended())

    @on(Replace)
    def replace(self, m: Replace) -> None:
        """Begin a new incarnation, then send the contents."""
        if self.faulty != "peek" or self.peeked:
            self.incarnation = 1
        if not self.peeked:
            self.send(m.sender, Contents(self.orders, self.stream))
        self.peeked = True

    @on(Read)
    def read(self, m: Read) -> None:
        if m.part == "orders":
            self.send(m.sender, Part(self.orders, ()))
        else:
            self.send(m.sender, Part((), self.stream))


class Backup(Process):
    """Reads the log in two steps, while servers work."""

    faulty: Fault
    step: int = 0
    orders: tuple[Order, ...] = ()
    stream: tuple[Local, ...] = ()
    done: bool = False

    @action(when=lambda self: self.step == 0)
    def begin(self) -> None:
        self.step = 1
        self.send(Log.pid(0), Read("stream" if self.faulty == "stream first" else "orders"))

    @on(Part)
    def receive(self, m: Part) -> None:
        if self.step == 1:
            self.orders, self.stream = m.orders, m.stream
            self.step = 2
            self.send(Log.pid(0), Read("orders" if self.faulty == "stream first" else "stream"))
            return
        if self.faulty == "stream first":
            self.orders = m.orders
        else:
            self.stream = m.stream
        if self.faulty != "whole stream":
            later = [n for n, (_, before) in enumerate(self.stream) if before > len(self.orders)]
            self.stream = self.stream[: later[0]] if later else self.stream
        self.done = True


class History(Monitor):
    """Everything that replies have shown."""

    seen: set[str] = field(default_factory=set)

    def observe(self, process: Pid, event: tuple[str, ...]) -> None:
        for name in event:
            self.seen.add(name)


# -- properties ------------------------------------------------------------------------------------------------------


@always
def nothing_lost(s: View) -> bool:
    """The rebuilt server has everything that a reply has shown."""
    new = s[Server.pid(1)]
    return not new.up or all(name in new.cart or name in new.stock for name in s[History].seen)


@always
def grounded(s: View) -> bool:
    """The log has all local updates that its global updates depend on."""
    shipped = {name for name, _ in s[Log.pid(0)].stream}
    return all(name in shipped for _, read in s[Log.pid(0)].orders for name in read)


@always
def closed(s: View) -> bool:
    """A backup has, with each update, the updates that it depends on."""
    for backup in s.get(Backup):
        if backup.done:
            kept = {name for name, _ in backup.stream}
            if any(name not in kept for _, read in backup.orders for name in read):
                return False
            if any(before > len(backup.orders) for _, before in backup.stream):
                return False
    return True


@reachable
def goes_on(s: View) -> bool:
    """The rebuilt server has shown what the old one did, and has executed an operation of its own."""
    seen = s[History].seen
    return any(name.startswith("add 0") for name in s[Server.pid(1)].cart) and any(n.startswith("add 1") for n in seen)


# -- the model -------------------------------------------------------------------------------------------------------


def shipped_updates(
    adds: int = 1,
    looks: int = 1,
    orders: int = 1,
    crashes: int = 0,
    rebuilds: bool = True,
    backups: int = 1,
    faulty: Fault = "none",
) -> System:
    """A server with some operations, the server that replaces it, the log, and backups."""
    at_least(0, adds=adds, looks=looks, orders=orders, crashes=crashes, backups=backups)
    one_of(get_args(Fault), faulty=faulty)
    first = Server(incarnation=0, faulty=faulty, adds=adds, looks=looks, orders=orders)
    if not rebuilds:
        adds = looks = orders = 0
    second = Server(incarnation=1, faulty=faulty, adds=adds, looks=looks, orders=orders, up=False, asked=not rebuilds)
    return System(
        [
            first,
            second,
            Log(faulty=faulty),
            *[Backup(faulty=faulty) for _ in range(backups)],
        ],
        faults=[crash_recovery(Server, budget=crashes)] if crashes else [],
        monitors=[History()],
        properties=[nothing_lost, grounded, closed, *([goes_on] if rebuilds and adds else [])],
        name="shipped_updates",
    )
