"""Traces for Perfetto and chrome://tracing: calls are slices on lanes of threads, faults and synchronisation are marks.

The time of an event is its position in the whole run, because recorded traces have an order but no times.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from plait.epa.recording import OPERATIONS, Recording

_ENTER, _RETURN = 5, 6


def chrome_events(recording: Recording) -> Iterator[dict[str, Any]]:
    """The events of the Trace Event Format."""
    table = recording.table
    program = recording.run.program if recording.run else str(recording.folder)
    yield {"ph": "M", "pid": 1, "tid": 0, "name": "process_name", "args": {"name": program}}
    for i, info in enumerate(recording.threads):
        yield {"ph": "M", "pid": 1, "tid": i, "name": "thread_name", "args": {"name": info.name}}
        yield {"ph": "M", "pid": 1, "tid": i, "name": "thread_sort_index", "args": {"sort_index": i}}
    faults = {(t, event) for t, event, *_ in recording.native.faults()}
    reached = [0] * len(recording.threads)
    depth = [0] * len(recording.threads)
    clock = 0
    for thread, length, sync, _ in recording.native.runs():
        if sync:
            yield {"ph": "i", "pid": 1, "tid": thread, "ts": clock, "s": "t", "name": OPERATIONS[sync]}
            clock += 1
        start = reached[thread]
        for k, (site, kind, _, _, _) in enumerate(recording.native.events(thread, start, start + length)):
            clock += 1
            base = {"pid": 1, "tid": thread, "ts": clock}
            if (thread, start + k) in faults:
                yield {**base, "ph": "i", "s": "g", "name": f"fault: {table.words(site)} ({table.place(site)})"}
            if kind == _ENTER:
                depth[thread] += 1
                yield {**base, "ph": "B", "name": table.site(site).function, "args": {"place": table.place(site)}}
            elif kind == _RETURN and depth[thread]:
                depth[thread] -= 1
                yield {**base, "ph": "E"}
        reached[thread] += length
    for i, open_calls in enumerate(depth):
        for _ in range(open_calls):
            yield {"ph": "E", "pid": 1, "tid": i, "ts": clock}


def write_chrome(recording: Recording, file: Path) -> int:
    """Write the file, and return the number of its events."""
    count = 0
    with file.open("wb") as out:
        out.write(b'{"traceEvents":[')
        for event in chrome_events(recording):
            out.write((b",\n" if count else b"\n") + msgspec.json.encode(event))
            count += 1
        out.write(b"\n]}\n")
    return count
