"""`plait epa compare`: deviations of a faulty run from the golden run, their spread (Saissi 2019, section 5.4.3)."""

from __future__ import annotations

import time

import msgspec

from plait._native import ComparisonReport, ThreadDifference
from plait.epa.recording import EventRow, Recording
from plait.kernel.errors import UsageError
from plait.kernel.trace import Event, Lane, Sent, Snapshot, Trace
from plait.kernel.verdict import PropertyResult, Statistics, Verdict

_CONTEXT = 4
_SHOWN = 60
"""The maximal number of nodes of the propagation graph in a trace."""


class Line(msgspec.Struct, frozen=True):
    """Two events side by side; one may be missing."""

    golden: str | None
    faulty: str | None
    place: str
    differs: bool


class Deviation(msgspec.Struct, frozen=True):
    """The deviation of a thread."""

    thread: str
    first: Line | None
    index: int | None
    """The position of the first deviating event in the golden thread (in the faulty one, if only it has the event)."""
    parted: bool
    """Whether the thread took a different path."""
    changed: int
    missing: int
    extra: int
    lines: list[Line]
    """The events around the first deviation."""


class Spot(msgspec.Struct, frozen=True):
    """A node of the propagation graph: an instruction of a thread, and the number of its deviating executions."""

    thread: str
    site: int
    what: str
    place: str
    events: int
    root: bool


class Link(msgspec.Struct, frozen=True):
    """An edge of the propagation graph: the error spread from one spot to another."""

    source: int
    target: int
    via: str
    object: str | None
    times: int
    across: bool
    """Whether the edge goes from one thread to another."""


class Comparison(msgspec.Struct, frozen=True):
    """The result of a comparison."""

    verdict: Verdict
    equal: bool
    golden: str
    faulty: str
    fault: str | None
    ending: str
    output_differs: bool
    threads: list[Deviation]
    spots: list[Spot]
    links: list[Link]


def compare(golden: Recording, faulty: Recording) -> Comparison:
    """Compare two traces of one program."""
    started = time.perf_counter()
    if golden.table != faulty.table:
        raise UsageError(
            f"{golden.folder} and {faulty.folder} are traces of different programs",
            hint="record both traces with the same binary",
        )
    found = golden.native.compare(faulty.native)
    threads = [_deviation(golden, faulty, row) for row in found.threads]
    spots, links = _graph(faulty, found)
    equal = found.equal
    struck = faulty.run.fault if faulty.run else None
    verdict = Verdict(
        status="holds" if equal else "violated",
        statistics=Statistics(
            states=golden.native.records + faulty.native.records,
            transitions=sum(t.changed for t in threads),
            terminal_states=0,
            depth=0,
            seconds=time.perf_counter() - started,
            python_calls=0,
            search="comparison",
            workers=1,
        ),
        properties=[PropertyResult("equal traces", "always", "holds" if equal else "violated")],
        model=str(faulty.folder),
        property=None if equal else "equal traces",
        message=None if equal else f"{sum(t.first is not None for t in threads)} of {len(threads)} threads deviate",
        trace=None if equal else _trace(faulty, spots, links),
    )
    return Comparison(
        verdict=verdict,
        equal=equal,
        golden=str(golden.folder),
        faulty=str(faulty.folder),
        fault=struck.text if struck else None,
        ending=faulty.run.ending if faulty.run else "unknown",
        output_differs=golden.output != faulty.output,
        threads=threads,
        spots=spots,
        links=links,
    )


def _deviation(golden: Recording, faulty: Recording, row: ThreadDifference) -> Deviation:
    first = row.first
    lines: list[Line] = []
    main: Line | None = None
    if first is not None:
        i, j = first
        for step in range(-_CONTEXT, _CONTEXT + 1):
            line = _line(golden, faulty, row, None if i is None else i + step, None if j is None else j + step, step)
            if line is not None:
                lines.append(line)
                main = line if step == 0 else main
    index = None if first is None else first[0] if first[0] is not None else first[1]
    return Deviation(
        thread=row.name,
        first=main,
        index=index,
        parted=row.parted is not None,
        changed=row.changed,
        missing=row.missing,
        extra=row.extra,
        lines=lines,
    )


