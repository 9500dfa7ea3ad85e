"""Linearizability: histories from the literature, and a brute-force search that shares nothing with the monitor's."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait import ModelError, Pid, Process, System, action, always, check, init
from plait.model.linearizability import (
    Dequeue,
    Enqueue,
    Invoke,
    Linearizability,
    Queue,
    Read,
    Register,
    Return,
    Specification,
    Write,
    linearizability,
)
from tests.oracle.explorer import explore

A, B, C = (Pid("Client", i) for i in range(3))
Event = tuple[Pid, Invoke | Return]


def monitor(spec: Specification, *events: Event) -> Linearizability:
    history = Linearizability(spec=spec)
    for process, event in events:
        history.observe(process, event)
    return history


def state(history: Linearizability) -> dict[str, Any]:
    return {name: getattr(history, name) for name in history.__plait_fields__}


def run(process: Pid, op: Any, result: Any = None) -> list[Event]:
    """An operation during which nothing else happens."""
    return [(process, Invoke(op)), (process, Return(result))]


# -- histories from the literature ------------------------------------------------------------------------------------


def test_empty_history_is_linearizable() -> None:
    assert monitor(Register(0)).linearizable


def test_stale_read_is_not_linearizable() -> None:
    assert monitor(Register(0), *run(A, Write(1)), *run(B, Read(), 1)).linearizable
    assert not monitor(Register(0), *run(A, Write(1)), *run(B, Read(), 0)).linearizable


def test_read_may_see_a_write_in_flight_or_not() -> None:
    for result in (0, 1):
        history = monitor(Register(0), (A, Invoke(Write(1))), *run(B, Read(), result))
        assert history.linearizable


def test_new_old_inversion_is_not_linearizable() -> None:
    """A regular register allows it (Lamport 1986), a linearizable one does not."""
    writing = (A, Invoke(Write(1)))
    assert monitor(Register(0), writing, *run(B, Read(), 0), *run(C, Read(), 1)).linearizable
    assert not monitor(Register(0), writing, *run(B, Read(), 1), *run(C, Read(), 0)).linearizable


def test_reads_out_of_thin_air_are_not_linearizable() -> None:
    assert not monitor(Register(0), (A, Invoke(Write(1))), *run(B, Read(), 2)).linearizable


def test_sequential_consistency_is_not_enough() -> None:
    """Each process alone finds what a sequential order explains; real time forbids that order."""
    assert not monitor(Register(0), *run(A, Write(1)), *run(B, Write(2)), *run(C, Read(), 1)).linearizable
    assert not monitor(Register(0), *run(A, Write(1)), *run(A, Read(), 0)).linearizable


def test_overlapping_writes_may_take_effect_in_either_order() -> None:
    writes = [(A, Invoke(Write(1))), (B, Invoke(Write(2))), (A, Return()), (B, Return())]
    for first in (1, 2):
        history = monitor(Register(0), *writes, *run(C, Read(), first), *run(C, Read(), first))
        assert history.linearizable
    assert not monitor(Register(0), *writes, *run(C, Read(), 1), *run(C, Read(), 2)).linearizable


def test_queue_histories_of_herlihy_and_wing() -> None:
    """After Figure 1 of the paper: H1 and H3 are acceptable, H2 and H4 are not."""
    x, y, z = "x", "y", "z"
    h1 = [
        (A, Invoke(Enqueue(x))),
        (B, Invoke(Enqueue(y))),
        (B, Return()),
        (A, Return()),
        *run(B, Dequeue(), x),
        *run(A, Dequeue(), y),
        *run(A, Enqueue(z)),
    ]
    h2 = [
        *run(A, Enqueue(x)),
        (A, Invoke(Dequeue())),
        *run(B, Enqueue(y)),
        (A, Return(y)),
    ]
    h3 = [
        (A, Invoke(Enqueue(x))),
        *run(B, Dequeue(), x),
    ]
    h4 = [
        (A, Invoke(Enqueue(x))),
        (B, Invoke(Enqueue(y))),
        (A, Return()),
        (B, Return()),
        (A, Invoke(Dequeue())),
        (C, Invoke(Dequeue())),
        (A, Return(y)),
        (C, Return(y)),
    ]
    assert [monitor(Queue(), *h).linearizable for h in (h1, h2, h3, h4)] == [True, False, True, False]


def test_own_specification() -> None:
    @dataclasses.dataclass(frozen=True)
    class Counter:
        initial: int = 0

        def apply(self, state: int, op: str) -> tuple[int, int]:
            return state + 1, state

    assert monitor(Counter(), *run(A, "tick", 0), *run(B, "tick", 1)).linearizable
    assert not monitor(Counter(), *run(A, "tick", 0), *run(B, "tick", 0)).linearizable


# -- what the monitor remembers ---------------------------------------------------------------------------------------


def test_state_has_the_last_operations_seen_at_the_invocation() -> None:
    history = monitor(Register(0), *run(B, Write(1)), *run(B, Write(2)), (A, Invoke(Read())), *run(C, Read(), 2))
    assert history.in_flight[A].seen == {(B, 1)}
    assert [op.seen for op in history.completed[B]] == [frozenset(), frozenset()]
    assert [op.seen for op in history.completed[C]] == [{(B, 1)}]


def test_state_forgets_the_order_that_nobody_saw() -> None:
    starts = [(A, Invoke(Write(1))), (B, Invoke(Write(2)))]
    one = monitor(Register(0), *starts, (A, Return()), (B, Return()))
    other = monitor(Register(0), *reversed(starts), (B, Return()), (A, Return()))
    assert state(one) == state(other)


# -- misuse -----------------------------------------------------------------------------------------------------------


def test_return_without_invoke() -> None:
    with pytest.raises(ModelError, match=r"Client1 announces Return\(result=None\), but it has no operation in flight"):
        monitor(Register(0), (A, Invoke(Read())), (B, Return()))


def test_two_invokes() -> None:
    with pytest.raises(ModelError, match=r"Client0 announces .* while its Read\(\) is in flight"):
        monitor(Register(0), (A, Invoke(Read())), (A, Invoke(Write(1))))


def test_unknown_operation() -> None:
    with pytest.raises(ModelError, match=r"Read\(\) is not an operation of a Queue"):
        monitor(Queue(), *run(A, Read())).linearizable  # noqa: B018


def test_unhashable_operation() -> None:
    with pytest.raises(ModelError, match="cannot be hashed"):
        monitor(Register(0), *run(A, Write([1]))).linearizable  # noqa: B018


def test_other_events_are_left_alone() -> None:
    history = Linearizability(spec=Register(0))
    history.observe(A, "elected")
    assert state(history) == state(Linearizability(spec=Register(0)))


# -- in a System ------------------------------------------------------------------------------------------------------


class Liar(Process):
    """Reads something that nobody wrote."""

    @init
    def lie(self) -> None:
        self.announce(Invoke(Read()))
        self.announce(Return(7))


def test_property_of_a_system() -> None:
    @always
    def nothing_else(s: Any) -> bool:
        return not s[Linearizability].in_flight

    system = System(
        [Liar()], monitors=[Linearizability(spec=Register(0))], properties=[linearizability(), nothing_else]
    )
    assert explore(system).violated == {"linearizable"}


# -- against brute force ----------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Interval:
    """An operation as a real-time observer sees it."""

    op: Any
    start: int
    end: float = float("inf")
    result: Any = None


def brute_force(spec: Specification, events: list[Event]) -> bool:
    """Try every order of every choice of operations."""
    current: dict[Pid, Interval] = {}
    intervals: list[Interval] = []
    for now, (process, event) in enumerate(events):
        if isinstance(event, Invoke):
            current[process] = Interval(event.op, now)
            intervals.append(current[process])
        else:
            current[process].end, current[process].result = now, event.result
    done = [i for i in intervals if i.end < len(events)]
    flying = [i for i in intervals if i.end > len(events)]
    subsets = itertools.chain.from_iterable(itertools.combinations(flying, n) for n in range(len(flying) + 1))
    return any(
        respects_time(order) and explains(spec, order)
        for subset in subsets
        for order in itertools.permutations([*done, *subset])
    )


def respects_time(order: tuple[Interval, ...]) -> bool:
    return not any(later.end < earlier.start for earlier, later in itertools.combinations(order, 2))


def explains(spec: Specification, order: tuple[Interval, ...]) -> bool:
    now = spec.initial
    for interval in order:
        now, result = spec.apply(now, interval.op)
        if interval.end != float("inf") and result != interval.result:
            return False
    return True


@st.composite
def histories(draw: st.DrawFn, spec: Specification, operations: st.SearchStrategy[Any]) -> list[Event]:
    """Up to six operations of three processes; results are those of an object used at the return, or lies."""
    events: list[Event] = []
    pending: dict[Pid, Any] = {}
    now, started = spec.initial, 0
    for process in draw(st.lists(st.sampled_from([A, B, C]), max_size=12)):
        if process in pending:
            now, result = spec.apply(now, pending.pop(process))
            lie = result is not None and draw(st.integers(0, 3)) == 0
            events.append((process, Return(draw(st.integers(0, 2)) if lie else result)))
        elif started < 6:
            started += 1
            pending[process] = draw(operations)
            events.append((process, Invoke(pending[process])))
    return events


values = st.integers(1, 2)
register_operations = st.one_of(st.builds(Write, values), st.just(Read()))
queue_operations = st.one_of(st.builds(Enqueue, values), st.just(Dequeue()))


@settings(deadline=None, max_examples=300)
@given(histories(Register(0), register_operations))
def test_register_against_brute_force(events: list[Event]) -> None:
    assert monitor(Register(0), *events).linearizable == brute_force(Register(0), events)


@settings(deadline=None, max_examples=300)
@given(histories(Queue(), queue_operations))
def test_queue_against_brute_force(events: list[Event]) -> None:
    assert monitor(Queue(), *events).linearizable == brute_force(Queue(), events)


class Patient(Process):
    """Reads what is there, in two steps."""

    phase: int = 0

    @action(when=lambda self: self.phase == 0)
    def begin(self) -> None:
        self.phase = 1
        self.announce(Invoke(Read()))

    @action(when=lambda self: self.phase == 1)
    def end(self) -> None:
        self.phase = 2
        self.announce(Return(0))


def test_processes_may_be_symmetric() -> None:
    """A history does not depend on the order of the processes."""
    system = System(
        [Patient() for _ in range(3)],
        monitors=[Linearizability(spec=Register(0))],
        properties=[linearizability()],
        symmetric=[Patient],
    )
    full, reduced = check(system), check(system, reduce="symmetry")
    assert full.status == reduced.status == "holds"
    assert full.statistics.states == explore(system).states
    assert reduced.statistics.states < full.statistics.states
