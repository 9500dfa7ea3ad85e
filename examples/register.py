"""The ABD register refines an atomic register.

One writer writes the numbers 1, 2, …; readers read. An atomic register seems to change at one moment of a write. So a
read returns a number that the register held while the read was going on: at least what a completed operation wrote or
returned before the read began, and at most the number that is being written. A monitor, which observes the beginnings and
ends of operations, records what the first condition needs.

    plait check examples/register.py                      ABD is an implementation
    plait check examples/register.py -p faulty=regular    readers do not write back: a second read returns an older number
"""

from plait import Monitor, Pid, Process, System, action, field, refines
from plait.model.linearizability import Invoke, Read, Return
from plait.protocols.atomic_register import AnyAtomicReader, AnyAtomicWriter, atomic_register

Numbers = tuple[int | None, ...]


def replaced(numbers: Numbers, place: int, by: int | None) -> Numbers:
    """The numbers with another one at a place."""
    return (*numbers[:place], by, *numbers[place + 1 :])


class AtomicRegister(Process):
    """A register that changes at one moment of each write."""

    last: int
    """How many writes there are."""
    value: int = 0
    invoked: int = 0
    """The number of the write that has begun last. If it is greater than the value, it may take effect at any time."""
    reads: Numbers = ()
    """For each reader, the value when its read began; None if it does not read."""
    returned: Numbers = ()
    """For each reader, what its last read returned."""

    @action(when=lambda self: self.invoked == self.value and self.invoked < self.last)
    def begin_write(self) -> None:
        self.invoked += 1

    @action(when=lambda self: self.invoked > self.value)
    def take_effect(self) -> None:
        self.value = self.invoked

    @action(when=lambda self: None in self.reads)
    def begin_read(self) -> None:
        reader = self.choose([i for i, read in enumerate(self.reads) if read is None])
        self.reads = replaced(self.reads, reader, self.value)

    @action(when=lambda self: any(read is not None for read in self.reads))
    def end_read(self) -> None:
        reader = self.choose([i for i, read in enumerate(self.reads) if read is not None])
        returned = self.choose(range(self.reads[reader], self.invoked + 1))
        self.value = max(self.value, returned)  # a read of a new value shows that the write has taken effect
        self.reads = replaced(self.reads, reader, None)
        self.returned = replaced(self.returned, reader, returned)


class Operations(Monitor):
    """The greatest number that a completed operation wrote or returned, now and when each pending read began."""

    value: int = 0
    writing: int = 0
    reads: dict[Pid, int] = field(default_factory=dict)
    returned: dict[Pid, int] = field(default_factory=dict)

    def observe(self, process: Pid, event: Invoke | Return) -> None:
        match event:
            case Invoke(Read()):
                self.reads[process] = self.value
            case Invoke(write):
                self.writing = write.value
            case Return(None):
                self.value = max(self.value, self.writing)
            case Return(returned):
                del self.reads[process]
                self.returned[process] = returned
                self.value = max(self.value, returned)


def register(readers: int = 1, faulty: str = "none") -> System:
    """The ABD register, with the atomic register as its property."""
    system = atomic_register(readers=readers, faulty=faulty)  # type: ignore[arg-type]
    last = system.processes[0].last
    names = [system.pids[i] for i in system.members(AnyAtomicReader)]

    def as_atomic(s):  # type: ignore[no-untyped-def]
        seen = s[Operations]
        return AtomicRegister(
            last=last,
            value=seen.value,
            invoked=s[AnyAtomicWriter][0].stamp,
            reads=tuple(seen.reads.get(name) for name in names),
            returned=tuple(seen.returned.get(name) for name in names),
        )

    none = (None,) * len(names)
    atomic = System([AtomicRegister(last=last, reads=none, returned=none)], name="atomic_register")
    return System(
        system.processes,
        network=system.network,
        monitors=[Operations()],
        properties=[refines(atomic, as_atomic, name="refines_atomic_register")],
        name="register",
    )
