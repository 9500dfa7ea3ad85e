"""`plait epa reversible --smt2`: the reversibility formula of Saissi 2019 (section 5.4.3) as SMT-LIB.

The formula is satisfiable if and only if two dependent events can occur in reversed order. So any solver can check the
verdict. The formula has a clause for each dependent pair: it is for small traces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from plait.epa.events import Event, structure
from plait.kernel.errors import UsageError

MOST_EVENTS = 5_000
"""The maximal number of events: the number of pairs grows with its square."""


def smt2(events: Sequence[Event], *, benign_same_value: bool = False) -> Iterator[str]:
    """The lines of the formula: Φ (the order that each schedule keeps) and R (a dependent pair is reversed).

    >>> one, other = Event(0, "access", 7, writes=True), Event(1, "access", 7)
    >>> [line for line in smt2([one, other]) if line.startswith("(assert")]
    ['(assert (<= x1 x0))']
    """
    if len(events) > MOST_EVENTS:
        raise UsageError(
            f"the formula would have {len(events):,} events; at most {MOST_EVENTS:,} are written",
            hint="record a smaller input; the check itself has no such limit",
        )
    yield "; satisfiable: two dependent events can occur in reversed order"
    yield "(set-logic QF_IDL)"
    for i, event in enumerate(events):
        yield f"(declare-const x{i} Int) ; thread {event.thread}: {_words(event)}"
    edges, sections = structure(events)
    for before, after in edges:
        yield f"(assert (< x{before} x{after}))"
    for i, (lock, thread, exclusive, acquire, release) in enumerate(sections):
        for other_lock, other_thread, other_exclusive, other_acquire, other_release in sections[i + 1 :]:
            if lock != other_lock or thread == other_thread or not (exclusive or other_exclusive):
                continue
            ways = [f"(< x{release} x{other_acquire})"] if release is not None else []
            ways += [f"(< x{other_release} x{acquire})"] if other_release is not None else []
            if ways:
                yield f"(assert {_any(ways)})"
    found = [
        f"(<= x{j} x{i})"
        for j, late in enumerate(events)
        for i in range(j)
        if events[i].depends(late, benign_same_value=benign_same_value)
    ]
    yield f"(assert {_any(found)})"
    yield "(check-sat)"


def _any(ways: Sequence[str]) -> str:
    if not ways:
        return "false"
    return ways[0] if len(ways) == 1 else f"(or {' '.join(ways)})"


def _words(event: Event) -> str:
    if event.op == "access":
        return f"{'writes' if event.writes else 'reads'} object {event.object}+{event.extra}, {event.length} bytes"
    return f"{event.op} {event.object:#x}" if event.object else event.op
