"""Conveyor Belt with its log in two engines: epochs in one, updates in another (Saissi 2019; etcd and NATS JetStream).

`conveyor_belt` has one log that compares the epoch and appends the update in one step. Here the *fence* (etcd) knows the
newest epoch, and the *stream* (NATS JetStream) has the updates. No step changes both. The fence begins an epoch if the
server knows the current one (compare-and-swap). The stream accepts a record if the server names the number of records
before it (*expectation*). It knows nothing of epochs. A server that has crashed, or that believes that the token is lost,
begins a new epoch. An append from before the crash may still be in transit, and must not be stored after the server has
read the stream. The rules:

- *Expectation.* A server publishes an update only with the expectation of a stream that it has read to the end, and that
  has no newer epoch than its token. Otherwise it rolls back, applies what it has read, and executes again.
- *Marker.* A server that has begun an epoch publishes a marker, a record with the epoch and no update, with the
  expectation of what it has read. Then it has read all updates before the marker. An older append expects a stream
  without the marker, so it is refused. Only then does the server execute operations, or issue the token.
- *Loser.* A server that finds the epoch already ended publishes the marker of the newer epoch itself, unless the stream
  has it. The server that has begun this epoch may be slow, or may have crashed before its marker.
- *Epoch first.* The fence begins an epoch before its marker is published. So a stream with a newer epoch than the fence
  shows that the fence was restored from an older copy.
- *Unsure.* A server that gets no answer to an append reads the stream until it knows whether its update was stored.

Readers skip markers. If a server crashes after it has begun an epoch and before its marker, the old token remains valid,
and the next server that asks for an epoch gets the one after it.

Properties: *serializable* and *prefixes*, as in `conveyor_belt`; and *ordered* (epoch first).

Faulty twins:

- `"careless"`: updates are published without an expectation.
- `"unmarked"`: a new epoch has no marker.
- `"blind"`: markers are published without an expectation.
- `"loser"`: a server that finds the epoch already ended reads the stream, and does not wait for a marker.
- `"first"`: the marker is published before the epoch has begun.
- `"hopeful"`: a server that gets no answer to an append rolls back.

Simplified, besides what `conveyor_belt` simplifies: a refusal contains the records of the stream, so that a server does
not ask for them separately. A server that has read nothing publishes with an expectation that is always refused. A
token carries the stock instead of single updates. The engines do not fail.
"""

from __future__ import annotations

from typing import Literal, get_args

from plait import Message, Process, System, action, always, crash_recovery, durable, init, on, reachable, recovery
from plait.model.view import View
from plait.protocols._parameters import at_least, one_of
from plait.protocols.conveyor_belt import History, serializable

Fault = Literal["none", "careless", "unmarked", "blind", "loser", "first", "hopeful"]

Record = tuple[int, tuple[str, ...], tuple[str, ...]]
"""An epoch, and an update: the stock after an order, and the cart that the order read. A marker has an empty stock."""

UNREAD = -1
"""The expectation of a server that has not read the stream."""


class Look(Message):
    """A server asks the fence for the epoch."""

    life: int
    """The life of the server (see `Server.life`). An answer to an earlier life is not read."""


class Begin(Message):
    """A server asks the fence to end an epoch."""

    epoch: int
    life: int


class Current(Message):
    """The answer of the fence."""

    epoch: int
    """The newest epoch."""
    begun: bool
    """This server has begun it."""
    life: int


class Publish(Message):
    """A record for the stream."""

    expected: int | None
    """The number of records before it; None: any number."""
    record: Record
    life: int


class Stored(Message):
    """The stream has the record."""

    life: int


class Refused(Message):
    """The stream does not have the record, but these."""

    records: tuple[Record, ...]
    life: int


class Token(Message):
    """The server that has it may execute global operations."""

    epoch: int
    stock: tuple[str, ...]


class Fence(Process):
    """Knows the newest epoch (etcd)."""

    epoch: int = 0

    @on(Look)
    def look(self, m: Look) -> None:
        self.send(m.sender, Current(self.epoch, False, m.life))

    @on(Begin)
    def begin(self, m: Begin) -> None:
        """Compare-and-swap."""
        begun = m.epoch == self.epoch
        if begun:
            self.epoch += 1
        self.send(m.sender, Current(self.epoch, begun, m.life))


class Stream(Process):
    """Has all updates and markers in one order (NATS JetStream)."""

    records: tuple[Record, ...] = ()

    @on(Publish)
    def publish(self, m: Publish) -> None:
        """Compare-and-append."""
        if m.expected is None or m.expected == len(self.records):
            self.records += (m.record,)
            self.send(m.sender, Stored(m.life))
        else:
            self.send(m.sender, Refused(self.records, m.life))


