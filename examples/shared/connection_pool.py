"""A pool of connections: workers borrow one, use it, and give it back. Workers may crash and recover.

The pool survives a crash of a worker, and so does the note that the worker has a connection. A worker that recovers must
look there.

    plait check examples/shared/connection_pool.py                    every worker is served
    plait check examples/shared/connection_pool.py -p cleanup=false   a crash leaks a connection: nobody gets one any more
    plait check examples/shared/connection_pool.py -p atomic=false    two workers see one free connection, and both take it
"""

from plait import Pid, Process, Shared, System, action, always, crash_recovery, durable, field, final, recovery


class Pool(Shared):
    """The connections: how many are free, and who has borrowed one."""

    free: int
    borrowers: set[Pid] = field(default_factory=set)

    def lend(self, to: Pid) -> None:
        """Give a connection to a worker."""
        self.free -= 1
        self.borrowers.add(to)

    def take_back(self, worker: Pid) -> None:
        """Take the connection of a worker."""
        self.free += 1
        self.borrowers.remove(worker)


class Worker(Process):
    """Needs a connection once."""

    pool: Pool
    atomic: bool = durable(True)
    cleanup: bool = durable(True)
    served: bool = durable(False)
    doing: str = "nothing"

    @action(when=lambda self: self.doing == "nothing" and not self.served)
    def begin(self) -> None:
        if self.atomic or self.pool.free > 0:
            self.doing = "borrow"

    @action(when=lambda self: self.doing == "borrow" and (not self.atomic or self.pool.free > 0))
    def borrow(self) -> None:
        self.pool.lend(self.id)
        self.doing = "work"

    @action(when=lambda self: self.doing == "work")
    def give_back(self) -> None:
        self.pool.take_back(self.id)
        self.served = True
        self.doing = "nothing"

    @recovery
    def restart(self) -> None:
        if self.cleanup and self.id in self.pool.borrowers:
            self.pool.take_back(self.id)


@always
def within_the_limit(s):  # type: ignore[no-untyped-def]
    """No more connections are lent than there are."""
    return s[Pool].free >= 0


@final
def everybody_is_served(s):  # type: ignore[no-untyped-def]
    """At the end, every worker has had a connection, unless one is down: it may recover, and give its connection back."""
    return any(worker.crashed for worker in s[Worker]) or all(worker.served for worker in s[Worker])


def connection_pool(
    workers: int = 3, size: int = 1, crashes: int = 1, atomic: bool = True, cleanup: bool = True
) -> System:
    """Workers that share a pool of `size` connections."""
    pool = Pool(free=size)
    return System(
        [Worker(pool=pool, atomic=atomic, cleanup=cleanup) for _ in range(workers)],
        faults=[crash_recovery(Worker, budget=crashes)] if crashes else [],
        properties=[within_the_limit, everybody_is_served],
        symmetric=[Worker],
    )
