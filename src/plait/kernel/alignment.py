"""Two runs side by side: which events are the same, where the runs differ first, and how their last states differ.

The events of the common beginning are the same. After these, a longest common subsequence (Hunt and Szymanski 1977)
matches the events of each lane. So events that a lane has in both runs are the same, even if events of other lanes come
in between. Of the other events, two with the same name between the same neighbours are one event that *changed*.
Matched events share a row, as far as the order of both runs allows it. Other matched events have *moved*.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Literal

import msgspec

from plait.kernel.trace import TIME, Event, Lane, Trace
from plait.kernel.values import Data, exact

MOST_PAIRS = 2_000_000
"""If a lane has more equal pairs of events, its events are matched in order: the first with the first, and so on."""

Relation = Literal["same", "changed", "moved", "one"]


class Row(msgspec.Struct, frozen=True):
    """Two events side by side, by their indices; or one event alone."""

    relation: Relation
    """`moved`: the other run has the same event in another row."""
    first: int | None
    second: int | None


class Difference(msgspec.Struct, frozen=True):
    """A value that differs between two states. For last states, also the index of the event that wrote it last."""

    lane: str
    field: str
    first: Data
    second: Data
    first_step: int | None
    second_step: int | None


class Alignment(msgspec.Struct, frozen=True):
    """How two runs differ."""

    common: int
    """The number of events that are the same at the beginning of both runs."""
    start: list[Difference]
    """The values that differ in the initial states."""
    rows: list[Row]
    end: list[Difference]
    """The values that differ in the last states."""
    loops: tuple[int | None, int | None]
    only: tuple[list[str], list[str]]
    """The lanes that only one of the runs has."""
    unfair: str | None = None
    """The fairness assumption that the loop of the second run breaks, if that run is a replay on another model."""

    @property
    def same_steps(self) -> bool:
        """Whether all steps are the same. Initial states and loops may differ."""
        return all(row.relation == "same" for row in self.rows)

    @property
    def same(self) -> bool:
        alike = self.same_steps and not self.start and self.only == ([], [])
        return alike and self.loops[0] == self.loops[1] and self.unfair is None


def align(first: Trace, second: Trace) -> Alignment:
    """Match the events of two runs."""
    keys = [_keys(trace) for trace in (first, second)]
    common = 0
    while common < min(map(len, keys)) and keys[0][common] == keys[1][common]:
        common += 1
    matches = [(i, i) for i in range(common)]
    changed: set[tuple[int, int]] = set()
    for name in dict.fromkeys(event.lane for event in (*first.events[common:], *second.events[common:])):
        mine, other = (
            [i for i in range(common, len(trace.events)) if trace.events[i].lane == name] for trace in (first, second)
        )
        found = [
            (mine[i], other[j]) for i, j in _longest_common([keys[0][i] for i in mine], [keys[1][j] for j in other])
        ]
        matches += found
        changed |= set(_alike(first.events, second.events, mine, other, found))
    rows = _rows(len(first.events), len(second.events), matches, changed)
    names = [[lane.name for lane in trace.lanes] for trace in (first, second)]
    only = [n for n in names[0] if n not in names[1]], [n for n in names[1] if n not in names[0]]
    return Alignment(
        common,
        _differences(first, second, ended=False),
        rows,
        _differences(first, second, ended=True),
        (first.loop, second.loop),
        only,
    )


def lanes(first: Trace, second: Trace) -> list[Lane]:
    """The lanes of both runs."""
    return list({lane.name: lane for lane in (*first.lanes, *second.lanes)}.values())


def _keys(trace: Trace) -> list[str]:
    """A key for each event: what it is and does. Messages are compared by content, because their numbers may differ."""
    messages = {m.id: [m.type, m.fields, m.sender, m.receiver] for m in trace.messages}
    found = []
    for e in trace.events:
        taken, sent = ([messages.get(i) for i in ids] for ids in (e.consumed, e.sent))
        effects = [e.announced, e.choices, e.spawned, {k: list(v) for k, v in e.changed.items()}, e.note]
        found.append(exact([e.lane, e.kind, e.label, sorted(map(exact, taken)), sorted(map(exact, sent)), *effects]))
    return found


def _longest_common(first: Sequence[str], second: Sequence[str]) -> list[tuple[int, int]]:
    """The pairs of a longest common subsequence.

    >>> _longest_common("abcb", "bxcab")
    [(1, 0), (2, 2), (3, 4)]
    """
    places: dict[str, list[int]] = {}
    for j, key in enumerate(second):
        places.setdefault(key, []).append(j)
    if sum(len(places.get(key, ())) for key in first) > MOST_PAIRS:
        met: dict[str, int] = {}
        pairs = []
        for i, key in enumerate(first):
            number = met[key] = met.get(key, -1) + 1
            pairs += [(i, places[key][number])] if number < len(places.get(key, ())) else []
        return _chain(pairs)
    return _chain([(i, j) for i, key in enumerate(first) for j in reversed(places.get(key, []))])


def _chain(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest subsequence in which both numbers grow. The pairs are sorted by the first number, then by the second
    number in descending order."""
    ends: list[int] = []
    links: list[tuple[tuple[int, int], int | None]] = []
    last: list[int] = []
    for pair in pairs:
        at = bisect_left(ends, pair[1])
        ends[at : at + 1] = [pair[1]]
        last[at : at + 1] = [len(links)]
        links.append((pair, last[at - 1] if at else None))
    found = []
    here = last[-1] if last else None
    while here is not None:
        pair, here = links[here]
        found.append(pair)
    return found[::-1]


