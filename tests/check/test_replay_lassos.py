"""A lasso replays on its model; where the fairness that is assumed now rules it out, that is said, with the assumption."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from plait import (
    Message,
    Pid,
    Process,
    System,
    Trace,
    TraceError,
    action,
    always,
    check,
    eventually,
    field,
    on,
    strong,
    weak,
)
from plait.check.explain.replay import replay
from plait.model.fairness import Fairness


class Toggle(Process):
    """Goes to and fro, and tells nobody."""

    up: bool = False

    @action
    def flip(self) -> None:
        self.up = not self.up


class Worker(Process):
    """Could finish at any time."""

    done: bool = False

    @action(when=lambda self: not self.done)
    def work(self) -> None:
        self.done = True


class Parcel(Message):
    """Of some weight."""

    weight: int


class Door(Process):
    """Is open only sometimes; a parcel comes in while it is open."""

    open: bool = False
    stored: bool = False

    @action
    def turn(self) -> None:
        self.open = not self.open

    @on(Parcel, where=lambda self, m: self.open)
    def store(self, m: Parcel) -> None:
        self.stored = True


class Hatch(Process):
    """Is always open."""

    stored: bool = False

    @on(Parcel)
    def store(self, m: Parcel) -> None:
        self.stored = True


class Sender(Process):
    """Sends one parcel."""

    to: Pid
    left: bool = True

    @action(when=lambda self: self.left)
    def send_off(self) -> None:
        self.left = False
        self.send(self.to, Parcel(weight=3))


@eventually
def stored(s: Any) -> bool:
    return any(p.stored for p in (*s.get(Door), *s.get(Hatch)))


def working(fairness: Sequence[Fairness] = (), own: Sequence[Fairness] = ()) -> System:
    def done(s: Any) -> bool:
        return bool(s[Worker][0].done)

    return System([Toggle(), Worker()], properties=[eventually(done, fairness=own)], fairness=fairness)


def delivering(fairness: Sequence[Fairness]) -> System:
    return System([Door(), Sender(to=Door.pid(0))], properties=[stored], fairness=fairness)


def found(system: System, **options: Any) -> Trace:
    trace = check(system, **options).trace
    assert trace is not None
    assert trace.loop is not None
    return trace


def refused(system: System, trace: Trace) -> str:
    with pytest.raises(TraceError) as caught:
        list(replay(system, trace))
    assert caught.value.hint
    return caught.value.message


WORK = "Worker0 work is enabled in all states of the loop and never happens"


def test_weak_fairness_rules_a_lasso_out() -> None:
    trace = found(working())
    assert list(replay(working(), trace)) == trace.events
    said = refused(working([weak(Worker)]), trace)
    assert said == f"the run of the trace is not fair any more, so it does not violate done: weak(Worker): {WORK}"
    assert f"weak(Worker.work): {WORK}" in refused(working(own=[weak(Worker.work)]), trace), "of the property alone"
    again = "Worker0 work is enabled in some states of the loop and never happens"
    assert f"strong(Worker): {again}" in refused(working([strong(Worker)]), trace)
    assert list(replay(working([weak(Toggle), strong(Toggle.flip)]), trace)), "what the loop does happens"


FAIR = [weak(Door.turn), weak(Sender)]


def test_messages_and_strong_fairness() -> None:
    """The parcel is deliverable while the door is open: again and again, but not all along."""
    trace = found(delivering(FAIR))
    assert list(replay(delivering([*FAIR, weak(Message)]), trace)) == trace.events
    assert list(replay(delivering([*FAIR, weak(Door)]), trace)) == trace.events
    said = refused(delivering([*FAIR, strong(Message)]), trace)
    assert "strong(Message): Parcel(weight=3) from Sender0 to Door0 is deliverable in some states of the loop" in said
    said = refused(delivering([*FAIR, strong(Door.store)]), trace)
    assert "strong(Door.store): Door0 store is enabled in some states of the loop and never happens" in said
    # What this check refuses, a search does not find either.
    assert check(delivering([*FAIR, strong(Message)])).status == "holds"
    assert check(delivering([*FAIR, strong(Door.store)])).status == "holds"


def test_a_message_that_waits_all_along() -> None:
    def system(*fairness: Fairness) -> System:
        processes = [Toggle(), Sender(to=Hatch.pid(0)), Hatch()]
        return System(processes, properties=[stored], fairness=[weak(Sender), *fairness])

    said = refused(system(weak(Parcel)), found(system()))
    assert "weak(Parcel): Parcel(weight=3) from Sender0 to Hatch0 is deliverable in all states of the loop" in said
    assert check(system(weak(Parcel))).status == "holds"


def test_a_loop_must_come_back() -> None:
    trace = found(delivering(FAIR))
    assert trace.loop is not None
    moved = msgspec.structs.replace(trace, loop=trace.loop + 1)
    assert f"the state is not the one before step {trace.loop + 2}" in refused(delivering(FAIR), moved)


class Counting(Process):
    """Counts what nobody looks at."""

    up: bool = False
    flips: list[int] = field(default_factory=list)

    @action
    def flip(self) -> None:
        self.up = not self.up
        self.flips.append(1)


def test_auxiliary_fields_need_not_come_back() -> None:
    """The list grows for ever: only the relevant parts of the states are finitely many."""

    @eventually
    def finished_up(s: Any) -> bool:
        return bool(s[Counting][0].up and s[Worker][0].done)

    def system(*fairness: Fairness) -> System:
        return System([Counting(), Worker()], properties=[finished_up], fairness=[weak(Counting), *fairness])

    trace = found(system(), reduce="decomposition", max_states=1000)
    assert trace.loop is not None
    assert trace.events[-1].state.fields["Counting0"]["flips"] == [1] * len(trace)
    assert trace.explanation is not None
    assert "(apart from Counting0.flips, on which nothing else depends)" in trace.explanation
    assert list(replay(system(), trace)) == trace.events
    assert WORK in refused(system(weak(Worker)), trace)
    odd = msgspec.structs.replace(trace, loop=trace.loop + 1)
    assert "the state is not the one before" in refused(system(), odd)


class Shifting(Process):
    """Which of three lamps was lit last is of no interest; it takes three rounds until all is as before."""

    up: bool = False
    lamp: int = 0

    @action
    def flip(self) -> None:
        self.up = not self.up
        self.lamp = (self.lamp + 1) % 3


def test_a_loop_of_relevant_parts_goes_round_until_the_full_state_comes_back() -> None:
    @eventually
    def finished_up(s: Any) -> bool:
        return bool(s[Shifting][0].up and s[Worker][0].done)

    system = System([Shifting(), Worker()], properties=[finished_up], fairness=[weak(Shifting)])
    trace = found(system, reduce="decomposition")
    assert trace.loop is not None
    assert [r.applied for r in check(system, reduce="decomposition").statistics.reductions] == [True]
    before = trace.events[trace.loop - 1].state if trace.loop else trace.initial
    assert trace.events[-1].state.fields == before.fields
    assert (len(trace.events) - trace.loop) % 6 == 0, "a multiple of two and three"
    assert "apart from" not in (trace.explanation or "")
    assert list(replay(system, trace)) == trace.events


def test_a_loop_of_any_trace_must_come_back() -> None:
    """Also of one that names no property, or a property of states, which no loop decides."""

    @always
    def never_up(s: Any) -> bool:
        return not s[Toggle][0].up

    def system() -> System:
        return System([Toggle(), Worker()], properties=[*working().properties, never_up])

    trace = found(working())
    anonymous = msgspec.structs.replace(trace, property=None)
    assert list(replay(system(), anonymous)) == trace.events
    short = msgspec.structs.replace(anonymous, loop=1)
    assert "after step 2 the state is not the one before step 2" in refused(system(), short)
    assert "goes back to step 8" in refused(system(), msgspec.structs.replace(anonymous, loop=7))
    up = msgspec.structs.replace(trace, property="never_up", events=trace.events[:1])
    assert "never_up is about states, but the run of the trace repeats" in refused(system(), up)
    assert len(list(replay(system(), msgspec.structs.replace(up, loop=None)))) == 1
