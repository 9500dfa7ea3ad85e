"""The log for servers on several machines, in etcd. One etcd transaction compares the fence and adds the entries."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from plait.gyro.belt.logs.address import Address
from plait.gyro.belt.logs.etcd_client import Keys
from plait.gyro.belt.logs.log import Fence, LogGoneError, Stream, admit, admit_local, replaced
from plait.gyro.belt.records import Entry, LocalUpdate

_CHUNK = 100
"""Maximal number of entries per etcd transaction; etcd allows 128 operations."""


class EtcdLog:
    """A log in keys with one prefix: `fence`, `entry/SEQ`, `agreed/KEY`, `stream/SERVER`, `local/SERVER/POSITION`.

    It needs etcd 3.4 or later (JSON gateway).
    """

    largest = 1_400_000
    """etcd accepts requests of 1.5 MiB, unless `--max-request-bytes` says something else."""

    def __init__(self, where: Address, name: str) -> None:
        self._keys = Keys(where, name)
        self.agree, self.agreed, self.close = self._keys.agree, self._keys.agreed, self._keys.close
        try:
            self._keys.create("fence", msgspec.json.encode(Fence()))
        except BaseException:
            self._keys.close()
            raise

    def _fence(self) -> tuple[Fence, int]:
        found = self._keys.get("fence")
        if found is None:
            raise LogGoneError("etcd: the key `fence` is missing")
        return msgspec.json.decode(found[0], type=Fence), found[1]

    def fence(self) -> Fence:
        """The current fence."""
        return self._fence()[0]

    def append(self, entries: Sequence[Entry]) -> None:
        """Append entries of one turn, all or none."""
        if len(entries) > _CHUNK:
            raise ValueError(f"{len(entries)} entries in one append: at most {_CHUNK} are possible")
        while True:
            fence, revision = self._fence()
            after = admit(fence, entries)
            puts = [self._keys.put(f"entry/{e.seq:016d}", msgspec.msgpack.encode(e)) for e in entries]
            puts.append(self._keys.put("fence", msgspec.json.encode(after)))
            if self._keys.change([self._keys.unchanged("fence", revision)], puts):
                return

    def read(self, after: int, limit: int = 1000) -> list[Entry]:
        """The entries after a seq."""
        found = self._keys.range(f"entry/{after + 1:016d}", "entry/:", limit)  # ":" is the character after "9"
        return [msgspec.msgpack.decode(value, type=Entry) for value in found]

    def reissue(self, epoch: int) -> int | None:
        """End an epoch; return the new one, or None if it has already ended."""
        while True:
            fence, revision = self._fence()
            if fence.epoch != epoch:
                return None
            put = self._keys.put("fence", msgspec.json.encode(msgspec.structs.replace(fence, epoch=epoch + 1, turn=0)))
            if self._keys.change([self._keys.unchanged("fence", revision)], [put]):
                return epoch + 1

    def ship(self, server: int, updates: Sequence[LocalUpdate]) -> None:
        """Append to the stream of a server, all or none."""
        stream, revision = self._stream(server)
        after = admit_local(stream, updates)
        puts = [self._keys.put(f"local/{server}/{u.position:016d}", msgspec.msgpack.encode(u)) for u in updates]
        puts.append(self._keys.put(f"stream/{server}", msgspec.json.encode(after)))
        if not self._keys.change([self._keys.unchanged(f"stream/{server}", revision)], puts):
            admit_local(self._stream(server)[0], updates)  # another process has changed the stream: say how
            raise LogGoneError("etcd: the stream changed at the same time")

    def shipped(self, server: int, after: int, limit: int = 1000) -> list[LocalUpdate]:
        """The local updates of a server after a position."""
        found = self._keys.range(f"local/{server}/{after + 1:016d}", f"local/{server}/:", limit)
        return [msgspec.msgpack.decode(value, type=LocalUpdate) for value in found]

    def _stream(self, server: int) -> tuple[Stream, int]:
        """The end of a stream, and the revision of its last change; 0 if it does not exist yet."""
        found = self._keys.get(f"stream/{server}")
        return (Stream(), 0) if found is None else (msgspec.json.decode(found[0], type=Stream), found[1])

    def stream(self, server: int) -> Stream:
        """The end of the stream of a server."""
        return self._stream(server)[0]

    def replace(self, server: int, incarnation: int) -> int | None:
        """Begin a new incarnation of a server."""
        while True:
            (fence, revision), (stream, end) = self._fence(), self._stream(server)
            after = replaced(fence, server, incarnation)
            if after is None:
                return None
            begun = msgspec.structs.replace(stream, incarnation=incarnation + 1)
            puts = [
                self._keys.put("fence", msgspec.json.encode(after)),
                self._keys.put(f"stream/{server}", msgspec.json.encode(begun)),
            ]
            conditions = [self._keys.unchanged("fence", revision), self._keys.unchanged(f"stream/{server}", end)]
            if self._keys.change(conditions, puts):
                return incarnation + 1
