"""The atomic register of ABD (Attiya, Bar-Noy, Dolev, JACM 1995): the regular register with a reader's write-back.

One writer and several readers share a register that base objects keep, as in `regular_register`. The regular register
is not atomic: of two reads during a write, the first may return the new value and the second the old one (a *new-old
inversion*). The two reads ask different majorities, and so far only one base object may have the new value. ABD
prevents this by a second phase of each read: before a reader returns a value, it asks all base objects to store it,
and waits for a majority. Each later read meets this majority, and finds the value or a newer one. (`abd` also has
several writers.)

The specification is linearizability (Herlihy and Wing 1990), which for registers is atomicity (Lamport 1986): each
operation seems to happen at one moment between its beginning and its end. Writers and readers announce both.

Two variants, as in `regular_register`: with `quorum=True` a majority of replies is consumed in one quorum transition;
with `quorum=False` each reply is consumed alone, and processes count.

The faulty twin, `faulty="regular"`: readers return what they read without writing it back. This is the regular
register, and the counterexample proves that regular is weaker than atomic. It needs two reads, by one reader or by
two readers.

Simplified: as in `regular_register`, processes do not crash, and the number of a write is its timestamp and its
value.
"""

from __future__ import annotations

import enum
from typing import Literal, get_args

from plait import Pid, Process, System, action, field, majority, on, reachable
from plait.model import linearizability as history
from plait.model.view import View
from plait.protocols._parameters import at_least, one_of, several
from plait.protocols.regular_register import Ack, AnyWriter, BaseObject, Copy, CountingWriter, Read, Write, Writer

Fault = Literal["none", "regular"]


class Phase(enum.Enum):
    """What a reader is doing."""

    IDLE = enum.auto()
    READING = enum.auto()
    WRITING_BACK = enum.auto()


# -- the writer: as in the regular register, but it announces both ends of a write ------------------------------------


class AnyAtomicWriter(AnyWriter):
    """Announces its operations to the monitor."""

    def write(self) -> None:
        """Begin a write."""
        self.announce(history.Invoke(history.Write(self.stamp + 1)))
        super().write()

    def complete(self) -> None:
        """A majority has the value."""
        self.writing = False
        self.announce(history.Return())


class AtomicWriter(AnyAtomicWriter, Writer):
    """Takes the acknowledgements of a majority at once."""


class CountingAtomicWriter(AnyAtomicWriter, CountingWriter):
    """Takes the acknowledgements one by one."""


# -- readers ----------------------------------------------------------------------------------------------------------


class AnyAtomicReader(Process):
    """Reads several times, in two phases each."""

    last: int
    writes_back: bool
    """False is the faulty twin."""
    number: int = 0
    phase: Phase = Phase.IDLE
    value: int | None = None
    """What the last read returned, or will return after the write-back."""

    @action(when=lambda self: self.phase is Phase.IDLE and self.number < self.last)
    def read(self) -> None:
        self.announce(history.Invoke(history.Read()))
        self.phase = Phase.READING
        self.number += 1
        self.broadcast(BaseObject, Read(self.number))

    def write_back(self, stamp: int) -> None:
        """A majority has answered, and this is its newest copy. Make sure that later reads find it, too."""
        self.value = stamp
        if self.writes_back:
            self.phase = Phase.WRITING_BACK
            self.broadcast(BaseObject, Write(stamp))
        else:
            self.complete()

    def complete(self) -> None:
        """A majority has the value."""
        self.phase = Phase.IDLE
        self.announce(history.Return(self.value))


class AtomicReader(AnyAtomicReader):
    """Takes the replies of a majority at once."""

    @on(
        Copy,
        quorum=majority(BaseObject),
        same="number",
        where=lambda self, m: self.phase is Phase.READING and m.number == self.number,
    )
    def answered(self, copies: tuple[Copy, ...]) -> None:
        self.write_back(max(m.stamp for m in copies))

    @on(
        Ack,
        quorum=majority(BaseObject),
        same="stamp",
        where=lambda self, m: self.phase is Phase.WRITING_BACK and m.stamp == self.value,
    )
    def acknowledged(self, acks: tuple[Ack, ...]) -> None:
        self.complete()


class CountingAtomicReader(AnyAtomicReader):
    """Takes the replies one by one."""

    count: int = 0
    newest: int = 0
    stored: set[Pid] = field(default_factory=set)
    """The base objects that acknowledged the write-back. A late answer to an earlier one of this value counts once."""

    @on(Copy, where=lambda self, m: self.phase is Phase.READING and m.number == self.number)
    def answered(self, m: Copy) -> None:
        self.count += 1
        self.newest = max(self.newest, m.stamp)
        if self.count == len(self.ids(BaseObject)) // 2 + 1:
            newest, self.count, self.newest = self.newest, 0, 0
            self.write_back(newest)

    @on(Ack, where=lambda self, m: self.phase is Phase.WRITING_BACK and m.stamp == self.value)
    def acknowledged(self, m: Ack) -> None:
        self.stored.add(m.sender)
        if len(self.stored) == len(self.ids(BaseObject)) // 2 + 1:
            self.stored = set()
            self.complete()


# -- the model --------------------------------------------------------------------------------------------------------


@reachable
def reading_the_write(s: View) -> bool:
    """A read can return the last written value."""
    (writer,) = s[AnyWriter]
    return any(reader.phase is Phase.IDLE and reader.value == writer.last for reader in s[AnyAtomicReader])


def atomic_register(
    base_objects: int = 3,
    readers: int = 1,
    writes: int = 1,
    reads: int = 2,
    quorum: bool = True,
    faulty: Fault = "none",
) -> System:
    """A writer with `writes` writes, and readers with `reads` reads each; the twin is the regular register."""
    at_least(1, base_objects=base_objects, readers=readers, writes=writes, reads=reads)
    one_of(get_args(Fault), faulty=faulty)
    writer: type[AnyWriter] = AtomicWriter if quorum else CountingAtomicWriter
    reader: type[AnyAtomicReader] = AtomicReader if quorum else CountingAtomicReader
    return System(
        [
            writer(last=writes),
            *(BaseObject() for _ in range(base_objects)),
            *(reader(last=reads, writes_back=faulty != "regular") for _ in range(readers)),
        ],
        monitors=[history.Linearizability(spec=history.Register(0))],
        properties=[history.linearizability(), reading_the_write],
        symmetric=several({BaseObject: base_objects, AnyAtomicReader: readers}),
        name="atomic_register",
    )
