"""The regular register, in the style of ABD (Attiya, Bar-Noy, Dolev, JACM 1995), but without a reader's write-back.

One writer and some readers share a register (Lamport, "On Interprocess Communication", 1986). It is kept by *base
objects*, each of which holds a copy; a minority of them may be slow for ever, so nobody waits for all.

- The writer numbers its writes, and asks all base objects to store. Its write is complete once a majority has
  acknowledged it. The number of a write is its timestamp, and here also the value that it writes; 0 was there before.
- A base object keeps the newest write that it has heard of, and acknowledges old ones too: they have been overwritten.
- A reader asks all base objects for their copy, and returns the newest of the copies of a majority.

Two majorities have a base object in common. So a read returns a value not older than that of the last write that was
complete when the read began, and that is **regularity**. A read that overlaps a write may return the old or the new
value; of two such reads the second may even return the older one (a *new-old inversion*), which an atomic register
forbids, and ABD prevents by letting readers write back what they read (see `atomic_register`).

The specification is a monitor. It is told when a write is complete and when a read begins and ends; when a write begins
is of no interest, because a value that nobody began to write is nowhere to be read. That keeps the steps few that the
specification can see, and steps that it cannot see are those that a partial-order reduction need not put in every order.

Two variants, as of `paxos` (paper 003 calls this protocol regular storage; paper 000, Table I, has it with 3, 4 and 5
base objects, one reader and one write):

- `quorum=True`: a majority of replies is consumed in one quorum transition.
- `quorum=False`: every reply is consumed alone, and processes count.

The faulty twin is not a protocol but a specification, `specification="wrong"`: a read that ends after a write is complete
must return it, even if the two overlap. Base objects may have answered the reader before the write came to them.

Simplified: processes do not crash (a crashed base object can't be told from a slow one, and nothing here waits for all).
"""

from __future__ import annotations

import dataclasses
from typing import Literal, get_args

from plait import Message, Monitor, Pid, Process, System, action, always, field, majority, on, reachable
from plait.model.view import View
from plait.protocols._parameters import at_least, one_of, several

Specification = Literal["regular", "wrong"]


class Write(Message):
    """Store this, unless you have something newer."""

    stamp: int


class Ack(Message):
    """I have that, or something newer."""

    stamp: int


class Read(Message):
    """What is your copy? The number tells the reads of a reader apart."""

    number: int


class Copy(Message):
    """This is my copy."""

    number: int
    stamp: int


# -- what the specification is told -----------------------------------------------------------------------------------


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
        """A majority has it."""
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
    """Reads so many times."""

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
    """Of each read that is under way, the oldest value that it may return."""
    stale: bool = False
    """A read has returned something older."""

    def observe(self, process: Pid, event: Written | Begun | Returned) -> None:
        """Follow the operations."""
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
        """Follow the operations."""
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
    """A read can return what was written last."""
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
    """A writer with so many writes and readers with so many reads each; a wrong specification is the twin."""
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
