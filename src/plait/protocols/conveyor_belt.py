"""Conveyor Belt: serializable operations at several servers by a token (Saissi 2019, section 2.4, Algorithm 2).

A store runs at several servers, each with its own copy of the database. The operations have been partitioned (`plait
gyro analyze`). Putting an item into a cart is *local*: it reads the stock and writes a cart of its server only. An
order is *global*: it reads the cart and takes from the stock, which all servers read.

- A server executes a local operation at once, and sends nothing.
- Global operations wait in a queue for the token, which travels around the servers. A server that receives the token
  applies the updates of other servers in it, removes its own (they have reached all servers), executes its queue,
  puts the resulting updates into the token, and passes it on. An update is the new state of the stock, not the
  operation.

The dissertation does not treat faults. With `reissues` or `crashes`, there is a *log* that survives, and the token
has an epoch. A global operation is executed, then appended to the log, then committed; meanwhile the database blocks
local operations. The log may suspect at any time that the token is lost: it then starts a new epoch and gives a new
token, with all updates of the log in it, to some server. (A lost token is one that is never delivered; such runs are
included.) The log rejects messages of an older epoch (*fencing*). The server that gets the new token also removes
these updates from it, after one round. A server that has crashed executes nothing until it has asked the log, which
starts a new epoch for it: messages from before the crash may still be in transit, and must not be logged after the
server has read the log.

Properties: *serializable* (there is an order of the operations in which one server would give the same replies) and
*prefixes* (Lemma 2 of the dissertation: all servers have seen the same global operations in the same order, or a
prefix).

Faulty twins of Algorithm 2:

- `"skip"`: a server with an empty queue passes the token on without applying the updates in it.
- `"keep"`: a server leaves its own updates in the token. Other servers apply them again, and newer updates are lost.
- `"early"`: each server removes the updates that it applies, so the next server never sees them.

Faulty twins of the extension for faults:

- `"fencing"`: the log accepts updates of any epoch.
- `"carrier"`: the updates of a new token are removed by the servers that made them, before all servers have them.
- `"amnesia"`: a server that has crashed continues without asking the log.
- `"peek"`: it asks, but the log starts no new epoch.
- `"stale"`: a server takes the log's answer to a message from before a crash as the answer to its latest message.

Simplified: the stock and the cart are lists of the operations that wrote them, so that a reply shows which operations
were seen. Without the log, a visit of the token is one step. Clients are part of their servers. Requests in the queue
survive a crash, as if clients asked again.
"""

from __future__ import annotations

from typing import Literal, get_args

from plait import (
    Message,
    ModelError,
    Monitor,
    Pid,
    Process,
    System,
    action,
    always,
    crash_recovery,
    durable,
    field,
    init,
    on,
    reachable,
    recovery,
)
from plait.model.view import View
from plait.protocols._parameters import at_least, one_of

Fault = Literal["none", "skip", "keep", "early", "fencing", "carrier", "amnesia", "peek", "stale"]

Update = tuple[Pid, tuple[str, ...], tuple[str, ...]]
"""The server that removes it from the token, the stock after it, and the cart that the order read. The order is the last
element of the stock."""

Reply = tuple[str, tuple[str, ...], tuple[str, ...]]
"""The operation, and what it read: the stock and the cart."""


class Token(Message):
    """The server that has it may execute global operations."""

    epoch: int
    updates: tuple[Update, ...]
    fresh: bool = False
    """Just issued by the log: no server has seen it yet."""


class Append(Message):
    """An update, to be logged."""

    epoch: int
    update: Update


class Logged(Message):
    """The update is in the log."""

    epoch: int
    """The epoch of the update."""


class Fenced(Message):
    """The update is not in the log, because there is a newer epoch."""

    epoch: int


class Question(Message):
    """A server that has crashed asks for the log, and for a new epoch."""


class Answer(Message):
    """The log, without a new epoch: only a faulty log sends it."""

    updates: tuple[Update, ...]


