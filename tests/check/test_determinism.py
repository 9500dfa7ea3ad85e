"""A handler must be a function of its inputs: what is caught, and what is fine."""

from __future__ import annotations

import functools
import os
import random
import time
import types
from collections.abc import Callable
from typing import Any

import pytest

from plait import (
    Monitor,
    Pid,
    Process,
    System,
    action,
    always,
    check,
    crash_recovery,
    fifo,
    init,
    on,
    recovery,
)
from tests.support.bad_models import Child, Note, Sink, explained, node, run

# -- handlers must be functions of their inputs ----------------------------------------------------------------------

COUNT = 0


def uses_random(self: Any) -> None:
    self.a = random.random()


def throws_a_coin(self: Any) -> None:
    self.n += 1
    self.a = random.choice(["heads", "tails"])


def looks_at_the_clock(self: Any) -> None:
    self.a = time.time()


def looks_at_the_fine_clock(self: Any) -> None:
    self.send(Sink.pid(0), Note(time.perf_counter_ns()))


def counts_globally(self: Any) -> None:
    global COUNT
    COUNT += 1
    self.a = COUNT


def counts_in_a_closure() -> Callable[[Any], None]:
    calls = 0

    def act(self: Any) -> None:
        nonlocal calls
        calls += 1
        self.send(Sink.pid(0), Note(calls))

    return act


def counts_in_a_default(self: Any, calls: list[int] = []) -> None:  # noqa: B006
    calls.append(1)
    self.a = len(calls)


def asks_the_system(self: Any) -> None:
    self.a = os.urandom(8)


def announces_the_clock(self: Any) -> None:
    self.announce(time.perf_counter_ns())


def chooses_at_random(self: Any) -> None:
    self.choose([random.random()])


def chooses_sometimes(self: Any) -> None:
    self.choose(range(1 + time.perf_counter_ns() % 1000))


def sends_a_tuple_of_a_set(self: Any) -> None:
    self.send(Sink.pid(0), Note(tuple(self.names)))


def sends_a_list_of_a_frozenset(self: Any) -> None:
    self.send(Sink.pid(0), Note([*self.frozen]))


def sends_a_display(self: Any) -> None:
    self.send(Sink.pid(0), Note(tuple({"red", "green", "blue"})))


def sends_a_comprehension(self: Any) -> None:
    self.send(Sink.pid(0), Note(list({name.upper() for name in ("red", "green", "blue")})))


def sends_a_made_set(self: Any) -> None:
    self.send(Sink.pid(0), Note(" ".join(set(["red", "green", "blue"]))))  # noqa: C405


def sends_a_made_frozenset(self: Any) -> None:
    self.send(Sink.pid(0), Note(tuple(frozenset(("red", "green", "blue")))))


def sends_a_union(self: Any) -> None:
    self.send(Sink.pid(0), Note(tuple(self.names | self.frozen)))


def sends_a_difference(self: Any) -> None:
    self.send(Sink.pid(0), Note(tuple(self.names.difference(["red"]))))


def sends_common_keys(self: Any) -> None:
    self.send(Sink.pid(0), Note(tuple({"red": 1, "green": 2, "blue": 3}.keys() & {"red": 4, "green": 5}.keys())))


def sends_the_text_of_a_set(self: Any) -> None:
    self.send(Sink.pid(0), Note(str(self.names)))


def keeps_the_first_of_the_longest(self: Any) -> None:
    self.a = max({"green", "black", "white"}, key=len)


def pops(self: Any) -> None:
    self.a = self.names.pop()


def takes_the_first(self: Any) -> None:
    self.a = next(iter(self.names))


def numbers_by_a_set(self: Any) -> None:
    self.table = {number: name for number, name in enumerate(self.names)}  # noqa: C416


def announces_in_the_order_of_a_set(self: Any) -> None:
    for name in self.names:
        self.announce(name)


UNSTEADY = {
    uses_random: "set a to",
    throws_a_coin: "set a to",
    looks_at_the_clock: "set a to",
    looks_at_the_fine_clock: "sent Note(content=",
    counts_globally: "set a to",
    counts_in_a_default: "set a to",
    asks_the_system: "set a to",
    announces_the_clock: "announced",
    chooses_at_random: "chose",
    chooses_sometimes: "",
    sends_a_tuple_of_a_set: "sent Note(content=(",
    sends_a_list_of_a_frozenset: "sent Note(content=[",
    sends_a_display: "sent Note(content=(",
    sends_a_comprehension: "sent Note(content=[",
    sends_a_made_set: "sent Note(content='",
    sends_a_made_frozenset: "sent Note(content=(",
    sends_a_union: "sent Note(content=(",
    sends_a_difference: "sent Note(content=(",
    sends_common_keys: "sent Note(content=(",
    sends_the_text_of_a_set: "sent Note(content=",
    keeps_the_first_of_the_longest: "set a to",
    pops: "set a to",
    takes_the_first: "set a to",
    numbers_by_a_set: "set table to",
    announces_in_the_order_of_a_set: "announced",
}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("act", UNSTEADY, ids=lambda act: act.__name__)
def test_handlers_that_are_no_functions(act: Callable[[Any], None], workers: int) -> None:
    cls = node(act, lambda self: True)
    error = explained(lambda: check(System([cls(), cls(), Sink()]), workers=workers, max_states=50), "Node.act")
    assert "is not a function of its inputs: run twice, it" in error.message
    assert UNSTEADY[act] in error.message