def _line(
    golden: Recording, faulty: Recording, row: ThreadDifference, i: int | None, j: int | None, step: int
) -> Line | None:
    one = _event(golden, row.golden, i)
    other = _event(faulty, row.faulty, j)
    if one is None and other is None:
        return None
    left = golden.text(one) if one else None
    right = faulty.text(other) if other else None
    site = (one or other or (0,))[0]
    return Line(left, right, golden.table.place(site) if site else "", step >= 0 and left != right)


def _event(recording: Recording, thread: int | None, at: int | None) -> EventRow | None:
    if thread is None or at is None or at < 0:
        return None
    found = recording.native.events(thread, at, at + 1)
    return found[0] if found else None


def _graph(faulty: Recording, found: ComparisonReport) -> tuple[list[Spot], list[Link]]:
    """The nodes in the order of their first deviation, and the edges between them."""
    numbers: dict[tuple[int, int], int] = {}
    spots: list[Spot] = []
    for thread, site, events, root in found.nodes:
        numbers[thread, site] = len(spots)
        table = faulty.table
        spots.append(Spot(faulty.threads[thread].name, site, table.words(site), table.place(site), events, root))
    links = [
        Link(
            source=numbers[source],
            target=numbers[target],
            via=via,
            object=faulty.object(number).name if number is not None else None,
            times=times,
            across=source[0] != target[0],
        )
        for source, target, via, number, times in found.edges
        if source in numbers and target in numbers
    ]
    return spots, links


def _trace(faulty: Recording, spots: list[Spot], links: list[Link]) -> Trace:
    """The propagation as a Trace: each spot is an event, and each edge between threads is a message."""
    shown = spots[:_SHOWN]
    sent: dict[int, list[int]] = {}
    taken: dict[int, list[int]] = {}
    messages: list[Sent] = []
    for link in links:
        if link.across and link.source < link.target < len(shown):
            number = len(messages)
            fields = {"object": link.object, "times": link.times}
            sender, receiver = spots[link.source].thread, spots[link.target].thread
            messages.append(Sent(number, link.via, fields, sender, receiver))
            sent.setdefault(link.source, []).append(number)
            taken.setdefault(link.target, []).append(number)
    empty = Snapshot(fields={t.name: {} for t in faulty.threads})
    events = [
        Event(
            lane=spot.thread,
            kind="step",
            label=f"{spot.what} ({spot.place})",
            state=empty,
            consumed=taken.get(i, []),
            sent=sent.get(i, []),
            note="the fault" if spot.root else f"{spot.events:,} deviating executions",
        )
        for i, spot in enumerate(shown)
    ]
    return Trace(
        target=str(faulty.folder),
        parameters={},
        property="equal traces",
        lanes=[Lane(t.name, "thread") for t in faulty.threads],
        messages=messages,
        initial=empty,
        events=events,
        explanation="The spread of the error: instructions in the order in which it reached them.",
    )


def path_to_output(comparison: Comparison) -> list[int]:
    """The spots on a shortest path from the fault to a call that prints, or else to the last spot."""
    following: dict[int, list[int]] = {}
    for link in comparison.links:
        following.setdefault(link.source, []).append(link.target)
    roots = [i for i, spot in enumerate(comparison.spots) if spot.root] or [0] * bool(comparison.spots)
    came: dict[int, int] = dict.fromkeys(roots, -1)
    queue = list(roots)
    goal = None
    for here in queue:
        what = comparison.spots[here].what
        if any(name in what for name in ("printf", "puts", "fwrite", "putchar", "write")):
            goal = here
            break
        for there in following.get(here, []):
            if there not in came:
                came[there] = here
                queue.append(there)
    if goal is None and queue:
        goal = max(queue)
    path = []
    while goal is not None and goal != -1:
        path.append(goal)
        goal = came[goal]
    return path[::-1]