class Server(Process):
    """Executes operations: local ones at once, global ones when it has the token."""

    number: int
    servers: int
    carts: int
    """The number of local operations that clients will still request."""
    orders: int
    """The number of global operations that clients will still request."""
    stock: tuple[str, ...] = ()
    """The orders that have taken from it. Each server has a copy."""
    cart: tuple[str, ...] = ()
    """The operations that put something into it, at this server only."""
    queue: tuple[str, ...] = ()
    faulty: Fault = "none"

    @init
    def start(self) -> None:
        """The last server has the token first."""
        if self.number == self.servers - 1:
            self.pass_on(Token(0, ()))

    @action(when=lambda self: self.carts > 0)
    def add(self) -> None:
        """A local operation: reads the stock, writes the cart, replies."""
        name = f"add {self.number}.{self.carts}"
        self.carts -= 1
        self.announce((name, self.stock, self.cart))
        self.cart += (name,)

    @action(when=lambda self: self.orders > 0)
    def order(self) -> None:
        self.queue += (f"order {self.number}.{self.orders}",)
        self.orders -= 1

    @on(Token)
    def receive(self, token: Token) -> None:
        updates = self.apply(token)
        for name in self.queue:
            self.announce((name, self.stock, self.cart))
            read = self.cart
            self.stock += (name,)
            updates += ((self.id, self.stock, read),)
        self.queue = ()
        self.pass_on(Token(0, updates))

    def apply(self, token: Token) -> tuple[Update, ...]:
        """Apply the updates of other servers, and return those that stay in the token."""
        if self.faulty == "skip" and not self.queue:
            return tuple(u for u in token.updates if u[0] != self.id)
        kept: tuple[Update, ...] = ()
        for update in token.updates:
            carrier, stock, _ = update
            if carrier != self.id:
                self.stock = stock
            if (carrier != self.id and self.faulty != "early") or self.faulty == "keep":
                kept += (update,)
        return kept

    def pass_on(self, token: Token) -> None:
        """Send the token to the next server."""
        self.send(Server.pid((self.number + 1) % self.servers), token)


class LoggedServer(Process):
    """A server that survives crashes, and the loss of the token, with the help of the log."""

    number: int = durable()
    servers: int = durable()
    carts: int = durable()
    orders: int = durable()
    stock: tuple[str, ...] = durable(default=())
    cart: tuple[str, ...] = durable(default=())
    queue: tuple[str, ...] = durable(default=())
    faulty: Fault = durable(default="none")
    epoch: int = durable(default=0)
    token: Token | None = None
    """The token, while the server has it."""
    left: int = 0
    """The number of queued operations to execute in this visit of the token."""
    waiting: Update | None = None
    """An operation that was executed, but may not be in the log yet."""
    ready: bool = True

    @init
    def start(self) -> None:
        """The last server has the token first."""
        if self.number == self.servers - 1:
            self.send(LoggedServer.pid(0), Token(0, ()))

    @action(when=lambda self: self.carts > 0 and self.ready and self.waiting is None)
    def add(self) -> None:
        name = f"add {self.number}.{self.carts}"
        self.carts -= 1
        self.announce((name, self.stock, self.cart))
        self.cart += (name,)

    @action(when=lambda self: self.orders > 0 and self.ready)
    def order(self) -> None:
        self.queue += (f"order {self.number}.{self.orders}",)
        self.orders -= 1

    @on(Token, where=lambda self, m: self.ready or m.fresh)
    def receive(self, token: Token) -> None:
        if token.epoch < self.epoch:
            return
        self.epoch = token.epoch
        kept = self.catch_up(token.updates)
        if token.fresh and self.faulty != "carrier":
            kept = tuple((self.id, stock, read) for _, stock, read in kept)
        else:
            kept = tuple(u for u in kept if u[0] != self.id)
        self.ready = True
        self.waiting = None
        self.token = Token(token.epoch, kept)
        self.left = len(self.queue)

    def catch_up(self, updates: tuple[Update, ...]) -> tuple[Update, ...]:
        """Apply the new updates. An own order that is in the log is now committed, and its client gets the reply."""
        for _, stock, read in updates:
            if len(stock) > len(self.stock):
                if stock[-1] in self.queue:
                    self.commit(stock, read)
                self.stock = stock
        return updates

    def commit(self, stock: tuple[str, ...], read: tuple[str, ...]) -> None:
        """The order is in the log: apply it, and reply."""
        self.announce((stock[-1], stock[:-1], read))
        self.queue = tuple(name for name in self.queue if name != stock[-1])
        self.stock = stock

    @action(when=lambda self: self.token is not None and self.left > 0 and self.waiting is None)
    def execute(self) -> None:
        assert self.token is not None
        self.waiting = (self.id, (*self.stock, self.queue[0]), self.cart)
        self.send(Log.pid(0), Append(self.token.epoch, self.waiting))

    @on(Logged)
    def logged(self, m: Logged) -> None:
        if self.waiting is None or self.token is None or not self.current(m.epoch):
            return
        self.commit(self.waiting[1], self.waiting[2])
        self.token = Token(self.token.epoch, (*self.token.updates, self.waiting))
        self.waiting = None
        self.left -= 1

    @on(Fenced)
    def fenced(self, m: Fenced) -> None:
        """Roll back; the operation stays in the queue."""
        if self.current(m.epoch):
            self.waiting, self.token, self.left = None, None, 0

    def current(self, epoch: int) -> bool:
        """Whether an answer of the log belongs to the current epoch."""
        return epoch == self.epoch or self.faulty == "stale"

    @action(when=lambda self: self.token is not None and self.left == 0)
    def pass_on(self) -> None:
        assert self.token is not None
        self.send(LoggedServer.pid((self.number + 1) % self.servers), self.token)
        self.token = None

    @recovery
    def recover(self) -> None:
        if self.faulty != "amnesia":
            self.ready = False
            self.send(Log.pid(0), Question())

    @on(Answer)
    def answered(self, m: Answer) -> None:
        self.catch_up(m.updates)
        self.ready = True


