"""Replay: a run takes the order of locks and the results of chance from a golden run (`recorder/replay.c`).

`write` collects what the golden run recorded in one file. A replayed run follows it until it diverges, and its trace says
where replay ended. docs/reference/epa.md states and proves what this guarantees.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from plait.epa.recording import Recording
from plait.epa.run import order_digest
from plait.kernel.errors import TraceError, UsageError

_MAGIC = 0x5245504C41593031
_HEAD, _LANE, _TURN = struct.Struct("<6Q"), struct.Struct("<5Q"), struct.Struct("<QIIQ")
_STALL = 10.0
"""The least number of seconds after which replay of a single run ends, if a thread does not come to its turn."""
_REASONS = {
    "operation": "it performs another operation on a lock, an atomic variable or a file than in the golden run",
    "lock": "a lock or a semaphore is not free that was free in the golden run",
    "call": "it makes another call whose result is replayed than in the golden run",
    "end": "it ends earlier than in the golden run",
    "thread": "the golden run has no such thread",
    "stalled": "the thread whose turn it is does not come in time",
}


class Ending(msgspec.Struct, frozen=True):
    """The end of replay, before the end of the run."""

    thread: str
    number: int
    """The value of the global counter then."""
    site: int
    reason: str

    @property
    def diverged(self) -> bool:
        """Whether a thread did something else than in the golden run. False: a time limit was reached."""
        return self.reason != "stalled"

    @property
    def words(self) -> str:
        """The reason, in words.

        >>> Ending("T_0_1", 7, 3, "end").words
        'T_0_1: it ends earlier than in the golden run'
        """
        return f"{self.thread}: {_REASONS.get(self.reason, self.reason)}"


def write(golden: Recording, file: Path, *, stall: float) -> None:
    """Write what a replayed run needs. `stall`: the number of seconds after which a missing thread ends replay."""
    if golden.run is not None and golden.run.replay is not None:
        raise UsageError(
            f"{golden.folder} is a replayed run: it has no results of its own",
            hint="replay the golden run that this run replayed",
        )
    if golden.cuts:
        raise UsageError(f"{golden.folder} is not complete: {golden.cuts[0]}", hint="record the golden run again")
    file.write_bytes(_content(golden, stall))


def _content(golden: Recording, stall: float) -> bytes:
    turns = golden.native.turns()
    names = [thread.name for thread in golden.threads]
    own: list[list[bytes]] = [[] for _ in names]
    for number, (owner, op, site, extra) in enumerate(turns):
        own[owner].append(_TURN.pack(number, op, site, extra))
    owners = struct.pack(f"<{len(turns)}I", *(turn[0] for turn in turns))
    owners += bytes(-len(owners) % 8)
    at = _HEAD.size + _LANE.size * len(names)
    head = _HEAD.pack(_MAGIC, int(1000 * stall), len(turns), at, len(names), _HEAD.size)
    parts, lanes = [owners], []
    at += len(owners)
    for thread, steps in zip(golden.threads, own, strict=True):
        results = _results(golden.folder / f"chance-{thread.uid}")
        name = thread.name.encode() + b"\0"
        name += bytes(-len(name) % 8)
        place = at + len(name)
        lanes.append(_LANE.pack(at, place, len(steps), place + _TURN.size * len(steps), len(results)))
        parts += [name, *steps, results]
        at = place + _TURN.size * len(steps) + len(results)
    return b"".join([head, *lanes, *parts])


def _results(file: Path) -> bytes:
    return file.read_bytes() if file.exists() else b""


def identity(golden: Recording) -> str:
    """A digest of the order and the results of a run. A replayed run has the one of its golden run."""
    if golden.run is not None and golden.run.replay is not None:
        return golden.run.replay
    return order_digest(_content(golden, 0))


def identity_of_file(file: Path) -> str:
    """The same digest, of a file that `write` wrote."""
    content = file.read_bytes()
    if len(content) < _HEAD.size or _HEAD.unpack_from(content)[0] != _MAGIC:
        raise UsageError(f"{file} cannot be replayed", hint="give the folder of a golden trace, or a file FILE.order")
    return order_digest(content)


@contextmanager
def order_of(golden: Path | None, folder: Path) -> Iterator[Path | None]:
    """The file that a single replayed run in a folder follows. `golden` is a trace, or a file that `write` wrote."""
    if golden is None:
        yield None
        return
    if golden.resolve() == folder.resolve():
        raise UsageError(f"{folder} is the golden run: it would be replaced", hint="choose another folder")
    with tempfile.NamedTemporaryFile(prefix="plait-epa-", suffix=".order") as file:
        if golden.is_file():
            with_limit(golden, Path(file.name), stall=_STALL)
        else:
            found = Recording(golden)
            write(found, Path(file.name), stall=max(_STALL, 20 * (found.run.seconds if found.run else 0.0)))
        yield Path(file.name)


def with_limit(file: Path, target: Path, *, stall: float) -> None:
    """Copy a file that `write` wrote, with another time limit."""
    identity_of_file(file)
    content = file.read_bytes()
    target.write_bytes(content[:8] + struct.pack("<Q", int(1000 * stall)) + content[16:])


def ending(folder: Path) -> Ending | None:
    """Where replay ended in a run, if it ended before the run."""
    file = folder / "replay"
    if not file.exists():
        return None
    words = file.read_text(encoding="utf-8", errors="replace").split()
    if len(words) < 4 or not (words[1].isdigit() and words[2].isdigit()):
        raise TraceError(f"{file} cannot be read", hint="record the run again")
    return Ending(words[0], int(words[1]), int(words[2]), words[3])