@pytest.mark.parametrize("workers", [1, 2])
def test_a_counter_in_a_closure_is_caught(workers: int) -> None:
    explained(
        lambda: run(counts_in_a_closure(), workers=workers), "Node.act", "sent Note(content=1) to Sink0", "and then"
    )


def test_the_order_of_spawning_is_caught() -> None:
    def act(self: Any) -> None:
        self.n += 3
        for name in self.names:
            self.spawn(Child, age=len(name))

    explained(lambda: run(act, spare={Child: 3}), "Node.act is not a function of its inputs")


def test_the_order_of_sends_matters_on_queues_only() -> None:
    def act(self: Any) -> None:
        self.n += 3
        for name in self.names:
            self.send(Sink.pid(0), Note(name))

    explained(lambda: run(act, network=fifo()), "Node.act is not a function of its inputs", "sent")
    assert run(act).statistics.states == 1 + 2**3


@pytest.mark.parametrize("content", [{"red", "green"}, frozenset({"red", "green"}), ({"red", "green"},)])
def test_a_set_in_a_received_message(content: Any) -> None:
    class Reader(Process):
        order: tuple[str, ...] = ()

        @on(Note)
        def read(self, m: Note) -> None:
            names = m.content[0] if isinstance(m.content, tuple) else m.content
            self.order = tuple(names)

    def act(self: Any) -> None:
        self.n += 3
        self.send(Reader.pid(0), Note(content))

    explained(lambda: check(System([node(act)(), Reader()])), "Reader.read", "set order to")


def test_recoveries_and_beginnings_are_audited() -> None:
    class Unsteady(Process):
        stamp: int = 0

        @recovery
        def wake(self) -> None:
            self.stamp = time.perf_counter_ns()

    class Early(Process):
        stamp: int = 0

        @init
        def start(self) -> None:
            self.stamp = time.perf_counter_ns()

    explained(lambda: check(System([Unsteady()], faults=[crash_recovery(Unsteady)])), "Unsteady.wake", "set stamp to")
    explained(lambda: check(System([Early()])), "Early.start", "set stamp to")


def announce(self: Any) -> None:
    self.n += 1
    self.announce(self.names)


@pytest.mark.parametrize("workers", [1, 2])
def test_monitors(workers: int) -> None:
    def observed(observe: Callable[..., None]) -> Callable[[], Any]:
        body = {"__annotations__": {"order": Any}, "order": None, "observe": observe}
        cls = types.new_class("Eye", (Monitor,), {}, lambda namespace: namespace.update(body))
        return lambda: run(announce, workers=workers, monitors=[cls()])

    def by_clock(self: Any, process: Pid, event: Any) -> None:
        self.order = time.perf_counter_ns()

    def by_order(self: Any, process: Pid, event: Any) -> None:
        self.order = tuple(event)

    def by_own_set(self: Any, process: Pid, event: Any) -> None:
        self.order = tuple({"red", "green", "blue"})

    def by_object(self: Any, process: Pid, event: Any) -> None:
        self.order = object()

    def by_new_field(self: Any, process: Pid, event: Any) -> None:
        self.oops = 1

    def by_raising(self: Any, process: Pid, event: Any) -> None:
        event["red"]

    def by_sorting(self: Any, process: Pid, event: Any) -> None:
        self.order = sorted(event)

    for observe in (by_clock, by_order, by_own_set):
        explained(observed(observe), "Eye.observe is not a function of its state and the event")
    explained(observed(by_object), "Eye.observe", "field order", "object")
    explained(observed(by_new_field), "Eye.observe sets self.oops")
    raised = observed(by_raising)()
    assert raised.property == "no_exceptions"
    assert (raised.trace.exception.where, raised.trace.exception.type) == ("Eye.observe", "TypeError")
    assert observed(by_sorting)().statistics.states == 4

    class Blind(Monitor):
        pass

    explained(lambda: run(announce, workers=workers, monitors=[Blind()]), "Blind", "observe")
    start = types.new_class(
        "Eye", (Monitor,), {}, lambda body: body.update(__annotations__={"x": Any}, observe=by_sorting)
    )
    explained(lambda: run(announce, monitors=[start(x=object())]), "monitor Eye: field x")  # type: ignore[call-arg]


