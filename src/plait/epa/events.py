"""The events of a recorded trace for the reversibility check: memory accesses and synchronisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from plait._native import ReversibilityReport, UnorderedPair, epa_operations, epa_reversible

_NAMES = dict(epa_operations())
_NUMBERS = {name: number for number, name in _NAMES.items()}


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
    """The events of a trace from the rows of the native module."""
    return [
        Event(thread, _NAMES[op] if op else "access", object_, extra, length, writes, value)
        for thread, op, object_, extra, length, writes, value in rows
    ]


def fast_check(events: Sequence[Event], *, benign_same_value: bool = False, limit: int = 5) -> ReversibilityReport:
    """Check events with vector clocks, lock closure and greedy schedules."""
    rows = [(s.thread, _NUMBERS.get(s.op, 0), s.object, s.extra, s.length, s.writes, s.value) for s in events]
    return epa_reversible(rows, benign_same_value=benign_same_value, limit=limit)


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
