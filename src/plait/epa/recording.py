"""A recorded trace with its table: events and objects by name (Saissi 2019, Listings 6 and 7)."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from plait._native import EpaLines, EpaTrace, epa_operations, epa_summary
from plait.epa.instrumentation.table import FORMAT, Site, Table
from plait.epa.run import RUN_FILE, Run
from plait.kernel.errors import TraceError

OPERATIONS = dict(epa_operations())
"""Names of synchronisation operations, by their numbers in traces."""
VALUE, LOAD, STORE, ALLOCA, ENTER, RETURN, ARGUMENT, LANDING = 1, 2, 3, 4, 5, 6, 8, 9
"""Kinds of events (`rust/src/epa/format.rs`)."""
_CLASSES = {"pointer": 1, "word": 2}
_MIXING = (
    "mul",
    "udiv",
    "sdiv",
    "urem",
    "srem",
    "shl",
    "lshr",
    "ashr",
    "and",
    "or",
    "xor",
    "trunc",
    "uitofp",
    "sitofp",
)
_ALIGNED = 16
"""The alignment of all heap blocks: the low bits of addresses are the same in each run."""
_LEAST, _MOST = 1 << 16, 1 << 47
"""All addresses are between these numbers."""
_OFFSETS, _DISTANCE, _ANYTHING, _ORDER, _SUM = range(5)
"""Whether a result depends on addresses of objects (`Computes` in `rust/src/epa/recording.rs`)."""
_NOT_EQUAL = 33
"""The number of this predicate in LLVM. The predicates of order have larger numbers."""

_BLOCK = 10_000
"""The number of lines that are made at once."""

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
    """Whether a result depends on addresses of objects: never, in some cases, or always if an operand is an address."""
    numbers = [int(text) for text in site.shape if text.lstrip("-").isdigit()]
    if site.op == "icmp" and site.index > _NOT_EQUAL:
        return _ANYTHING if any(_LEAST <= number < _MOST for number in numbers) else _ORDER
    if site.op in ("add", "sub") and site.bits == 64:
        first_is_number = site.shape[:1] != [] and site.shape[0].lstrip("-").isdigit()
        return _SUM if site.op == "add" else _ANYTHING if first_is_number else _DISTANCE
    if site.op == "zext":
        return _ANYTHING if site.kind == "opaque" else _OFFSETS
    if site.op not in _MIXING:
        return _OFFSETS
    last = numbers[-1] if numbers and site.shape[-1] == str(numbers[-1]) else None
    keeps_low_bits = site.op == "and" and last is not None and -_ALIGNED <= last < _ALIGNED
    divides = site.op in ("urem", "srem") and last is not None and 0 < last <= _ALIGNED and _ALIGNED % last == 0
    return _OFFSETS if keeps_low_bits or divides else _ANYTHING


def _sites(table: Table) -> list[tuple[int, int, list[int], int, int]]:
    return [(_CLASSES.get(s.kind, 0), s.size, s.operands, s.parent, _computes(s)) for s in table.sites]


def _table(folder: Path) -> Table:
    table = msgspec.json.decode((folder / "table.json").read_bytes(), type=Table)
    if table.format != FORMAT:
        raise ValueError(f"its records have version {table.format}, not {FORMAT}")
    return table


def _result(folder: Path) -> Run | None:
    path = folder / RUN_FILE
    return msgspec.json.decode(path.read_bytes(), type=Run) if path.exists() else None


@contextmanager
def _readable(folder: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, msgspec.DecodeError) as error:
        raise TraceError(f"{folder} cannot be read: {error}", hint="build the program and record it again") from None


def _cuts(folder: Path, threads: Iterable[tuple[str, bool, int]], run: Run | None) -> list[str]:
    full = {p.name.removeprefix("full-") for p in folder.glob("full-*")}
    found = []
    for name, ended, uid in threads:
        if str(uid) in full:
            found.append(f"{name}: its trace ends where the disk was full")
        elif not ended:
            why = run.ending if run else "the run was interrupted"
            found.append(f"{name} did not end ({why}): its trace is complete up to this point")
    return found


class Overview(NamedTuple):
    """The extent of a trace. It is known without sanitizing the trace."""

    table: Table
    records: int
    threads: int
    cuts: list[str]
    struck: bool
    """Whether a fault was injected."""


def overview(folder: Path) -> Overview:
    """Count the records of a trace, without reading its events."""
    with _readable(folder):
        table = _table(folder)
        records, threads, struck = epa_summary(folder, _sites(table), _rows(table))
        return Overview(table, records, len(threads), _cuts(folder, threads, _result(folder)), struck)


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
        with _readable(folder):
            self.table = _table(folder)
            self.run = _result(folder)
            self.native = EpaTrace(folder, _sites(self.table), _rows(self.table))
        self.threads = [ThreadInfo(*row) for row in self.native.threads()]
        self._labelled = False

    def place(self, site: int) -> str:
        """The place of a site in the source."""
        return self.table.place(site)

    @property
    def cuts(self) -> list[str]:
        """The missing parts of the trace: threads that did not end, and recordings that a full disk stopped."""
        return _cuts(self.folder, [(t.name, t.ended, t.uid) for t in self.threads], self.run)

    @property
    def output(self) -> bytes:
        """The output of the program."""
        path = self.folder / "stdout"
        return path.read_bytes() if path.exists() else b""

    def executions(self) -> list[tuple[str, int, int, int]]:
        """The number of values and of calls, by thread and site."""
        return [(self.threads[t].name, site, values, calls) for t, site, values, calls in self.native.executions()]

    @property
    def text_source(self) -> EpaTrace:
        """The native trace, which knows the names of sites and globals from the first use of this property on."""
        if not self._labelled:
            table = self.table
            sites = [
                (s.op, s.function, s.kind, s.name, s.index, s.shape, table.place(n))
                for n, s in enumerate(table.sites, 1)
            ]
            self.native.label(sites, [g.name for g in table.globals])
            self._labelled = True
        return self.native

    def object(self, number: int) -> MemoryObject:
        """A memory object by its number."""
        kind, owner, _, _, base, size, local, start, end = self.native.object(number)
        thread = self.threads[owner].name if owner is not None else None
        return MemoryObject(self.text_source.object_name(number), kind, base, thread, local, size, (start, end))

    def objects(self) -> Iterator[MemoryObject]:
        """All memory objects, in the order of their creation."""
        for number in range(self.native.object_count):
            yield self.object(number)

    def word(self, word: Word, kind: str = "plain") -> str:
        """A value as text, as in sanitized traces."""
        return self.text_source.word_text(word, kind)

    def text(self, row: EventRow) -> str:
        """An event as text, as in sanitized traces: its kind, its value, its operand."""
        return self.text_source.event_text(row)

    def lines(self, thread: str | None = None, limit: int | None = None) -> Iterator[str]:
        """The events in the order of the whole run, in blocks of lines: number, thread, event, operands, place."""
        only = [t.name for t in self.threads].index(thread) if thread is not None else None
        source = EpaLines(self.text_source, only)
        rest = limit if limit is not None else sys.maxsize
        while block := source.take(min(rest, _BLOCK)):
            yield block
            rest -= _BLOCK
            if rest <= 0:
                return

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
