"""A recorded trace with its table: events and objects by name (Saissi 2019, Listings 6 and 7)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from plait._native import EpaTrace, epa_operations
from plait.epa.instrumentation.table import FORMAT, Site, Table
from plait.epa.run import RUN_FILE, Run
from plait.kernel.errors import TraceError

OPERATIONS = dict(epa_operations())
"""Names of synchronisation operations, by their numbers in traces."""
VALUE, LOAD, ALLOCA, ENTER, RETURN, LANDING = 1, 2, 4, 5, 6, 9
"""Kinds of events (`rust/src/epa/format.rs`)."""
_KINDS = {2: "load", 3: "store", 4: "alloca", 5: "enter", 6: "return", 7: "call", 8: "argument", 9: "landingpad",
          10: "memory", 11: "copy to", 14: "copy from"}  # fmt: skip
_GIVEN = 0x40000000
"""Globals with this number or a larger one come from outside of the program: argv, envp, streams, strings of argv."""
_CLASSES = {"pointer": 1, "word": 2}
_MIXING = ("mul", "udiv", "sdiv", "urem", "srem", "shl", "lshr", "ashr", "and", "or", "xor", "trunc")
_ALIGNED = 16
"""The alignment of all heap blocks: remainders of addresses up to this divisor are the same in each run."""
_NOT_EQUAL = 33
"""The number of this predicate in LLVM. The predicates of order have larger numbers."""

Word = tuple[str, int, int]
EventRow = tuple[int, int, bool, Word, Word]


def _rows(table: Table) -> tuple[list[Any], list[Any], list[Any]]:
    """Functions, pieces and formulas in the form that the native module takes."""
    return (
        [(f.first, f.count) for f in table.functions],
        [(p.function, p.steps) for p in table.pieces],
        [(f.op, f.bits, f.base, f.terms) for f in table.formulas],
    )


def _computes(site: Site) -> int:
    """Whether a result depends on addresses of objects: 0 never, 1 if its operands point to two objects, 2 always."""
    if site.op == "sub" or (site.op == "icmp" and site.index > _NOT_EQUAL):
        return 1
    if site.op not in _MIXING:
        return 0
    constant = site.shape[-1].lstrip("-") if site.shape else ""
    return 0 if site.op in ("and", "urem") and constant.isdigit() and int(constant) <= _ALIGNED else 2


class ThreadInfo(NamedTuple):
    """A thread of a trace, with its canonical name (Algorithm 5)."""

    name: str
    parent: int | None
    events: int
    ended: bool
    uid: int
    """The number of the file of the thread."""


class MemoryObject(NamedTuple):
    """A memory object (Algorithm 4): its name, and the parts that Listing 7 shows."""

    name: str
    kind: str
    base: int
    thread: str | None
    local: int
    size: int
    valid: tuple[int, int]


class Recording:
    """A trace folder, read and sanitized."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not folder.is_dir():
            raise TraceError(f"{folder} is not a trace", hint="give the folder that plait epa run wrote")
        try:
            self.table = msgspec.json.decode((folder / "table.json").read_bytes(), type=Table)
            if self.table.format != FORMAT:
                raise ValueError(f"its records have version {self.table.format}, not {FORMAT}")
            self.run = self._read_run()
            sites = [(_CLASSES.get(s.kind, 0), s.size, s.operands, s.parent, _computes(s)) for s in self.table.sites]
            self.native = EpaTrace(folder, sites, _rows(self.table))
        except (OSError, ValueError, msgspec.DecodeError) as error:
            raise TraceError(
                f"{folder} cannot be read: {error}", hint="build the program and record it again"
            ) from None
        self.threads = [ThreadInfo(*row) for row in self.native.threads()]
        self._modules = self.native.modules()

    def _read_run(self) -> Run | None:
        path = self.folder / RUN_FILE
        return msgspec.json.decode(path.read_bytes(), type=Run) if path.exists() else None

    @property
    def cuts(self) -> list[str]:
        """The missing parts of the trace: threads that did not end, and recordings that a full disk stopped."""
        full = {p.name.removeprefix("full-") for p in self.folder.glob("full-*")}
        found = []
        for thread in self.threads:
            if str(thread.uid) in full:
                found.append(f"{thread.name}: its trace ends where the disk was full")
            elif not thread.ended:
                why = self.run.ending if self.run else "the run was interrupted"
                found.append(f"{thread.name} did not end ({why}): its trace is complete up to this point")
        return found

    @property
    def output(self) -> bytes:
        """The output of the program."""
        path = self.folder / "stdout"
        return path.read_bytes() if path.exists() else b""

    def executions(self) -> list[tuple[str, int, int, int]]:
        """The number of values and of calls, by thread and site."""
        return [(self.threads[t].name, site, values, calls) for t, site, values, calls in self.native.executions()]

    def object(self, number: int) -> MemoryObject:
        """A memory object by its number."""
        kind, owner, site, nth, base, size, local, start, end = self.native.object(number)
        thread = self.threads[owner].name if owner is not None else None
        if kind == "global" and site >= _GIVEN:
            given = ("argv", "envp", "stdin", "stdout")
            number = site - _GIVEN
            name = given[number] if number < len(given) else f"argv[{number - len(given)}]"
        elif kind in ("global", "local"):
            name = self.table.globals[site].name or f"global{site}"
            name = name if kind == "global" else f"{thread}:{name}"
        elif kind == "library":
            name = self._modules[site]
        elif kind == "default":
            name = f"d{number}"
        else:
            made = self.table.site(site) if site else None
            if kind == "heap":
                label = f"{made.name or 'heap'}@{self.table.place(site)}" if made else "heap"
            else:
                label = (made.name if made else "") or f"stack@{self.table.place(site)}"
                label = label.removesuffix(".addr")
            name = f"{thread}:{label}#{nth}"
        return MemoryObject(name, kind, base, thread, local, size, (start, end))

    def objects(self) -> Iterator[MemoryObject]:
        """All memory objects, in the order of their creation."""
        for number in range(self.native.object_count):
            yield self.object(number)

    def word(self, word: Word, kind: str = "plain") -> str:
        """A value as text, as in sanitized traces."""
        tag, value, offset = word
        if tag == "object":
            name = self.object(value).name
            return f"{name}+{offset}" if offset else name
        if tag == "thread":
            return self.threads[value].name
        if tag == "unknown":
            return f"d{value}"
        if kind == "double":
            return repr(struct.unpack("d", struct.pack("Q", value))[0])
        if kind == "float":
            return repr(struct.unpack("f", struct.pack("I", value & 0xFFFFFFFF))[0])
        return f"{value:#x}" if kind in ("pointer", "opaque") and value else str(value)

    def text(self, row: EventRow) -> str:
        """An event as text, as in sanitized traces: its kind, its value, its operand."""
        number, kind, writes, a, b = row
        site = self.table.site(number) if number else None
        what = _KINDS.get(kind) or (site.op if site else "?")
        value_kind = site.kind if site else "plain"
        if kind == 2 or kind == 3:
            return f"{what} {self.word(b, value_kind)} {self.word(a, 'pointer')}"
        if kind == 4:
            return f"{what} {self.word(a)} {b[1]}"
        if kind in (5, 9):
            return f"{what} {site.name if site else ''}".rstrip()
        if kind == 7:
            called = site.name if site and site.name else self.word(a, "pointer")
            return f"call {called}"
        if kind == 8:
            index = site.index if site else 0
            return f"argument {index}: {self.word(a, value_kind)}"
        if kind in (10, 11, 14):
            what = ("write" if writes else "read") if kind == 10 else what
            return f"{what} {self.word(a, 'pointer')}, {b[1]} bytes"
        if kind == 6:
            return f"return {self.word(a, value_kind)}" if value_kind != "none" else "return"
        if site and site.op == "call":
            return f"result of {site.name or 'call'}: {self.word(a, value_kind)}"
        return f"{what} {self.word(a, value_kind)}"

    def merged(self, limit: int | None = None) -> Iterator[tuple[int, int, EventRow]]:
        """The events in the order of the whole run: thread, position in the thread, event."""
        reached = [0] * len(self.threads)
        shown = 0
        for thread, length, _, _ in self.native.runs():
            take = length if limit is None else min(length, limit - shown)
            start = reached[thread]
            for i, row in enumerate(self.native.events(thread, start, start + take)):
                yield thread, start + i, row
            reached[thread] += length
            shown += take
            if limit is not None and shown >= limit:
                return