# -- and what is fine ------------------------------------------------------------------------------------------------


def sums(self: Any) -> None:
    self.a = sum({len(name) for name in self.names})


def sorts(self: Any) -> None:
    self.a = sorted(self.names)
    self.b = min(self.frozen)


def broadcasts_over_a_set(self: Any) -> None:
    self.a = 1
    for pid in {self.id, Sink.pid(0)}:
        self.send(pid, Note(len(self.names)))


def chooses_from_a_set(self: Any) -> None:
    self.a = self.choose(self.names)
    self.b = self.choose({"black", "white"})


def keeps_the_order_of_a_dict(self: Any) -> None:
    self.table = {"z": 1, "a": 2}
    self.a = tuple(self.table)


def builds_sets(self: Any) -> None:
    self.names = {name.upper() for name in self.names} | {"black"} - {"white"}
    self.names ^= {"RED"}
    self.frozen = frozenset(name for name in self.names if name)
    self.a = len(self.names & self.frozen), self.names == set(self.frozen), self.frozen <= self.names, repr({1}), set()


def compares_types(self: Any) -> None:
    self.a = isinstance(self.names, set) and isinstance(self.frozen, frozenset) and isinstance({1}, set)


def matches(self: Any) -> None:
    match -1 - self.n:
        case -1 | -2:
            self.a = 1
        case _:
            self.a = 2 - 1j == 2


@pytest.mark.parametrize(
    "act",
    [
        sums,
        sorts,
        broadcasts_over_a_set,
        chooses_from_a_set,
        keeps_the_order_of_a_dict,
        builds_sets,
        compares_types,
        matches,
    ],
    ids=lambda act: act.__name__,
)
def test_what_is_fine_is_not_reported(act: Callable[[Any], None]) -> None:
    cls = node(act, lambda self: self.a is None)
    verdict = check(System([cls(), Sink()]), explore=True)
    assert verdict.status == "holds"
    assert verdict.statistics.states > 1


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator that adds something of its own."""

    @functools.wraps(function)
    def wrapper(self: Any, *arguments: Any, **more: Any) -> Any:
        self.trail = (*self.trail, function.__name__)
        return function(self, *arguments, **more)

    return wrapper


class Base(Process):
    n: int = 0
    trail: tuple[str, ...] = ()
    found: Any = None

    @action(when=lambda self: self.n < 1)
    def first(self) -> None:
        self.n += 1
        self.trail = (*self.trail, "base")


def offset(amount: int) -> Callable[..., None]:
    doubled = amount * 2

    def act(self: Any, *, step: int = 1) -> None:
        self.found = {doubled + step} | {amount}

    return act


class Rich(Base):
    """Everything that a function can have."""

    @action(when=lambda self: self.n < 1)
    def first(self, more: int = 2, *, again: int = 3) -> None:
        super().first()
        self.found = sorted({more, again})
        self.__private(again)

    def __private(self, value: int) -> None:
        self.trail = (*self.trail, f"private {value}")

    @action(when=lambda self: self.n == 1)
    @logged
    def inside(self) -> None:
        def add(amount: int) -> set[int]:
            nonlocal total
            total += amount
            return {total, 0}

        total = self.n
        self.n = max(add(1)) + len(add(0)) - 1
        self.found = [sum(x for x in {1, 2}) for _ in range(2)]

    @logged
    @action(when=lambda self: self.n == 3)
    def outside(self) -> None:
        self.n += 1
        set = len  # noqa: A001
        self.found = set("four")

    closure = action(offset(5), when=lambda self: self.n == 4 and self.found == 4)


def test_every_kind_of_function_works_as_a_probe() -> None:
    """The same result as by plain Python, which is worked out here by hand."""
    seen: list[Any] = []

    def look(s: Any) -> bool:
        p = s[Rich][0]
        seen.append((p.n, p.trail, p.found))
        return True

    assert check(System([Rich()], properties=[always(look)])).status == "holds"
    one = ("base", "private 3")
    both = (*one, "inside", "outside")
    expected = [(0, (), None), (1, one, [2, 3]), (3, both[:3], [3, 3]), (4, both, 4), (4, both, {5, 11})]
    assert len([state for i, state in enumerate(seen) if state not in seen[:i]]) == len(expected)
    assert all(state in seen for state in expected)


def test_a_set_in_a_decorated_handler_is_caught() -> None:
    class Leaky(Base):
        @action(when=lambda self: self.n == 1)
        @logged
        def leak(self) -> None:
            self.found = tuple({"red", "green", "blue"})

    explained(lambda: check(System([Leaky()])), "Leaky.leak", "set found to")
