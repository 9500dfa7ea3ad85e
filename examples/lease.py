"""A lock with leases guards a store. A lease can expire while its holder is slow; then another client gets the lock."""

from plait import Message, Pid, Process, System, action, always, field, init, on, reachable


class Acquire(Message): ...


class Grant(Message):
    token: int  # greater with every grant


class Write(Message):
    token: int


class Lock(Process):
    token: int = 0
    holder: Pid | None = None

    @on(Acquire, where=lambda self, m: self.holder is None)
    def grant(self, m: Acquire):
        self.token += 1
        self.holder = m.sender
        self.send(m.sender, Grant(self.token))

    @action(when=lambda self: self.holder is not None)
    def expire(self):
        self.holder = None


class Client(Process):
    @init
    def ask(self):
        self.send(Lock.pid(0), Acquire())

    @on(Grant)
    def work(self, m: Grant):
        self.send(Store.pid(0), Write(m.token))


class Store(Process):
    fencing: bool
    log: list[int] = field(default_factory=list)

    @on(Write)
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


def lease(clients: int = 2, fencing: bool = False) -> System:
    """A lock server, its clients, and a store that checks tokens if `fencing` is true."""
    return System(
        [*(Client() for _ in range(clients)), Lock(), Store(fencing=fencing)],
        properties=[no_stale_write, everybody_writes],
    )
