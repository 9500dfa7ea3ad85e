"""The log for servers on several machines, with updates in NATS JetStream and epochs in etcd.

No step changes both engines. `plait.protocols.split_log` is the model of this file, and its faulty twins show that each
rule is needed:

- *Expectation*: an update is stored only after the record that its writer has read last (`Journal.append`).
- *Marker*: a new epoch has a marker in the stream before anything happens in it (`_mark`).
- *Loser*: a server whose epoch was ended by another server stores the marker too, if it is missing (`reissue`).
- *Epoch first*: an epoch begins in etcd before its marker is stored (`_begin`). So a stream with a newer epoch, or with
  another epoch of the same number, shows that etcd was restored from an older copy.
- *Unsure*: an append without an answer may have been stored (`append_surely`).

etcd also knows what the stream had when the epoch began. A stream without this was deleted, or restored from an older
copy. The stream is created once, and its name is in etcd: a stream that is missing is never created again.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence

import msgspec

from plait.gyro.belt.logs.address import Address
from plait.gyro.belt.logs.etcd_client import Keys
from plait.gyro.belt.logs.jetstream import JetStream, missing
from plait.gyro.belt.logs.journal import Journal, Place, Record, behind
from plait.gyro.belt.logs.log import Fence, FencedError, LogGoneError, StaleError, Stream, admit, admit_local, replaced
from plait.gyro.belt.records import Entry, LocalUpdate
from plait.kernel.errors import UsageError

_RESERVE = 4096
"""The bytes of a message besides its entries, at most."""
_PATIENCE = 10.0
"""How long a stream that is behind may need to catch up when a server starts, in seconds."""


class Epoch(msgspec.Struct, frozen=True, array_like=True):
    """What etcd knows: the newest epoch, and what the stream had when it began."""

    epoch: int = 0
    name: str = ""
    """A unique name, which its records in the stream have, too."""
    incarnations: dict[int, int] = {}
    count: int = 0
    """The number of records in the stream when the epoch began."""
    chain: str = ""
    """The hash of all entries in these."""


class NatsLog:
    """Streams with one prefix: one for entries, one for the local updates of each server."""

    def __init__(self, where: Address, fence: Address, name: str) -> None:
        self._keys = Keys(fence, name)
        self.agree, self.agreed = self._keys.agree, self._keys.agreed
        try:
            self._jetstream = JetStream(where)
        except BaseException:
            self._keys.close()
            raise
        self.largest = max(self._jetstream.largest - _RESERVE, 0)
        try:
            self._replicas = int(where.options.get("replicas", "1"))
            self._prefix = f"plait-gyro-{name}-{self.agree('name of the streams', uuid.uuid4().hex[:12])}"
            self._keys.create("epoch", msgspec.json.encode(Epoch()))
            self._opened: dict[int, Journal[Stream, LocalUpdate]] = {}
            self._log: Journal[Fence, Entry] = Journal(
                self._jetstream, self._created("log"), Record[Fence, Entry], Fence()
            )
            self._check()
        except BaseException:
            self.close()
            raise

    def _created(self, suffix: str) -> str:
        """The name of a stream. It is created once: one that was deleted is an error."""
        stream = f"{self._prefix}-{suffix}"
        if self._keys.get(f"created/{suffix}") is None:
            self._jetstream.create(stream, replicas=self._replicas)
            self._keys.create(f"created/{suffix}", b"yes")
        if not self._jetstream.exists(stream):
            raise missing(stream)
        return stream

    def _check(self) -> None:
        """Check that etcd and the stream belong together, when a server starts."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                self._belong(self._log.tail())
                return
            except StaleError as error:
                if time.monotonic() > deadline:
                    raise UsageError(
                        str(error).removeprefix("nats: "), hint="the stream is an older copy: restore a newer one"
                    ) from None
                time.sleep(0.2)

    def _belong(self, place: Place[Fence]) -> tuple[Epoch, int]:
        """What etcd knows, and its revision, read after the stream.

        UsageError: etcd or the stream was restored from an older copy.
        """
        epoch, revision = self._epoch()
        if (place.end.epoch, place.name) != (epoch.epoch, epoch.name) and place.end.epoch >= epoch.epoch:
            raise UsageError(
                f"the stream {self._log.stream} has epoch {place.end.epoch}, which etcd does not know: etcd is behind",
                hint="etcd is an older copy: restore a newer one, or restore all servers, etcd and NATS from one backup",
            )
        if place.count < epoch.count:
            raise behind(self._log.stream, epoch.count)
        if epoch.count:
            record = self._log.get(epoch.count)
            if record is None or record.end.chain != epoch.chain:
                raise UsageError(
                    f"the stream {self._log.stream} and etcd have different histories: record {epoch.count} is another one",
                    hint="the stream was restored, and went on: restore all servers, etcd and NATS from one backup",
                )
        return epoch, revision

    def _epoch(self) -> tuple[Epoch, int]:
        found = self._keys.get("epoch")
        if found is None:
            raise LogGoneError("etcd: the key `epoch` is missing")
        return msgspec.json.decode(found[0], type=Epoch), found[1]

    def fence(self) -> Fence:
        """The current fence: the epoch of etcd, which may have no marker yet, and the rest from the stream."""
        place = self._log.tail()
        return _fence(place.end, self._belong(place)[0])

    def append(self, entries: Sequence[Entry]) -> None:
        """Append entries of one turn as one record."""
        if entries[0].epoch > self._log.known.end.epoch:
            self._mark()
            if entries[0].epoch > self._log.known.end.epoch:  # etcd has not begun this epoch
                admit(self._log.known.end, entries)
                raise FencedError(self.fence())
        self._log.append(entries, admit)

    def read(self, after: int, limit: int = 1000) -> list[Entry]:
        """The entries after a seq."""
        return self._log.read(after, limit)

    def reissue(self, epoch: int) -> int | None:
        """End an epoch; return the new one, or None if it has already ended."""
        begun = None
        place = self._log.tail()
        known, revision = self._belong(place)
        if known.epoch == epoch:
            begun = self._begin(msgspec.structs.replace(_fence(place.end, known), epoch=epoch + 1), place, revision)
        self._mark()
        return None if begun is None else epoch + 1

    def _begin(self, fence: Fence, place: Place[Fence], revision: int) -> Epoch | None:
        """Begin an epoch in etcd; None if another server has begun one."""
        begun = Epoch(fence.epoch, uuid.uuid4().hex, fence.incarnations, place.count, place.end.chain)
        unchanged = self._keys.unchanged("epoch", revision)
        return begun if self._keys.change([unchanged], [self._keys.put("epoch", msgspec.json.encode(begun))]) else None

    def _mark(self) -> None:
        """Store the marker of the newest epoch, if it is missing. After that, no append of an older epoch is stored."""
        while True:
            place = self._log.tail()
            epoch, _ = self._belong(place)
            if place.end.epoch == epoch.epoch:
                return
            if self._log.store(place, Record(_fence(place.end, epoch), [], epoch.name), epoch.name):
                return

    def _local(self, server: int) -> Journal[Stream, LocalUpdate]:
        if server not in self._opened:
            self._opened[server] = Journal(
                self._jetstream, self._created(f"local-{server}"), Record[Stream, LocalUpdate], Stream()
            )
        return self._opened[server]

    def ship(self, server: int, updates: Sequence[LocalUpdate]) -> None:
        """Append to the stream of a server, all or none."""
        self._local(server).append(updates, admit_local)

    def shipped(self, server: int, after: int, limit: int = 1000) -> list[LocalUpdate]:
        """The local updates of a server after a position."""
        return self._local(server).read(after, limit)

    def stream(self, server: int) -> Stream:
        """The end of the stream of a server."""
        self._incarnate(server)
        return self._local(server).tail().end

    def replace(self, server: int, incarnation: int) -> int | None:
        """Begin a new incarnation of a server: in etcd, then with markers in both streams."""
        begun: Epoch | None = None
        while begun is None:
            place = self._log.tail()
            known, revision = self._belong(place)
            after = replaced(_fence(place.end, known), server, incarnation)
            if after is None:
                break
            begun = self._begin(after, place, revision)
        self._mark()
        self._incarnate(server)
        return None if begun is None else incarnation + 1

    def _incarnate(self, server: int) -> None:
        """Store the marker of the present incarnation, if it is missing."""
        local = self._local(server)
        while True:
            place = local.tail()
            present = self._epoch()[0].incarnations.get(server, 0)
            if place.end.incarnation >= present:
                return
            end = msgspec.structs.replace(place.end, incarnation=present)
            if local.store(place, Record(end), f"{local.stream} {present}"):
                return

    def close(self) -> None:
        """Close the connections."""
        self._jetstream.close()
        self._keys.close()


def _fence(end: Fence, epoch: Epoch) -> Fence:
    """The fence of a stream in an epoch; the stream may not have its marker yet."""
    if end.epoch == epoch.epoch:
        return end
    return Fence(epoch.epoch, 0, end.last, end.chain, epoch.incarnations)
