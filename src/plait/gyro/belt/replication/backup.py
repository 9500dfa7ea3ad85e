"""Backups: one consistent cut of the history of a cluster, in one file.

A *cut* is a set of updates that is closed under dependencies: with a global update, it has the local updates of its server
that were in the log before it (`Entry.shipped`); with a local update, it has the global updates that its server had
applied (`LocalUpdate.seq`). So there is an execution with exactly these operations.

The file is a sequence of frames: one byte for the kind, four for the length (big endian), and the content (msgpack).
After the line `PLAIT-GYRO-BACKUP 1`:

    H   Header: the number of servers, their DBMS, and what they have agreed on
    S   a piece of the schema and the initial rows, as text
    E   Entry: the update of a global operation
    L   LocalUpdate
    F   Footer: how many updates there are, and the hash (BLAKE2b) of all bytes before this frame

Every update comes after the updates that it depends on. So every beginning of the file is a cut, too.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from plait.gyro.belt.logs.log import MOST_SHIPPED, Log, TooLargeError, size_of
from plait.gyro.belt.records import Entry, ForkedError, LocalUpdate, follow
from plait.gyro.belt.replication.cut import Cut, between
from plait.gyro.belt.replication.rebuild import initial, replicated, store_initial
from plait.kernel.errors import Argument, UsageError

_MAGIC = b"PLAIT-GYRO-BACKUP "
_FORMAT = 1
_PIECE = 1 << 20
_AGREED = ("number of servers", "classification", "schema", "replication", "configuration 0")


class Header(msgspec.Struct, frozen=True):
    """What a new cluster must have in common with the old one."""

    cluster: str
    created: str
    servers: int
    db: str
    replicate: str
    agreed: dict[str, str]


class Footer(msgspec.Struct, frozen=True):
    """The end of a cut: the last seq, the position of each stream; and the hash of the file."""

    seq: int
    positions: list[int]
    digest: bytes


class Contents(msgspec.Struct, frozen=True):
    """A backup whose frames were all checked."""

    header: Header
    schema: str
    footer: Footer

    @property
    def updates(self) -> tuple[int, int]:
        """The numbers of global and of local updates."""
        return self.footer.seq, sum(self.footer.positions)


# -- writing ---------------------------------------------------------------------------------------------------------


def cut(log: Log, servers: int) -> Iterator[Entry | LocalUpdate]:
    """The updates of a cut of the log, each after the updates that it depends on, while servers append.

    The end of the global updates is read first. A server ships local updates before it appends a global update that may
    depend on them. So the streams, whose ends are read later, have all of them. A local update that depends on later
    global updates is left out, and all local updates after it.
    """
    last = log.fence().last
    return between(log, Cut(), Cut(last, {server: log.stream(server).last for server in range(servers)}))


def frames(log: Log, servers: int, db: str, replicate: str) -> Iterator[bytes]:
    """The bytes of a backup."""
    if not replicated(log):
        raise UsageError(
            "the log does not have the local updates of this cluster, so it cannot be backed up while it works",
            hint=(
                "stop the servers and copy the whole folder; for backups, a cluster must be started with ",
                Argument("replicate", "background"),
                " or ",
                Argument("replicate", "acknowledged"),
            ),
        )
    digest = hashlib.blake2b(digest_size=32)
    agreed = {key: value for key in _AGREED if (value := log.agreed(key)) is not None}
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    header = Header(log.agreed("identity") or "", now, servers, db, replicate, agreed)
    schema = initial(log).encode()
    positions = [0] * servers
    seq = 0

    def content() -> Iterator[bytes]:
        nonlocal seq
        yield _MAGIC + b"%d\n" % _FORMAT
        yield _frame(b"H", header)
        for start in range(0, len(schema), _PIECE):
            yield _frame(b"S", schema[start : start + _PIECE])
        for update in cut(log, servers):
            if isinstance(update, Entry):
                seq = update.seq
            else:
                positions[update.server] = update.position
            yield _frame(b"E" if isinstance(update, Entry) else b"L", update)

    for piece in content():
        digest.update(piece)
        yield piece
    yield _frame(b"F", Footer(seq, positions, digest.digest()))


def _frame(kind: bytes, value: object) -> bytes:
    content = msgspec.msgpack.encode(value)
    return kind + len(content).to_bytes(4, "big") + content


def save(pieces: Iterable[bytes], file: Path) -> Contents:
    """Write a backup to a new file, for its owner only, and check it. The file exists only if it is complete."""
    if file.exists():
        raise UsageError(f"{file} exists already", hint="give the name of a new file: a backup is never overwritten")
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)  # its mode is 0600
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}", hint="choose another file") from None
    made = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as out:
            for piece in pieces:
                out.write(piece)
            out.flush()
            os.fsync(out.fileno())
        found = check(made)
        os.link(made, file)  # unlike a rename, it does not replace a file that was made meanwhile
        return found
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror or error}", hint="choose another file") from None
    finally:
        made.unlink(missing_ok=True)


# -- reading ---------------------------------------------------------------------------------------------------------

_STRUCTS = {b"H": Header, b"S": bytes, b"E": Entry, b"L": LocalUpdate, b"F": Footer}


def _damaged(file: Path, what: str) -> UsageError:
    return UsageError(f"{file} is not a complete backup: {what}", hint="use another backup")


def _read(file: Path, source: BinaryIO) -> Iterator[object]:
    """The contents of frames. The last one is the footer, whose hash must be right."""
    line = source.readline(100)
    if not line.startswith(_MAGIC) or not line.endswith(b"\n"):
        raise _damaged(file, "it does not begin like one")
    if line != _MAGIC + b"%d\n" % _FORMAT:
        version = line.removeprefix(_MAGIC).decode(errors="replace").strip()
        raise UsageError(
            f"{file} has the format {version}; this version of Plait reads format {_FORMAT}",
            hint="restore it with the version of Plait that wrote it",
        )
    digest = hashlib.blake2b(line, digest_size=32)
    while True:
        head = source.read(5)
        content = source.read(int.from_bytes(head[1:], "big")) if len(head) == 5 else b""
        if len(head) < 5 or len(content) < int.from_bytes(head[1:], "big"):
            raise _damaged(file, "its end is missing")
        kind = _STRUCTS.get(head[:1])
        try:
            value = msgspec.msgpack.decode(content, type=kind) if kind is not None else None
        except msgspec.DecodeError:
            value = None
        if value is None:
            raise _damaged(file, "it was changed")
        if isinstance(value, Footer):
            if value.digest != digest.digest() or source.read(1):
                raise _damaged(file, "it was changed")
            yield value
            return
        digest.update(head + content)
        yield value


def check(file: Path) -> Contents:
    """Check a backup: its hash, the hashes of all histories, and that it is a cut."""
    header: Header | None = None
    pieces: list[bytes] = []
    seq, chain = 0, ""
    positions: list[int] = []
    chains: list[str] = []
    try:
        with file.open("rb") as source:
            for value in _read(file, source):
                if isinstance(value, Header):
                    header = value
                    positions, chains = [0] * header.servers, [""] * header.servers
                elif isinstance(value, bytes):
                    pieces.append(value)
                elif isinstance(value, Entry):
                    if value.seq != seq + 1 or value.shipped > positions[value.holder]:
                        raise _damaged(file, f"update {value.seq} lacks an update before it")
                    seq, chain = value.seq, follow(chain, value)
                elif isinstance(value, LocalUpdate):
                    if value.position != positions[value.server] + 1 or value.seq > seq:
                        what = f"local update {value.position} of server {value.server}"
                        raise _damaged(file, f"{what} lacks an update before it")
                    positions[value.server], chains[value.server] = value.position, follow(chains[value.server], value)
                elif isinstance(value, Footer):
                    if header is None or (value.seq, value.positions) != (seq, positions):
                        raise _damaged(file, "it was changed")
                    return Contents(header, b"".join(pieces).decode(), value)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}", hint="give the file of a backup") from None
    except (ForkedError, IndexError, UnicodeDecodeError) as error:
        raise _damaged(file, str(error)) from None
    raise _damaged(file, "its end is missing")


# -- restoring -------------------------------------------------------------------------------------------------------


def load(file: Path, contents: Contents, log: Log) -> None:
    """Append the updates of a backup to a new log. The new cluster has an identity of its own."""
    if log.fence().last or log.agreed("identity") is not None:
        raise UsageError(
            "the log is not new: it has the history of a cluster",
            hint=("choose another ", Argument("folder"), " and another secret"),
        )
    for key, agreed in contents.header.agreed.items():
        log.agree(key, agreed)
    store_initial(log, contents.schema)
    loader = _Loader(log)
    try:
        with file.open("rb") as source:
            for value in _read(file, source):
                if isinstance(value, Entry | LocalUpdate):
                    loader.add(value)
        loader.flush()
    except TooLargeError as error:
        raise UsageError(
            f"an update of the backup is too large for this log: {error}", hint="use another log"
        ) from None


class _Loader:
    """Appends updates in batches, in the order of the backup. Incarnations begin as they did in the old cluster."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._incarnations: dict[int, int] = {}
        self._entries: list[Entry] = []
        self._streams: dict[int, list[LocalUpdate]] = {}
        self._size = 0

    def add(self, update: Entry | LocalUpdate) -> None:
        """Add an update."""
        server = update.holder if isinstance(update, Entry) else update.server
        while update.incarnation > self._incarnations.get(server, 0):
            self.flush()
            known = self._incarnations.get(server, 0)
            self._log.replace(server, known)
            self._incarnations[server] = known + 1
        batch: list[Entry] | list[LocalUpdate]
        batch = self._entries if isinstance(update, Entry) else self._streams.setdefault(server, [])
        if len(batch) >= MOST_SHIPPED or self._size + size_of(update) > self._log.largest:
            self.flush()
            batch = self._entries if isinstance(update, Entry) else self._streams.setdefault(server, [])
        batch.append(update)  # type: ignore[arg-type]
        self._size += size_of(update)

    def flush(self) -> None:
        """Append everything. In the file, local updates come before the entries that depend on them."""
        for server, updates in self._streams.items():
            self._log.ship(server, updates)
        if self._entries:
            self._log.append(self._entries)
        self._entries, self._streams, self._size = [], {}, 0
