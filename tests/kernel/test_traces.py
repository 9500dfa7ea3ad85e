"""Traces: they survive JSON, their alignment is a matching, and renaming lanes there and back changes nothing."""

from __future__ import annotations

from itertools import combinations, pairwise

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from plait.kernel.alignment import align, lanes
from plait.kernel.renaming import by_position, renamed
from plait.kernel.step import steps_of
from plait.kernel.trace import Event, Lane, Sent, Snapshot, Trace

NAMES = ("A0", "A1", "B0")


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Lanes that count, and send each other numbers."""
    counts = dict.fromkeys(NAMES, 0)
    sent: list[Sent] = []
    open_messages: list[Sent] = []
    events = []
    for _ in range(draw(st.integers(0, 6))):
        name = draw(st.sampled_from(NAMES))
        mine = [m for m in open_messages if m.receiver == name]
        if mine and draw(st.booleans()):
            taken, made = [mine[0].id], []
            open_messages.remove(mine[0])
            label = "take"
        else:
            other = {"#pid": draw(st.sampled_from(NAMES))}
            message = Sent(len(sent), "Note", {"to": other}, name, other["#pid"])
            sent.append(message)
            open_messages.append(message)
            taken, made, label = [], [message.id], draw(st.sampled_from(("send", "tell")))
        before = counts[name]
        counts[name] += 1
        state = Snapshot(
            fields={n: {"count": c, "last": {"#pid": name}} for n, c in counts.items()},
            pending={n: [m.id for m in open_messages if m.receiver == n] for n in NAMES},
        )
        events.append(Event(name, "step", label, state, taken, made, changed={"count": (before, before + 1)}))
    initial = Snapshot({n: {"count": 0, "last": {"#pid": n}} for n in NAMES}, {n: [] for n in NAMES})
    return Trace("model.py", {"n": 3}, "p", [Lane(n, n[0]) for n in NAMES], sent, initial, events)


@given(traces())
def test_json_there_and_back(trace: Trace) -> None:
    assert msgspec.json.decode(msgspec.json.encode(trace), type=Trace) == trace
    assert len(trace) == len(trace.events)


@given(traces())
def test_steps_name_messages_by_what_they_say(trace: Trace) -> None:
    """So another run, with other numbers, has the same steps."""
    shifted = msgspec.structs.replace(
        trace,
        messages=[msgspec.structs.replace(m, id=m.id + 100) for m in trace.messages],
        events=[
            msgspec.structs.replace(e, consumed=[i + 100 for i in e.consumed], sent=[i + 100 for i in e.sent])
            for e in trace.events
        ],
    )
    assert steps_of(shifted) == steps_of(trace)
    assert [s.lane for s in steps_of(trace)] == [e.lane for e in trace.events]
    assert align(trace, shifted).same


# -- alignment --------------------------------------------------------------------------------------------------------


@given(traces())
def test_a_run_is_the_same_as_itself(trace: Trace) -> None:
    found = align(trace, trace)
    assert found.same
    assert found.common == len(trace)
    assert [(r.relation, r.first, r.second) for r in found.rows] == [("same", i, i) for i in range(len(trace))]
    assert found.end == []
    assert lanes(trace, trace) == trace.lanes


@given(traces(), traces())
def test_rows_keep_the_order_of_both_and_have_each_event_once(first: Trace, second: Trace) -> None:
    found = align(first, second)
    assert [r.first for r in found.rows if r.first is not None] == list(range(len(first)))
    assert [r.second for r in found.rows if r.second is not None] == list(range(len(second)))
    for row in found.rows:
        assert (row.relation in ("same", "changed")) == (row.first is not None and row.second is not None)
        if row.first is not None and row.second is not None:
            one, other = first.events[row.first], second.events[row.second]
            assert (one.lane, one.label) == (other.lane, other.label)
    assert all(r.relation == "same" for r in found.rows[: found.common])


@given(traces(), traces())
def test_alignment_has_no_direction(first: Trace, second: Trace) -> None:
    here, there = align(first, second), align(second, first)
    assert here.same == there.same
    assert here.common == there.common
    assert [(d.lane, d.field, d.first, d.second) for d in here.end] == [
        (d.lane, d.field, d.second, d.first) for d in there.end
    ]


@given(traces(), traces())
def test_what_a_lane_does_in_both_is_found(first: Trace, second: Trace) -> None:
    """After the common beginning, as many events of a lane are matched as any order-keeping matching has."""
    found = align(first, second)
    matched = {True: 0, False: 0}
    for row in found.rows:
        matched[True] += row.first is not None and row.relation in ("same", "moved")
        matched[False] += row.second is not None and row.relation in ("same", "moved")
    assert matched[True] == matched[False]
    most = 0
    for name in NAMES:
        mine, other = (
            [
                (s.label, repr(s.consumed), [repr(m.fields) for m in t.messages if m.id in e.sent], repr(e.changed))
                for s, e in list(zip(steps_of(t), t.events, strict=True))[found.common :]
                if s.lane == name
            ]
            for t in (first, second)
        )
        most += max(
            n for n in range(len(mine) + 1) if any(_is_subsequence(part, other) for part in combinations(mine, n))
        )
    assert matched[True] == found.common + most


def _is_subsequence(part: tuple[object, ...], whole: list[object]) -> bool:
    rest = iter(whole)
    return all(item in rest for item in part)


# -- renaming ---------------------------------------------------------------------------------------------------------


@given(traces(), st.permutations(NAMES))
def test_renaming_there_and_back_changes_nothing(trace: Trace, wanted: list[str]) -> None:
    there = dict(zip(NAMES, wanted, strict=True))
    back = {new: old for old, new in there.items()}
    assert renamed(renamed(trace, there), back) == trace
    assert renamed(trace, {}) == trace
    assert [e.lane for e in renamed(trace, there).events] == [there[e.lane] for e in trace.events]


@given(st.lists(st.sampled_from("abcdef"), unique=True), st.lists(st.sampled_from("abcdef"), unique=True))
def test_names_by_position(given_names: list[str], wanted: list[str]) -> None:
    names = by_position(given_names, wanted)
    if names:
        assert [names.get(n, n) for n in given_names] == wanted
    else:
        assert len(given_names) != len(wanted) or sorted(given_names) == sorted(wanted)
    assert all(one != other for one, other in pairwise(sorted(names.values())))
