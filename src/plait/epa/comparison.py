"""`plait epa compare`: deviations of a faulty run from the golden run, their spread (Saissi 2019, section 5.4.3)."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from plait._native import ComparisonReport, ThreadDifference
from plait.epa.oracle import Oracle, results
from plait.epa.recording import EventRow, Recording
from plait.epa.replay import Ending, ending, identity
from plait.epa.reversibility import Reversibility, check
from plait.kernel.errors import UsageError
from plait.kernel.trace import Event, Lane, Sent, Snapshot, Trace
from plait.kernel.verdict import PropertyResult, Statistics, Status, Verdict

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
    certain: bool = True
    """Whether the first deviation is an effect of the fault. False: replay ended before it, so it may be one of chance."""


class Spot(msgspec.Struct, frozen=True):
    """A node of the propagation graph: an instruction of a thread, and the number of its deviating executions."""

    thread: str
    site: int
    what: str
    place: str
    events: int
    root: bool
    missing: int = 0
    """The number of writes that only the golden run performs."""

    @property
    def times(self) -> str:
        """The number of deviating executions, in words.

        >>> Spot("T_0", 1, "store", "a.c:3", 0, False, 2).times
        '2x missing'
        """
        shown = [f"{self.events:,}x"] if self.events or not self.missing else []
        return ", ".join(shown + ([f"{self.missing:,}x missing"] if self.missing else []))


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
    comparable: bool
    """Whether it is proven that each deviation comes from the fault."""
    doubts: list[str]
    """The reasons why this is not proven."""
    proof: Reversibility
    """The check of the golden run."""
    golden: str
    faulty: str
    fault: str | None
    ending: str
    output_differs: bool
    differences: list[str]
    """The results that differ: stdout, stderr, file NAME."""
    threads: list[Deviation]
    spots: list[Spot]
    links: list[Link]
    gaps: list[str]
    """External functions that deviating values reached: errors are not followed inside of them, nor through files."""
    replay_ended: Ending | None = None
    """Where replay ended, if the runs are comparable only with replay. Later deviations may be effects of chance."""


def proof_for(golden: Recording, faulty: Recording, **options: Any) -> Reversibility:
    """The check of the golden run that a comparison needs. `options` are those of `check`.

    If the faulty run replayed the golden run, it is enough that all replayed runs are comparable.
    """
    found = check(golden, **options)
    replayed = faulty.run is not None and faulty.run.replay is not None and faulty.run.replay == identity(golden)
    return found if found.verdict or not replayed else check(golden, replay=True, **options)


def compare(
    golden: Recording, faulty: Recording, *, proof: Reversibility | None = None, require: bool = True
) -> Comparison:
    """Compare two traces of one program. `proof` is the check of the golden run, if it is known.

    If it is not proven that deviations come from the fault, the verdict is inconclusive and no deviation is shown.
    Without `require`, deviations are shown with a warning.
    """
    started = time.perf_counter()
    if golden.table != faulty.table:
        raise UsageError(
            f"{golden.folder} and {faulty.folder} are traces of different programs",
            hint="record both traces with the same binary",
        )
    proof = proof or proof_for(golden, faulty)
    doubts = _doubts(golden, faulty, proof)
    ended = ending(faulty.folder) if proof.replay else None
    before = faulty.native.events_before(ended.number) if ended else None
    threads: list[Deviation] = []
    spots: list[Spot] = []
    links: list[Link] = []
    if doubts and require:
        equal, _ = golden.native.outcome(faulty.native)
    else:
        found = golden.native.compare(faulty.native)
        threads = [_deviation(golden, faulty, row, before) for row in found.threads]
        spots, links = _graph(golden, faulty, found)
        equal = found.equal
    status: Status = "holds" if equal else "violated"
    bound = None
    if doubts and require:
        status, bound = "inconclusive", f"not comparable: {doubts[0]}"
    struck = faulty.run.fault if faulty.run else None
    differences = Oracle().differences(results(golden.folder), results(faulty.folder))
    message = f"{sum(t.first is not None for t in threads)} of {len(threads)} threads deviate"
    verdict = Verdict(
        status=status,
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
        properties=[PropertyResult("equal traces", "always", status)],
        model=str(faulty.folder),
        property="equal traces" if status == "violated" else None,
        message=message if status == "violated" else None,
        bound=bound,
        trace=_trace(golden, faulty, spots, links) if status == "violated" else None,
        warnings=[f"not comparable: {doubt}; deviations may have other causes than the fault" for doubt in doubts],
    )
    return Comparison(
        verdict=verdict,
        equal=equal,
        comparable=not doubts,
        doubts=doubts,
        proof=proof,
        golden=str(golden.folder),
        faulty=str(faulty.folder),
        fault=struck.text if struck else None,
        ending=faulty.run.ending if faulty.run else "unknown",
        output_differs=bool(differences),
        differences=differences,
        threads=threads,
        spots=spots,
        links=links,
        gaps=_gaps(faulty, spots),
        replay_ended=ended,
    )


def _gaps(faulty: Recording, spots: list[Spot]) -> list[str]:
    table = faulty.table
    defined = {g.name for g in table.globals if g.kind == "function"} | {"", "memcpy", "memmove"}
    sites = [table.site(spot.site) for spot in spots]
    return sorted({s.name for s in sites if s.op == "argument" and s.name not in defined and "llvm." not in s.name})


def _doubts(golden: Recording, faulty: Recording, proof: Reversibility) -> list[str]:
    """Reasons why two traces may differ without a fault."""
    found = []
    if proof.verdict.status == "violated":
        found.append(f"the golden run is not pseudo-deterministic: {proof.verdict.message}")
    elif not proof.verdict:
        found.append(f"the golden run is not proven to be pseudo-deterministic: {proof.verdict.bound}")
    if proof.replay and not (faulty.run and faulty.run.replay == identity(golden)):
        found.append("the golden run is comparable only with runs that replay it (plait epa run --replay)")
    if golden.run and faulty.run and golden.run.arguments != faulty.run.arguments:
        given = " and ".join(" ".join(run.arguments) or "none" for run in (golden.run, faulty.run))
        found.append(f"the runs have different arguments: {given}")
    if golden.run and faulty.run and golden.run.input != faulty.run.input:
        found.append("the runs have different standard inputs")
    return found


def _deviation(golden: Recording, faulty: Recording, row: ThreadDifference, before: list[int] | None) -> Deviation:
    """The deviation of a thread. `before`: the number of events of each faulty thread before the end of replay."""
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
    certain = True
    if before is not None and first is not None:
        place = first[1] if first[1] is not None else first[0]
        certain = row.faulty is not None and place is not None and place < before[row.faulty]
    return Deviation(
        thread=row.name,
        first=main,
        index=index,
        parted=row.parted is not None,
        changed=row.changed,
        missing=row.missing,
        extra=row.extra,
        lines=lines,
        certain=certain,
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


def _graph(golden: Recording, faulty: Recording, found: ComparisonReport) -> tuple[list[Spot], list[Link]]:
    """The nodes in the order of their first deviation, and the edges between them."""
    numbers: dict[tuple[int, int], int] = {}
    spots: list[Spot] = []
    names = [t.name for t in [*faulty.threads, *golden.threads]]
    table = faulty.table
    for thread, site, events, root, missing in found.nodes:
        numbers[thread, site] = len(spots)
        spots.append(Spot(names[thread], site, table.words(site), table.place(site), events, root, missing))
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


def _trace(golden: Recording, faulty: Recording, spots: list[Spot], links: list[Link]) -> Trace:
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
    # Threads that the error did not reach have no lane.
    reached = {spot.thread for spot in shown}
    lanes = [name for name in dict.fromkeys(t.name for t in [*faulty.threads, *golden.threads]) if name in reached]
    empty = Snapshot(fields={name: {} for name in lanes})
    events = [
        Event(
            lane=spot.thread,
            kind="step",
            label=f"{spot.what} ({spot.place})",
            state=empty,
            consumed=taken.get(i, []),
            sent=sent.get(i, []),
            note="the fault" if spot.root else f"deviating executions: {spot.times}",
        )
        for i, spot in enumerate(shown)
    ]
    return Trace(
        target=str(faulty.folder),
        parameters={},
        property="equal traces",
        lanes=[Lane(name, "thread") for name in lanes],
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
