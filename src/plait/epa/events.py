"""The events of a recorded trace for the reversibility check: memory accesses, synchronisation, and their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from plait._native import ReversibilityReport, UnorderedPair, epa_operations, epa_reversible

_NAMES = dict(epa_operations())
_NUMBERS = {name: number for number, name in _NAMES.items()}


_FILES, _ONCE = 2**64 - 3, 2**64 - 1
"""The objects of accesses to files and to controls of `pthread_once` (`rust/src/epa/reverse.rs`)."""


class Event(NamedTuple):
    """An event of a thread. `op` is 'access' or a synchronisation: create, start, end, join, lock, unlock, arrive, …

    The object of a create or a join is the other thread. `extra` is the offset of an access, or the number of threads
    that a barrier waits for.
    """

    thread: int
    op: str
    object: int = 0
    extra: int = 0
    length: int = 1
    writes: bool = False
    value: int | None = None

    def depends(self, later: Event, *, benign_same_value: bool = False) -> bool:
        """Whether two events are dependent: different threads, the same memory, and at least one of them writes.

        >>> Event(0, "access", 7, writes=True).depends(Event(1, "access", 7))
        True
        """
        if self.thread == later.thread or not (self.op == later.op == "access") or self.object != later.object:
            return False
        if not (self.writes or later.writes) or self.extra >= later.extra + later.length:
            return False
        if later.extra >= self.extra + self.length:
            return False
        same = self.value is not None and self.value == later.value
        return not (benign_same_value and self.writes and later.writes and same)


def from_rows(rows: Sequence[tuple[int, int, int, int, int, bool, int | None]]) -> list[Event]:
    """The events of a trace from the rows of the native module. Accesses to files and `pthread_once` are accesses too."""
    found, once = [], set()
    for thread, op, object_, extra, length, writes, value in rows:
        name = _NAMES[op] if op else "access"
        if name in ("file read", "file write"):
            found.append(Event(thread, "access", _FILES, object_, 1, name == "file write"))
        elif name == "once":
            found.append(Event(thread, "access", _ONCE, object_, 1, object_ not in once))
            once.add(object_)
        else:
            found.append(Event(thread, name, object_, extra, length, writes, value))
    return found


def fast_check(
    events: Sequence[Event], *, benign_same_value: bool = False, limit: int = 5, replay: bool = False
) -> ReversibilityReport:
    """Check events with vector clocks, lock closure and greedy schedules. `replay`: sections keep their order."""
    rows = [(s.thread, _NUMBERS.get(s.op, 0), s.object, s.extra, s.length, s.writes, s.value) for s in events]
    return epa_reversible(rows, benign_same_value=benign_same_value, limit=limit, replay=replay)


class SettledPair(NamedTuple):
    """A pair of dependent accesses that is not shown to be irreversible."""

    pair: UnorderedPair
    schedule: list[int] | None
    """An order of the synchronisation events that reverses it; None if Z3 did not decide it."""


def settle(report: ReversibilityReport, *, timeout: float = 60.0) -> list[SettledPair]:
    """Decide open pairs with Z3. The result: pairs that are reversible, or that Z3 did not decide."""
    found = []
    for pair in report.pairs:
        schedule = pair.schedule
        if schedule is None:
            from plait.epa.solver import decide

            assert pair.early is not None, (
                "a first access that nothing follows is reversible, and this is known without Z3"
            )
            threads = [node[0] for node in report.nodes]
            answer = decide(threads, report.before, report.sections, pair.early, pair.late, timeout=timeout)
            if answer.reversible is False:
                continue
            schedule = answer.schedule
        found.append(SettledPair(pair, schedule))
    return found


Section = tuple[int, int, bool, int, int | None]
"""A critical section: lock, thread, whether it is exclusive, and the events that acquire and release."""


def structure(steps: Sequence[Event]) -> tuple[list[tuple[int, int]], list[Section]]:
    """The edges and the critical sections of a trace, directly from the definitions."""
    edges: list[tuple[int, int]] = []
    sections: list[list[Any]] = []
    last: dict[int, int] = {}
    created: dict[int, int] = {}
    held: dict[tuple[int, int], tuple[int, int]] = {}
    counts: dict[int, int] = {}
    arrivals: dict[int, list[int]] = {}
    departures: list[tuple[int, int, int]] = []
    arrived: dict[tuple[int, int], int] = {}
    for i, step in enumerate(steps):
        if step.op == "barrier":
            counts[step.object] = step.extra
        if step.thread in last:
            edges.append((last[step.thread], i))
        elif step.thread in created:
            edges.append((created[step.thread], i))
        last[step.thread] = i
        if step.op == "create":
            created[step.object] = i
        elif step.op == "join" and step.object in last:
            edges.append((last[step.object], i))
        elif step.op in ("lock", "read lock", "write lock"):
            depth, index = held.get((step.object, step.thread), (0, -1))
            if depth == 0:
                index = len(sections)
                sections.append([step.object, step.thread, step.op != "read lock", i, None])
            held[step.object, step.thread] = (depth + 1, index)
        elif step.op in ("unlock", "rw unlock"):
            depth, index = held.get((step.object, step.thread), (0, -1))
            if depth:
                held[step.object, step.thread] = (depth - 1, index)
                if depth == 1:
                    sections[index][4] = i
        elif step.op == "arrive":
            arrived[step.object, step.thread] = len(arrivals.setdefault(step.object, []))
            arrivals[step.object].append(i)
        elif step.op == "depart" and (step.object, step.thread) in arrived:
            departures.append((step.object, i, arrived[step.object, step.thread]))
    for barrier, node, arrival in departures:
        count, all_of_it = counts.get(barrier, 0), arrivals[barrier]
        if count and len({steps[a].thread for a in all_of_it}) == count:
            start = arrival // count * count
            edges += [(a, node) for a in all_of_it[start : start + count]]
    return edges, [(s[0], s[1], s[2], s[3], s[4]) for s in sections]
