"""`plait epa reversible`: check that a trace is pseudo-deterministic (Saissi 2019, Definition 5).

Condition 2 (no two dependent events can occur in reversed order) is decided in Rust. Z3 decides the few pairs that
remain open. `determinism.py` decides condition 1 (local determinism).
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from plait._native import ReversibilityReport, UnorderedPair
from plait.epa.determinism import doubts
from plait.epa.events import settle
from plait.epa.instrumentation.effects import UNFOLLOWED
from plait.epa.recording import OPERATIONS, Recording
from plait.kernel.trace import Event, Lane, Snapshot, Trace
from plait.kernel.verdict import PropertyResult, Statistics, Verdict

_STDERR = (1 << 63) | 2
"""The number of the standard error among files (`recorder.c`)."""
_ORDERS = 20
"""The maximal number of reversible pairs of which the needed orders are listed."""
_PLACES = 3
_SHOWN = 40
"""The maximal number of events of a permuted schedule in a trace."""


class Witness(msgspec.Struct, frozen=True):
    """Two dependent events that can occur in reversed order."""

    object: str
    first: str
    second: str
    first_place: str
    second_place: str
    locks: list[str]
    """The locks that both threads hold at the two events."""
    schedule: list[str]
    """Synchronisation events in an order that reverses the two events."""
    advice: str


class Reversibility(msgspec.Struct, frozen=True):
    """The result of the check."""

    verdict: Verdict
    witnesses: list[Witness]
    nondeterministic: list[str]
    """What the input does not determine: calls and others, with their places."""
    unseen: list[str]
    """Executed external code of which nothing is known: the verdict is inconclusive."""
    assumptions: list[str]
    """What the verdict assumes."""
    dependencies: int
    shared_objects: int
    objects: int
    settled_by_solver: int
    loose: list[str]
    """Threads that may still run when the program ends."""
    replay: bool = False
    """Whether the verdict is about replayed runs only."""
    needs: list[str] = []
    """What replay must repeat: the order of locks, results of calls."""


def decide(
    recording: Recording, *, replay: Literal["auto", "always", "never"] = "auto", **options: Any
) -> Reversibility:
    """Check a trace without replay, and with replay if that fails. `options` are those of `check`."""
    if replay == "always":
        return check(recording, replay=True, **options)
    found = check(recording, **options)
    return found if found.verdict or replay == "never" else check(recording, replay=True, **options)


def check(
    recording: Recording,
    *,
    benign_same_value: bool = False,
    allow: Iterable[str] = (),
    nondeterministic: Iterable[str] = (),
    limit: int = 5,
    replay: bool = False,
) -> Reversibility:
    """Check a trace. `nondeterministic` adds functions to the list of nondeterministic ones, `allow` removes them.

    With `replay`, the verdict is about runs that replay this one: critical sections and ordered operations keep their
    order, and results of calls are repeated.
    """
    started = time.perf_counter()
    allow = frozenset(allow)
    ignored = [_STDERR] if "stderr" in allow else []
    report = recording.native.reversible(
        benign_same_value=benign_same_value, limit=limit, ignored=ignored, replay=replay
    )
    open_pairs = sum(pair.schedule is None for pair in report.pairs)
    unfollowed = _unfollowed(recording)
    # Without the synchronisation of a library, pairs look unordered that are not.
    settled = [] if unfollowed else settle(report)
    certain = [(pair, schedule) for pair, schedule in settled if schedule is not None]
    witnesses = [_witness(recording, report, pair, schedule) for pair, schedule in certain]
    calls, unseen, assumptions, replayed = doubts(recording, nondeterministic, allow, replay=replay)
    loose = [] if unfollowed else sorted({recording.threads[t].name for t in report.loose})
    bound = None
    if recording.cuts:
        bound = "the trace was cut off: " + recording.cuts[0]
    elif unfollowed:
        bound = unfollowed
    elif report.overflow:
        bound = "the trace has too many unordered pairs of events"
    elif len(certain) < len(settled):
        bound = "Z3 did not decide a pair of events in time"
    elif unseen:
        bound = f"nothing is known of {', '.join(unseen)}"
    properties = [
        _property("reversibility", bool(certain), bound, f"{report.dependencies:,} dependent pairs"),
        _property(
            "local determinism", bool(calls), bound, ", ".join(calls) or "no call of a nondeterministic function"
        ),
    ]
    if loose:
        note = f"{', '.join(loose)}: not joined before the program ends; another schedule may omit its last events"
        properties.append(PropertyResult("all threads end", "always", "violated", note))
    trace = _trace(recording, report, *certain[0]) if certain else None
    broken = next((p.name for p in properties if p.status == "violated"), None)
    statistics = Statistics(
        states=recording.native.records,
        transitions=report.dependencies,
        terminal_states=0,
        depth=report.rounds,
        seconds=time.perf_counter() - started,
        python_calls=0,
        search="vector clocks",
        workers=1,
    )
    verdict = Verdict(
        status="violated" if broken else "inconclusive" if bound else "holds",
        statistics=statistics,
        properties=properties,
        model=str(recording.folder),
        property=broken,
        message=_message(broken, witnesses, calls) or (properties[-1].note if broken else None),
        bound=bound,
        trace=trace,
        warnings=list(report.warnings),
    )
    shared = recording.native.shared_objects
    needs: list[str] = []
    if replay and verdict:
        free = recording.native.reversible(benign_same_value=benign_same_value, limit=_ORDERS, ignored=ignored)
        needs = [*_orders(recording, free), *_calls(replayed)]
    return Reversibility(
        verdict,
        witnesses,
        calls,
        unseen,
        assumptions,
        report.dependencies,
        shared,
        recording.native.object_count,
        open_pairs,
        loose,
        replay,
        needs,
    )


def _orders(recording: Recording, free: ReversibilityReport) -> list[str]:
    """The orders that replay must repeat: what could be reversed without it."""
    found: dict[str, dict[str, None]] = {}
    for pair in free.pairs:
        if pair.schedule is not None:
            witness = _witness(recording, free, pair, pair.schedule)
            what = f"of lock {', '.join(witness.locks)}" if witness.locks else f"of accesses to {witness.object}"
            found.setdefault(what, {}).update({witness.first_place: None, witness.second_place: None})
    return [f"the order {what} at {_places(list(places))}" for what, places in found.items()]


def _calls(replayed: list[str]) -> list[str]:
    """The calls whose results replay must repeat, by function."""
    found: dict[str, list[str]] = {}
    for call in replayed:
        name, _, place = call.partition(" at ")
        found.setdefault(name, []).append(place)
    return [f"the result of {name} at {_places(places)}" for name, places in found.items()]


def _places(places: list[str]) -> str:
    more = f" and {len(places) - _PLACES} more places" if len(places) > _PLACES else ""
    return ", ".join(places[:_PLACES]) + more


def _property(name: str, violated: bool, bound: str | None, note: str) -> PropertyResult:
    status: Any = "violated" if violated else "inconclusive" if bound else "holds"
    return PropertyResult(name, "always", status, note)


def _message(broken: str | None, witnesses: list[Witness], calls: list[str]) -> str | None:
    if broken == "reversibility":
        w = witnesses[0]
        return f"{w.first} and {w.second} can occur in reversed order: both access {w.object}"
    return f"the input does not determine the results of these calls: {', '.join(calls)}" if calls else None


def _unfollowed(recording: Recording) -> str | None:
    """The first executed call of a library that synchronises threads in a way that is not recorded, as text."""
    for _, number, _, calls in recording.executions():
        site = recording.table.site(number) if number and calls else None
        if site and site.op == "call" and site.name in UNFOLLOWED:
            library = UNFOLLOWED[site.name]
            return f"{library} synchronises threads inside its library, which is not recorded: {site.name} at " + (
                recording.table.place(number)
            )
    return None


def _describe(recording: Recording, access: tuple[int, int, int, bool, int | None]) -> str:
    thread, site, _, writes, value = access
    what = "writes" if writes else "reads"
    shown = f" {value}" if value is not None else ""
    where = f" at {recording.table.place(site)}" if site else ""
    return f"{recording.threads[thread].name} {what}{shown}{where}"


def _object(recording: Recording, pair: UnorderedPair) -> str:
    if pair.object == 2**64 - 1:
        return "a pthread_once control: the first thread runs the routine"
    if pair.object == 2**64 - 3:
        return _file(pair.offset)
    if pair.object == 2**64 - 2:
        return f"memory at {pair.offset:#x}, allocated by unknown code"
    name = recording.object(pair.object).name
    return f"{name}+{pair.offset}" if pair.offset else name


def _file(number: int) -> str:
    """A number of the recorder for a file, in words."""
    if number == _STDERR:
        return "stderr (--allow stderr ignores it)"
    if number >> 63 and number >> 32 & 1:
        return "the table of file descriptors: the first thread gets the smallest number"
    return f"the offset of file descriptor {number & 0xFFFFFFFF}" if number >> 63 else "the same file"


def _node(recording: Recording, node: tuple[int, int, int, int]) -> str:
    thread, op, object_, site = node
    name = OPERATIONS.get(op, f"operation {op}")
    what = name
    if name in ("create", "join") and object_ < len(recording.threads):
        what = f"{name} {recording.threads[object_].name}"
    elif "lock" in name or name in ("arrive", "depart"):
        what = f"{name} {_lock(recording, object_)}"
    where = f" ({recording.table.place(site)})" if site else ""
    return f"{recording.threads[thread].name} {what}{where}"


def _lock(recording: Recording, address: int) -> str:
    """The name of a lock. Most locks are global or on the heap."""
    number = recording.native.object_at(address)
    if number is None:
        return f"{address:#x}"
    found = recording.object(number)
    return found.name + (f"+{address - found.base}" if address > found.base else "")


def _held(report: ReversibilityReport, thread: int, *, until: int | None = None, since: int | None = None) -> set[int]:
    """The locks that a thread holds just before one of its synchronisation events (or at its end), or just after it."""
    held = set()
    for lock, owner, _, acquire, release in report.sections:
        if owner != thread:
            continue
        if since is not None:
            inside = acquire <= since and (release is None or release > since)
        else:
            inside = release is None or (until is not None and acquire < until <= release)
        if inside:
            held.add(lock)
    return held


def _witness(recording: Recording, report: ReversibilityReport, pair: UnorderedPair, schedule: list[int]) -> Witness:
    first, second = pair.first, pair.second
    common = _held(report, first[0], until=pair.early) & _held(report, second[0], since=pair.late)
    locks = sorted(_lock(recording, lock) for lock in common)
    one, other = recording.threads[first[0]].name, recording.threads[second[0]].name
    advice = f"order the two events: join {one} before {other} gets there, or add a barrier between them"
    if locks:
        advice = f"{', '.join(locks)} excludes an overlap, but allows both orders; {advice}"
    return Witness(
        object=_object(recording, pair),
        first=_describe(recording, first),
        second=_describe(recording, second),
        first_place=recording.table.place(first[1]) if first[1] else "",
        second_place=recording.table.place(second[1]) if second[1] else "",
        locks=locks,
        schedule=[label for _, label, _ in _schedule(recording, report, pair, schedule)],
        advice=advice,
    )


def _schedule(
    recording: Recording, report: ReversibilityReport, pair: UnorderedPair, schedule: list[int]
) -> list[tuple[int, str, bool]]:
    """The permuted schedule as (thread, text, whether it is one of the two events)."""
    found: list[tuple[int, str, bool]] = []
    first, second = pair.first, pair.second
    done = False
    nodes = report.nodes  # a new list each time
    shown: dict[tuple[int, int, int, int], str] = {}
    for number in schedule:
        node = nodes[number]
        if number == pair.early:
            found.append((first[0], _describe(recording, first), True))
            done = True
        if node not in shown:
            shown[node] = _node(recording, node)
        found.append((node[0], shown[node], False))
        if number == pair.late:
            found.append((second[0], _describe(recording, second), True))
    if not done:
        found.append((first[0], _describe(recording, first), True))
    return found


def _trace(recording: Recording, report: ReversibilityReport, pair: UnorderedPair, schedule: list[int]) -> Trace:
    """The permuted schedule around the two events, for the viewer."""
    steps = _schedule(recording, report, pair, schedule)
    last = max(i for i, step in enumerate(steps) if step[2])
    start = max(0, last + 1 - _SHOWN)
    empty = Snapshot(fields={t.name: {} for t in recording.threads})
    events = [
        Event(
            lane=recording.threads[thread].name,
            kind="step",
            label=label.partition(" ")[2],
            state=empty,
            note="one of the two events" if marked else None,
        )
        for thread, label, marked in steps[start : last + 1]
    ]
    lanes = [Lane(t.name, "thread") for t in recording.threads]
    return Trace(
        target=str(recording.folder),
        parameters={},
        property="reversibility",
        lanes=lanes,
        messages=[],
        initial=empty,
        events=events,
        explanation=f"{_describe(recording, pair.second)} before {_describe(recording, pair.first)}.",
    )