class Server(Process):
    """Executes operations: local ones at once, global ones when it has the token. One thing at a time."""

    number: int = durable()
    servers: int = durable()
    carts: int = durable()
    orders: int = durable()
    timeouts: int = durable()
    """How often it may still lose patience: with the token, or with the answer to an append."""
    faulty: Fault = durable(default="none")
    stock: tuple[str, ...] = durable(default=())
    cart: tuple[str, ...] = durable(default=())
    queue: tuple[str, ...] = durable(default=())
    life: int = durable(default=0)
    """Counts crashes and timeouts."""
    ready: bool = True
    epoch: int = 0
    known: int = UNREAD
    """The number of records that it has read and applied."""
    token: Token | None = None
    """The token, while the server has it."""
    left: int = 0
    """The number of queued operations to execute in this visit of the token."""
    waiting: Record | None = None
    """An update that was executed, but may not be in the stream yet."""
    claim: Literal["", "looking", "beginning", "marking"] = ""
    """How far it is with a new epoch."""
    won: bool = False
    """This server has begun the epoch that it marks."""

    @init
    def start(self) -> None:
        """The first server gets the token first."""
        if self.number == self.servers - 1:
            self.send(Server.pid(0), Token(0, ()))

    def idle(self) -> bool:
        """Whether it can take a token."""
        return self.ready and self.token is None and self.claim == ""

    @on(Token, where=lambda self, m: self.idle())
    def receive(self, token: Token) -> None:
        if token.epoch < self.epoch:
            return
        if len(token.stock) > len(self.stock):
            self.stock = token.stock
        self.hold(token.epoch)

    def hold(self, epoch: int) -> None:
        """Begin a visit of the token."""
        self.epoch = epoch
        self.token = Token(epoch, ())
        self.left = len(self.queue)

    @action(when=lambda self: self.carts > 0 and self.ready and self.waiting is None)
    def add(self) -> None:
        """A local operation: reads the stock, writes the cart, replies."""
        name = f"add {self.number}.{self.carts}"
        self.carts -= 1
        self.announce((name, self.stock, self.cart))
        self.cart += (name,)

    @action(when=lambda self: self.orders > 0 and self.ready)
    def order(self) -> None:
        self.queue += (f"order {self.number}.{self.orders}",)
        self.orders -= 1

    # -- appends -----------------------------------------------------------------------------------------------------

    @action(when=lambda self: self.token is not None and self.left > 0 and self.waiting is None)
    def execute(self) -> None:
        self.waiting = (self.epoch, (*self.stock, self.queue[0]), self.cart)
        self.append(self.known)

    def append(self, expected: int | None) -> None:
        """Publish the update that waits."""
        assert self.waiting is not None
        if self.faulty == "careless":
            expected = None
        self.send(Stream.pid(0), Publish(expected, self.waiting, self.life))

    @action(when=lambda self: self.waiting is not None and self.timeouts > 0)
    def time_out(self) -> None:
        """No answer to an append: read the stream, by a record that it refuses."""
        self.timeouts -= 1
        self.life += 1
        self.known = UNREAD
        if self.faulty == "hopeful":
            self.waiting = None
        else:
            self.append(UNREAD)

    @on(Stored, where=lambda self, m: m.life == self.life)
    def stored(self, m: Stored) -> None:
        self.known += 1
        if self.claim == "marking":
            self.marked()
        elif self.waiting is not None:
            _, stock, read = self.waiting
            self.waiting = None
            self.left -= 1
            self.commit(stock, read)

    @on(Refused, where=lambda self, m: m.life == self.life)
    def refused(self, m: Refused) -> None:
        self.known = len(m.records)
        newest = max((epoch for epoch, _, _ in m.records), default=0)
        behind = len(m.records) > 0 and max(len(stock) for _, stock, _ in m.records) > len(self.stock)
        if self.claim == "marking":
            self.catch_up(m.records)
            self.mark(newest)
        elif newest > self.epoch:
            self.waiting, self.token, self.left = None, None, 0
            self.epoch = newest
            self.catch_up(m.records)
        elif behind:
            self.waiting = None
            self.catch_up(m.records)
            self.left = min(self.left, len(self.queue))
        else:
            self.append(self.known)

    def catch_up(self, records: tuple[Record, ...]) -> None:
        """Apply the new updates. An own order that is in the stream is now committed, and its client gets the reply."""
        for _, stock, read in records:
            if len(stock) > len(self.stock):
                if stock[-1] in self.queue:
                    self.commit(stock, read)
                self.stock = stock

    def commit(self, stock: tuple[str, ...], read: tuple[str, ...]) -> None:
        """The order is in the stream: apply it, and reply."""
        self.announce((stock[-1], stock[:-1], read))
        self.queue = tuple(name for name in self.queue if name != stock[-1])
        self.stock = stock

    @action(when=lambda self: self.token is not None and self.left == 0 and self.waiting is None)
    def pass_on(self) -> None:
        """Send the token to the next server."""
        self.send(Server.pid((self.number + 1) % self.servers), Token(self.epoch, self.stock))
        self.token = None

    # -- epochs ------------------------------------------------------------------------------------------------------

    @action(when=lambda self: self.timeouts > 0 and self.idle())
    def reissue(self) -> None:
        """The token may be lost. If it is not, there are two tokens from now on."""
        self.timeouts -= 1
        self.begin(self.epoch)

    @recovery
    def recover(self) -> None:
        """Execute nothing until the stream has the marker of a newer epoch than any from before the crash."""
        self.ready = False
        self.life += 1
        self.claim = "looking"
        self.send(Fence.pid(0), Look(self.life))

    def begin(self, epoch: int) -> None:
        """End an epoch."""
        self.epoch = epoch
        if self.faulty == "first" and not self.won:
            self.won = True
            self.epoch += 1
            self.publish_marker(self.known)
        else:
            self.claim = "beginning"
            self.send(Fence.pid(0), Begin(epoch, self.life))

    @on(Current, where=lambda self, m: m.life == self.life)
    def answered(self, m: Current) -> None:
        if self.claim == "looking":
            self.begin(m.epoch)
            return
        self.won = m.begun
        self.epoch = m.epoch
        if self.faulty == "first":
            self.act()
        else:
            self.publish_marker(UNREAD if self.faulty in ("unmarked", "blind", "loser") else self.known)

    def publish_marker(self, expected: int | None) -> None:
        self.claim = "marking"
        self.send(Stream.pid(0), Publish(expected, (self.epoch, (), ()), self.life))

    def mark(self, newest: int) -> None:
        """Publish the marker after what was just read, if it is not there."""
        if newest >= self.epoch or self.faulty == "unmarked" or (self.faulty == "loser" and not self.won):
            self.epoch = max(newest, self.epoch)
            self.marked()
        else:
            self.publish_marker(None if self.faulty == "blind" else self.known)

    def marked(self) -> None:
        """No append of an older epoch can be stored any more."""
        if self.faulty == "first":
            self.begin(self.epoch - 1)
        else:
            self.act()

    def act(self) -> None:
        """Continue; with the token, if this server has begun the epoch."""
        self.claim = ""
        self.ready = True
        if self.won:
            self.won = False
            self.hold(self.epoch)


