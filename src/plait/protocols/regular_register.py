"""The regular register, in the style of ABD (Attiya, Bar-Noy, Dolev, JACM 1995), but without a reader's write-back.

One writer and several readers share a register (Lamport, "On Interprocess Communication", 1986). *Base objects* hold
copies of it. A minority of them may be slow for ever, so no process waits for all of them.

- The writer numbers its writes, and asks all base objects to store. A write is complete when a majority has
  acknowledged it. The number of a write is its timestamp, and here also the value that it writes; the initial value
  is 0.
- A base object keeps the newest write that it has received. It acknowledges older writes, too: they have been
  overwritten.
- A reader asks all base objects for their copies, and returns the newest copy of a majority.

Two majorities have a base object in common. So a read never returns a value older than the last write that was
complete when the read began. This is **regularity**. A read that overlaps a write may return the old or the new
value. Of two such reads, the second may even return the older value (a *new-old inversion*). An atomic register
forbids this; ABD prevents it by letting readers write back what they read (see `atomic_register`).

The specification is a monitor. It observes when a write is complete and when a read begins and ends. It does not
observe when a write begins: a value that no write has begun cannot be read. So the specification observes few steps,
and partial-order reduction does not need all orders of the other steps.

Two variants, as in `paxos` (MP-Basset calls this protocol regular storage; Table I of DBSS has it with 3, 4 and 5
base objects, one reader and one write):

- `quorum=True`: a majority of replies is consumed in one quorum transition.
- `quorum=False`: each reply is consumed alone, and processes count.

The faulty twin is not a protocol but a specification, `specification="wrong"`: a read that ends after a write is
complete must return it, even if the two overlap. Base objects may have answered the reader before the write arrived.

Simplified: processes do not crash. A crashed base object cannot be told from a slow one, and no process waits for
all.
"""

from __future__ import annotations

import dataclasses
from typing import Literal, get_args

from plait import Message, Monitor, Pid, Process, System, action, always, field, majority, on, reachable
from plait.model.view import View
from plait.protocols._parameters import at_least, one_of, several

Specification = Literal["regular", "wrong"]


class Write(Message):
    """Store this value, unless you have a newer one."""

    stamp: int


class Ack(Message):
    """I have this value, or a newer one."""

    stamp: int


class Read(Message):
    """What is your copy? The number distinguishes the reads of a reader."""

    number: int


class Copy(Message):
    """This is my copy."""

    number: int
    stamp: int


# -- what the specification observes -----------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Written:
    """The write of this value is complete."""

    value: int


@dataclasses.dataclass(frozen=True)
class Begun:
    """A read begins."""


@dataclasses.dataclass(frozen=True)
class Returned:
    """The read returns this value."""

    value: int


# -- base objects -----------------------------------------------------------------------------------------------------


class BaseObject(Process):
    """Holds a copy."""

    stamp: int = 0

    @on(Write)
    def store(self, m: Write) -> None:
        self.stamp = max(self.stamp, m.stamp)
        self.send(m.sender, Ack(m.stamp))

    @on(Read)
    def tell(self, m: Read) -> None:
        self.send(m.sender, Copy(m.number, self.stamp))


# -- the writer -------------------------------------------------------------------------------------------------------


class AnyWriter(Process):
    """Writes 1, 2, … up to its last value, one after the other."""

    last: int
    stamp: int = 0
    writing: bool = False

    @action(when=lambda self: not self.writing and self.stamp < self.last)
    def write(self) -> None:
        self.writing = True
        self.stamp += 1
        self.broadcast(BaseObject, Write(self.stamp))

    def complete(self) -> None:
        """A majority has the value."""
        self.writing = False
        self.announce(Written(self.stamp))


class Writer(AnyWriter):
    """Takes the acknowledgements of a majority at once."""

    @on(Ack, quorum=majority(BaseObject), same="stamp", where=lambda self, m: self.writing and m.stamp == self.stamp)
    def acknowledged(self, acks: tuple[Ack, ...]) -> None:
        self.complete()