class Log(Process):
    """Keeps updates, survives all faults, and decides the epoch."""

    servers: int
    reissues: int
    faulty: Fault
    updates: tuple[Update, ...] = ()
    epoch: int = 0

    @on(Append)
    def append(self, m: Append) -> None:
        if m.epoch == self.epoch or self.faulty == "fencing":
            self.updates += (m.update,)
            self.send(m.sender, Logged(m.epoch))
        else:
            self.send(m.sender, Fenced(m.epoch))

    @on(Question)
    def answer(self, m: Question) -> None:
        if self.faulty == "peek":
            self.send(m.sender, Answer(self.updates))
        else:
            self.issue(m.sender)

    @action(when=lambda self: self.reissues > 0)
    def reissue(self) -> None:
        """The token may be lost. If it is not, there are two tokens from now on."""
        self.reissues -= 1
        self.issue(LoggedServer.pid(self.choose(range(self.servers))))

    def issue(self, server: Pid) -> None:
        """Start a new epoch, and send its token."""
        self.epoch += 1
        self.send(server, Token(self.epoch, self.updates, True))


class History(Monitor):
    """The replies that clients got."""

    replies: set[Reply] = field(default_factory=set)

    def observe(self, process: Pid, event: Reply) -> None:
        self.replies.add(event)


# -- properties ------------------------------------------------------------------------------------------------------


def explained(replies: frozenset[Reply], stock: tuple[str, ...], carts: dict[str, tuple[str, ...]]) -> bool:
    """Whether one server could execute these operations, in some order, from this state, and reply the same.

    An order without a reply that other servers have seen may come at any position.
    """
    if not replies:
        return True
    for reply in sorted(replies):
        name, seen, read = reply
        home = name.split()[1].split(".")[0]
        if seen != stock or read != carts.get(home, ()):
            continue
        rest = replies - {reply}
        if name.startswith("order"):
            if explained(rest, (*stock, name), carts):
                return True
        elif explained(rest, stock, {**carts, home: (*read, name)}):
            return True
    known = {name for name, _, _ in replies}
    for name in sorted(
        {seen[len(stock)] for _, seen, _ in replies if seen[: len(stock)] == stock and len(seen) > len(stock)}
    ):
        if name not in known and explained(replies, (*stock, name), carts):
            return True
    return False


@always
def serializable(s: View) -> bool:
    """There is an order of the operations in which one server would have given the same replies."""
    return explained(frozenset(s[History].replies), (), {})


def servers(s: View) -> list[Server | LoggedServer]:
    """The servers, with or without a log."""
    return [*s.get(Server), *s.get(LoggedServer)]


@always
def prefixes(s: View) -> bool:
    """Of any two servers, one has seen a prefix of the global operations that the other has seen."""
    stocks = [p.stock for p in servers(s)]
    longest = max(stocks, key=len)
    return all(longest[: len(stock)] == stock for stock in stocks)


@reachable
def everything_everywhere(s: View) -> bool:
    """All operations got a reply, and all servers have seen all orders."""
    orders = {name for name, _, _ in s[History].replies if name.startswith("order")}
    return all(p.carts == p.orders == 0 and not p.queue and set(p.stock) == orders for p in servers(s))


# -- the model -------------------------------------------------------------------------------------------------------


def conveyor_belt(
    servers: int = 3,
    carts: int = 1,
    orders: int = 1,
    reissues: int = 0,
    crashes: int = 0,
    faulty: Fault = "none",
) -> System:
    """Servers with local and global operations each; with a log if `reissues` or `crashes` is not 0."""
    at_least(2, servers=servers)
    at_least(0, carts=carts, orders=orders, reissues=reissues, crashes=crashes)
    one_of(get_args(Fault), faulty=faulty)
    logged = reissues > 0 or crashes > 0
    if logged == (faulty in ("skip", "keep", "early")) and faulty != "none":
        needed = "reissues=0 and crashes=0" if logged else "reissues=1 or crashes=1"
        raise ModelError(f"faulty={faulty!r} is a fault of the protocol with {needed}", hint=f"give {needed}")
    kind = LoggedServer if logged else Server
    processes: list[Process] = [
        kind(number=i, servers=servers, carts=carts, orders=orders, faulty=faulty) for i in range(servers)
    ]
    return System(
        [*processes, *([Log(servers=servers, reissues=reissues, faulty=faulty)] if logged else [])],
        faults=[crash_recovery(LoggedServer, budget=crashes)] if crashes else [],
        monitors=[History()],
        properties=[serializable, prefixes, everything_everywhere],
        name="conveyor_belt",
    )