# -- properties ------------------------------------------------------------------------------------------------------


@always
def prefixes(s: View) -> bool:
    """Of any two servers, one has seen a prefix of the global operations that the other has seen."""
    stocks = [p.stock for p in s[Server]]
    longest = max(stocks, key=len)
    return all(longest[: len(stock)] == stock for stock in stocks)


@always
def ordered(s: View) -> bool:
    """The stream has no epoch that the fence has not begun."""
    return all(epoch <= s[Fence][0].epoch for epoch, _, _ in s[Stream][0].records)


@reachable
def everything_everywhere(s: View) -> bool:
    """All operations got a reply, and all servers have seen all orders."""
    orders = {name for name, _, _ in s[History].replies if name.startswith("order")}
    return all(p.carts == p.orders == 0 and not p.queue and set(p.stock) == orders for p in s[Server])


# -- the model -------------------------------------------------------------------------------------------------------


def split_log(
    servers: int = 2,
    carts: int = 1,
    orders: int = 1,
    timeouts: int = 1,
    crashes: int = 1,
    faulty: Fault = "none",
) -> System:
    """Servers with local and global operations each. Only the first server has `timeouts`."""
    at_least(2, servers=servers)
    at_least(0, carts=carts, orders=orders, timeouts=timeouts, crashes=crashes)
    one_of(get_args(Fault), faulty=faulty)
    processes: list[Process] = [
        Server(number=i, servers=servers, carts=carts, orders=orders, timeouts=timeouts if i == 0 else 0, faulty=faulty)
        for i in range(servers)
    ]
    return System(
        [*processes, Fence(), Stream()],
        faults=[crash_recovery(Server, budget=crashes)] if crashes else [],
        monitors=[History()],
        properties=[serializable, prefixes, ordered, everything_everywhere],
        name="split_log",
    )