class CountingWriter(AnyWriter):
    """Takes the acknowledgements one by one."""

    count: int = 0

    @on(Ack, where=lambda self, m: self.writing and m.stamp == self.stamp)
    def acknowledged(self, m: Ack) -> None:
        self.count += 1
        if self.count == len(self.ids(BaseObject)) // 2 + 1:
            self.count = 0
            self.complete()


# -- readers ----------------------------------------------------------------------------------------------------------


class AnyReader(Process):
    """Reads several times."""

    last: int
    number: int = 0
    reading: bool = False
    value: int | None = None
    """What the last complete read returned."""

    @action(when=lambda self: not self.reading and self.number < self.last)
    def read(self) -> None:
        self.reading = True
        self.number += 1
        self.announce(Begun())
        self.broadcast(BaseObject, Read(self.number))

    def complete(self, stamp: int) -> None:
        """A majority has answered; this is its newest copy."""
        self.reading = False
        self.value = stamp
        self.announce(Returned(stamp))


class Reader(AnyReader):
    """Takes the copies of a majority at once."""

    @on(
        Copy, quorum=majority(BaseObject), same="number", where=lambda self, m: self.reading and m.number == self.number
    )
    def answered(self, copies: tuple[Copy, ...]) -> None:
        self.complete(max(m.stamp for m in copies))


class CountingReader(AnyReader):
    """Takes the copies one by one."""

    count: int = 0
    newest: int = 0

    @on(Copy, where=lambda self, m: self.reading and m.number == self.number)
    def answered(self, m: Copy) -> None:
        self.count += 1
        self.newest = max(self.newest, m.stamp)
        if self.count == len(self.ids(BaseObject)) // 2 + 1:
            self.complete(self.newest)
            self.count, self.newest = 0, 0


# -- specifications ---------------------------------------------------------------------------------------------------


class Regularity(Monitor):
    """A read returns nothing older than the last write that was complete when it began."""

    written: int = 0
    """The last complete write."""
    oldest: dict[Pid, int] = field(default_factory=dict)
    """For each read in progress, the oldest value that it may return."""
    stale: bool = False
    """Whether a read has returned an older value."""

    def observe(self, process: Pid, event: Written | Begun | Returned) -> None:
        """Observe an operation."""
        match event:
            case Written(value):
                self.written = value
            case Begun():
                self.oldest[process] = self.written
            case Returned(value):
                self.stale = self.stale or value < self.oldest.pop(process)


class WrongRegularity(Regularity):
    """A read returns nothing older than the last write that is complete when it *ends*."""

    def observe(self, process: Pid, event: Written | Begun | Returned) -> None:
        """Observe an operation."""
        match event:
            case Written(value):
                self.written = value
            case Returned(value):
                self.stale = self.stale or value < self.written


@always
def regularity(s: View) -> bool:
    """No read returns a value that is too old."""
    return not s[Regularity].stale


@always
def validity(s: View) -> bool:
    """Only values that the writer writes are read, or the initial one."""
    (writer,) = s[AnyWriter]
    return all(reader.value is None or 0 <= reader.value <= writer.last for reader in s[AnyReader])


@reachable
def reading_the_write(s: View) -> bool:
    """A read can return the last written value."""
    (writer,) = s[AnyWriter]
    return any(reader.value == writer.last for reader in s[AnyReader])


# -- the model --------------------------------------------------------------------------------------------------------


def regular_register(
    base_objects: int = 3,
    readers: int = 1,
    writes: int = 1,
    reads: int = 1,
    quorum: bool = True,
    specification: Specification = "regular",
) -> System:
    """A writer with `writes` writes, and readers with `reads` reads each; a wrong specification is the twin."""
    at_least(1, base_objects=base_objects, readers=readers, writes=writes, reads=reads)
    one_of(get_args(Specification), specification=specification)
    writer: type[AnyWriter] = Writer if quorum else CountingWriter
    reader: type[AnyReader] = Reader if quorum else CountingReader
    return System(
        [
            writer(last=writes),
            *(BaseObject() for _ in range(base_objects)),
            *(reader(last=reads) for _ in range(readers)),
        ],
        monitors=[Regularity() if specification == "regular" else WrongRegularity()],
        properties=[regularity, validity, reading_the_write],
        symmetric=several({BaseObject: base_objects, AnyReader: readers}),
        name="regular_register",
    )
