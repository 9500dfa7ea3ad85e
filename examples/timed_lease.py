"""A lock with leases, in time. A client that pauses after it has looked at its clock writes when its lease has ended.

Messages take no time here: all their handlers are urgent. What remains is how long a client pauses, and how
exact clocks are.
"""

from plait import Clock, Message, Pid, Process, System, action, always, field, on, reachable

LEASE = 2


class Acquire(Message): ...


class Grant(Message):
    token: int  # greater with every grant


class Write(Message):
    token: int


class Lock(Process):
    margin: int
    age: Clock  # how long it has been held
    token: int = 0
    holder: Pid | None = None

    @on(Acquire, where=lambda self, m: self.holder is None, urgent=True)
    def grant(self, m: Acquire):
        self.token += 1
        self.holder = m.sender
        self.age.start()
        self.send(m.sender, Grant(self.token))

    @action(when=lambda self: self.holder is not None and self.age >= LEASE + self.margin)
    def expire(self):
        self.holder = None
        self.age.stop()
        self.age.reset()


class Client(Process):
    asked: bool = False
    token: int = 0
    sure: bool = False  # it has looked at its clock
    lease: Clock = Clock(running=False)

    @action(when=lambda self: not self.asked)
    def ask(self):
        self.asked = True
        self.send(Lock.pid(0), Acquire())

    @on(Grant, urgent=True)
    def granted(self, m: Grant):
        self.token = m.token
        self.lease.start()

    @action(when=lambda self: self.token > 0 and not self.sure and self.lease < LEASE)
    def check(self):
        self.sure = True

    @action(when=lambda self: self.sure, urgent=True)
    def write(self):
        self.send(Store.pid(0), Write(self.token))
        self.give_up()

    @action(when=lambda self: self.token > 0 and not self.sure and self.lease >= LEASE)
    def give_up(self):
        self.token, self.sure = 0, False
        self.lease.stop()
        self.lease.reset()


class PausingClient(Client):
    """Time may pass before it writes: it collects garbage, or waits for a page of memory."""

    @action(when=lambda self: self.sure)
    def write(self):
        super().write()


class Store(Process):
    fencing: bool
    log: list[int] = field(default_factory=list)

    @on(Write, urgent=True)
    def write(self, m: Write):
        if not self.fencing or m.token > max(self.log, default=0):
            self.log.append(m.token)


@always
def no_stale_write(s):
    """No write arrives after a write of a later holder of the lock."""
    return all(store.log == sorted(store.log) for store in s[Store])


@reachable
def everybody_writes(s):
    """All clients can write."""
    return all(len(store.log) == len(s[Client]) for store in s[Store])


def lease(clients: int = 2, pauses: bool = True, fencing: bool = False, drift: int = 0, margin: int = 0) -> System:
    """Clients that may pause, a lock that waits `margin` ticks longer than a lease, and clocks that may drift."""
    client = PausingClient if pauses else Client
    return System(
        [
            *(client() for _ in range(clients)),
            Lock(margin=margin, age=Clock(running=False, bound=LEASE + margin)),
            Store(fencing=fencing),
        ],
        properties=[no_stale_write, everybody_writes],
        symmetric=[Client],
        drift=drift,
    )
