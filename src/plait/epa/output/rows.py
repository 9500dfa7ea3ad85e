"""Events and results as CSV files, for pandas, DuckDB or a spreadsheet: `pandas.read_csv(file)`."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from plait.epa.campaign import Result
from plait.epa.recording import LOAD, STORE, VALUE, EventRow, Recording

EVENTS = [
    "position",
    "thread",
    "index",
    "site",
    "opcode",
    "function",
    "file",
    "line",
    "value",
    "address",
    "event",
    "fault",
]
"""The columns of an event: `position` is that in the whole run, `index` that in the thread."""
RESULTS = [
    "run",
    "type",
    "site",
    "thread",
    "nth",
    "value",
    "place",
    "outcome",
    "deviates",
    "propagates",
    "struck",
    "seconds",
    "replay_ended",
]


def write_events(recording: Recording, file: Path, thread: str | None = None) -> int:
    """Write the events of a trace, or of one of its threads, and return their number."""
    return _write(file, EVENTS, _events(recording, thread))


def write_results(results: Sequence[Result], file: Path) -> int:
    """Write the runs of a campaign, and return their number."""
    ordered = sorted(results, key=lambda r: r.index)
    return _write(file, RESULTS, (_result(r) for r in ordered))


def _write(file: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
    count = 0
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(head)
        for row in rows:
            writer.writerow(row)
            count += 1
    return count


def _events(recording: Recording, wanted: str | None) -> Iterator[Sequence[Any]]:
    faults = {(t, event) for t, event, *_ in recording.native.faults()}
    for position, (thread, index, row) in enumerate(recording.merged()):
        name = recording.threads[thread].name
        if wanted in (None, name):
            described = _described(recording, row)
            yield [position, name, index, *described, int((thread, index) in faults)]


def _described(recording: Recording, row: EventRow) -> list[Any]:
    number, kind, _, a, b = row
    shown = recording.text(row)
    if not number:
        return ["", "", "", "", "", "", "", shown]
    site = recording.table.site(number)
    value = address = ""
    if kind in (LOAD, STORE):
        value, address = recording.word(b, site.kind), recording.word(a, "pointer")
    elif kind == VALUE or site.op == "argument":
        value = recording.word(a, site.kind)
    return [number, site.op, site.function, site.file, site.line, value, address, shown]


def _result(r: Result) -> list[Any]:
    f = r.fault
    flags = [int(r.deviates), int(r.propagates), int(r.struck)]
    return [
        r.index,
        f.type,
        f.site,
        f.thread,
        f.nth,
        f.value,
        r.place,
        r.outcome,
        *flags,
        r.seconds,
        r.replay.words if r.replay else "",
    ]
