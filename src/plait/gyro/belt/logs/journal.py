"""Records in one stream of JetStream, with compare-and-append.

Each record has the state of the stream after it (`end`), so the last record is enough to decide about an append. A record
without items is a *marker*. The stream accepts a record only with the number of records before it (the rule *expectation*
of `plait.protocols.split_log`). Records are never removed, so numbers have no holes, and a record with a given item is
found by bisection.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from plait.gyro.belt.logs.jetstream import JetStream
from plait.gyro.belt.logs.log import Fence, LogGoneError, StaleError, Stream
from plait.gyro.belt.records import Entry, LocalUpdate

End = TypeVar("End", Fence, Stream)
Item = TypeVar("Item", Entry, LocalUpdate)
_WINDOW = 64
"""The number of messages that are requested at once."""


def behind(stream: str, number: int) -> StaleError:
    """The error for a stream that has fewer records than it had before."""
    return StaleError(f"nats: the stream {stream} is behind: record {number} is missing")


class Record(msgspec.Struct, Generic[End, Item], frozen=True, array_like=True):
    """What a message contains."""

    end: End
    items: list[Item] = []
    name: str = ""
    """The name of the epoch (see `Epoch` in `nats.py`)."""


class Place(msgspec.Struct, Generic[End], frozen=True):
    """The end of a stream: its number of records, its state, and the name of its epoch."""

    count: int
    end: End
    name: str = ""


class Journal(Generic[End, Item]):
    """A stream. Several threads may use it."""

    def __init__(self, jetstream: JetStream, stream: str, record: Any, empty: End) -> None:
        self._jetstream = jetstream
        self.stream = stream
        self._decoder = msgspec.msgpack.Decoder(record)
        self._lock = threading.Lock()
        self.known: Place[End] = Place(0, empty)
        """The newest end of the stream that was seen."""
        self._next: tuple[int, int] = (0, 1)
        """The record with the item after an item: a hint for readers."""

    def _decode(self, message: bytes) -> Record[End, Item]:
        try:
            found: Record[End, Item] = self._decoder.decode(message)
        except msgspec.DecodeError as error:
            raise LogGoneError(f"nats: the stream {self.stream} has a message that is no record: {error}") from None
        return found

    def tail(self) -> Place[End]:
        """The end of the stream. LogGoneError: the answer is older than what was seen before."""
        known = self.known
        number, message = self._jetstream.last(self.stream) or (0, b"")
        if number < known.count:
            raise behind(self.stream, known.count)
        if number > known.count:
            record = self._decode(message)
            known = Place(number, record.end, record.name)
            self._see(known)
        return known

    def _see(self, place: Place[End]) -> None:
        with self._lock:
            if place.count > self.known.count:
                self.known = place

    def get(self, number: int) -> Record[End, Item] | None:
        """A record, by its number from 1."""
        found = self._jetstream.messages(self.stream, [number])
        return self._decode(found[0]) if found else None

    def store(self, before: Place[End], record: Record[End, Item], name: str) -> bool:
        """Append a record to a stream that ends at a place; whether it is there.

        A client that reconnects may send a request twice. Then the first one is stored and the second one is refused, so
        the record at this place decides.
        """
        number = before.count + 1
        if not self._jetstream.publish(self.stream, before.count, msgspec.msgpack.encode(record), name):
            found = self.get(number)
            if found is None:
                raise behind(self.stream, before.count)  # it refuses the record, and does not have it
            if found != record:
                return False
        self._see(Place(number, record.end, record.name))
        return True

    def append(self, items: Sequence[Item], admit: Callable[[End, Sequence[Item]], End]) -> None:
        """Append items, all or none, if `admit` allows it at the end of the stream."""
        place, fresh = self.known, False
        while True:
            try:
                after = admit(place.end, items)
            except Exception:
                if fresh:
                    raise
            else:
                if self.store(place, Record(after, list(items), place.name), items[-1].chain):
                    return
            place, fresh = self.tail(), True

    def read(self, after: int, limit: int) -> list[Item]:
        """The items after an item, in order."""
        number, known = self._find(after), self.known.count
        found: list[Item] = []
        while len(found) < limit:
            window = range(number, number + min(_WINDOW, limit - len(found)))
            messages = self._jetstream.messages(self.stream, window)
            for message in messages:
                record = self._decode(message)
                found += [item for item in record.items if _position(item) > after]
                number += 1
                self._see(Place(number - 1, record.end, record.name))
                if len(found) <= limit:
                    self._next = (record.end.last, number)
                if len(found) >= limit:
                    break
            if len(messages) < len(window):
                break
        if number <= known and len(found) < limit:
            raise behind(self.stream, number)
        return found[:limit]

    def _find(self, after: int) -> int:
        """The number of the first record with an item after an item."""
        if self._next[0] == after:
            return self._next[1]
        low, high = 1, self.tail().count + 1
        while low < high:
            middle = (low + high) // 2
            record = self.get(middle)
            if record is None:
                raise behind(self.stream, middle)
            if record.end.last > after:
                high = middle
            else:
                low = middle + 1
        return low


def _position(item: Entry | LocalUpdate) -> int:
    return item.seq if isinstance(item, Entry) else item.position
