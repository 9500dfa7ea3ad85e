"""The log for servers on several machines, in etcd. One etcd transaction compares the fence and adds the entries."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import msgspec

from plait.gyro.belt.http import Peer
from plait.gyro.belt.logs.log import Fence, LogGoneError, TooLargeError, admit
from plait.gyro.belt.records import Entry

_CHUNK = 100
"""Maximal number of entries per etcd transaction; etcd allows 128 operations."""


class EtcdLog:
    """A log in keys with one prefix: `fence`, `entry/SEQ`, `agreed/KEY`. It needs etcd 3.4 or later (JSON gateway)."""

    largest = 1_400_000
    """etcd accepts requests of 1.5 MiB, unless `--max-request-bytes` says something else."""

    def __init__(self, url: str, name: str) -> None:
        self._peer = Peer(url, timeout=5.0)
        self._prefix = f"plait-gyro/{name}/"
        try:
            self._create("fence", msgspec.json.encode(Fence()))
        except LogGoneError:
            self._peer.close()
            raise

    def _ask(self, path: str, question: dict[str, Any]) -> dict[str, Any]:
        try:
            status, answer = self._peer.request("POST", f"/v3/kv/{path}", msgspec.json.encode(question))
            content: dict[str, Any] = msgspec.json.decode(answer)
        except (OSError, msgspec.DecodeError) as error:
            raise LogGoneError(f"etcd: {error}") from None
        if status != 200:
            said = str(content.get("error", status))
            if "too large" in said or "larger than max" in said:
                raise TooLargeError(f"etcd: {said}")
            raise LogGoneError(f"etcd: {said}")
        return content

    def _key(self, name: str) -> str:
        return _text((self._prefix + name).encode())

    def _put(self, name: str, value: bytes) -> dict[str, Any]:
        return {"requestPut": {"key": self._key(name), "value": _text(value)}}

    def _get(self, name: str) -> tuple[bytes, int] | None:
        """A value, and the revision of its last change."""
        found = self._ask("range", {"key": self._key(name)}).get("kvs", [])
        return (base64.b64decode(found[0]["value"]), int(found[0]["mod_revision"])) if found else None

    def _create(self, name: str, value: bytes) -> None:
        absent = {"key": self._key(name), "target": "CREATE", "create_revision": "0", "result": "EQUAL"}
        self._ask("txn", {"compare": [absent], "success": [self._put(name, value)]})

    def _fence(self) -> tuple[Fence, int]:
        found = self._get("fence")
        if found is None:
            raise LogGoneError("etcd: the key `fence` is missing")
        return msgspec.json.decode(found[0], type=Fence), found[1]

    def _unchanged(self, revision: int) -> dict[str, Any]:
        return {"key": self._key("fence"), "target": "MOD", "mod_revision": str(revision), "result": "EQUAL"}

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
            puts = [self._put(f"entry/{e.seq:016d}", msgspec.msgpack.encode(e)) for e in entries]
            puts.append(self._put("fence", msgspec.json.encode(after)))
            if self._ask("txn", {"compare": [self._unchanged(revision)], "success": puts}).get("succeeded"):
                return

    def read(self, after: int, limit: int = 1000) -> list[Entry]:
        """The entries after a seq."""
        first, end = self._key(f"entry/{after + 1:016d}"), self._key("entry/:")  # ":" is the character after "9"
        answer = self._ask("range", {"key": first, "range_end": end, "limit": str(limit), "sort_order": "ASCEND"})
        return [msgspec.msgpack.decode(base64.b64decode(kv["value"]), type=Entry) for kv in answer.get("kvs", [])]

    def reissue(self, epoch: int) -> int | None:
        """End an epoch; return the new one, or None if it has already ended."""
        fence, revision = self._fence()
        if fence.epoch != epoch:
            return None
        put = self._put("fence", msgspec.json.encode(Fence(epoch + 1, 0, fence.last, fence.chain)))
        answer = self._ask("txn", {"compare": [self._unchanged(revision)], "success": [put]})
        return epoch + 1 if answer.get("succeeded") else None

    def agree(self, key: str, value: str) -> str:
        """The first value that any server gave for a key."""
        name = f"agreed/{key}"
        self._create(name, value.encode())
        found = self._get(name)
        return found[0].decode() if found is not None else value

    def close(self) -> None:
        """Close the connections."""
        self._peer.close()


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()