def _alike(
    first: Sequence[Event],
    second: Sequence[Event],
    mine: Sequence[int],
    other: Sequence[int],
    found: Sequence[tuple[int, int]],
) -> list[tuple[int, int]]:
    """The events of one lane with the same name between the same neighbours."""
    alike = []
    before = (-1, -1)
    for here in (*found, (len(first), len(second))):
        left = [i for i in mine if before[0] < i < here[0]]
        right = [j for j in other if before[1] < j < here[1]]
        names = [
            [f"{e.kind} {e.label}" for e in part] for part in ([first[i] for i in left], [second[j] for j in right])
        ]
        alike += [(left[i], right[j]) for i, j in _longest_common(*names)]
        before = here
    return alike


def _rows(first: int, second: int, matches: Sequence[tuple[int, int]], changed: set[tuple[int, int]]) -> list[Row]:
    """The events of both runs in order. Matched events share a row, if the order allows it."""
    left, right = {i for i, _ in matches}, {j for _, j in matches}
    rows: list[Row] = []
    i = j = 0

    def apart(a: int, b: int) -> None:
        rows.extend(Row("moved" if x in left else "one", x, None) for x in range(i, a))
        rows.extend(Row("moved" if x in right else "one", None, x) for x in range(j, b))

    for a, b in (*_chain(sorted(matches)), (first, second)):
        between = sorted((x, y) for x, y in changed if i <= x < a and j <= y < b)
        for x, y in _chain(between):
            apart(x, y)
            rows.append(Row("changed", x, y))
            i, j = x + 1, y + 1
        apart(a, b)
        if (a, b) != (first, second):
            rows.append(Row("same", a, b))
        i, j = a + 1, b + 1
    return rows


def _differences(first: Trace, second: Trace, *, ended: bool) -> list[Difference]:
    states = [t.events[-1].state if ended and t.events else t.initial for t in (first, second)]
    found: list[tuple[str, str, Data, Data]] = []
    for lane in states[0].fields:
        if lane not in states[1].fields:
            continue
        values = [state.fields[lane] for state in states]
        for name in dict.fromkeys((*values[0], *values[1])):
            found.append((lane, name, values[0].get(name), values[1].get(name)))
    for lane in dict.fromkeys((*states[0].status, *states[1].status)):
        if lane in states[0].fields and lane in states[1].fields:
            found.append((lane, "(status)", states[0].status.get(lane, "up"), states[1].status.get(lane, "up")))
    for name in dict.fromkeys((*states[0].monitors, *states[1].monitors)):
        found.append((name, "(monitor)", states[0].monitors.get(name), states[1].monitors.get(name)))
    return [
        Difference(lane, name, a, b, *(_writer(t, lane, name) if ended else None for t in (first, second)))
        for lane, name, a, b in found
        if exact(a) != exact(b)
    ]


def _writer(trace: Trace, lane: str, name: str) -> int | None:
    """The event that gave the field its last value."""
    for i in reversed(range(len(trace.events))):
        event = trace.events[i]
        if name == "(monitor)" and event.announced:
            return i
        if f"{lane}.{name}" in event.changed:
            return i
        if event.lane == lane and (name in event.changed or event.kind in ("crash", "recover")):
            return i
        if lane in event.spawned or (event.lane == TIME and f"{lane}.{name}" in event.changed):
            return i
    return None
