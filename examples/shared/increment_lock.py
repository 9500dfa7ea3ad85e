"""A counter under a lock: threads that read a number, add one, and write it back.

Each thread does this once: lock, read, write, release. Without the lock, two threads read the same number.

    plait check examples/shared/increment_lock.py                  17 states; 9 with --reduce symmetry
    plait check examples/shared/increment_lock.py -p lock=false    an update is lost
"""

from plait import Process, Shared, System, action, always


class Memory(Shared):
    """What the threads share."""

    counter: int = 0
    locked: bool = False


class Thread(Process):
    """Increments the counter. `line` is the next line of its program."""

    memory: Memory
    lock: bool = True
    line: str = "lock"
    found: int = 0

    @action(when=lambda self: self.line == "lock" and not (self.lock and self.memory.locked))
    def acquire(self) -> None:
        self.memory.locked = True
        self.line = "read"

    @action(when=lambda self: self.line == "read")
    def read(self) -> None:
        self.found = self.memory.counter
        self.line = "write"

    @action(when=lambda self: self.line == "write")
    def write(self) -> None:
        self.memory.counter = self.found + 1
        self.line = "release"

    @action(when=lambda self: self.line == "release")
    def release(self) -> None:
        self.memory.locked = False
        self.line = "done"


@always
def every_increment_counts(s):  # type: ignore[no-untyped-def]
    """The counter is the number of threads that have written."""
    return s[Memory].counter == sum(thread.line in ("release", "done") for thread in s[Thread])


def increment_lock(threads: int = 2, lock: bool = True) -> System:
    """Threads that increment one counter."""
    memory = Memory()
    return System(
        [Thread(memory=memory, lock=lock) for _ in range(threads)],
        properties=[every_increment_counts],
        symmetric=[Thread],
    )
