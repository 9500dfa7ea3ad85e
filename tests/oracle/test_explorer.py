"""The oracle against facts that can be worked out on paper, and published counts."""

from __future__ import annotations

import dataclasses
import enum
from math import comb
from typing import Any

import pytest

from plait import (
    Message,
    ModelError,
    Monitor,
    Network,
    Pid,
    Process,
    System,
    action,
    always,
    crash_recovery,
    crash_stop,
    duplicating,
    durable,
    fifo,
    final,
    init,
    majority,
    on,
    reachable,
    recovery,
    some,
    unordered,
)
from tests.oracle.explorer import explore
from tests.oracle.relation import freeze, initial, successors, thaw


class Note(Message):
    number: int = 0


class Counter(Process):
    limit: int = 1
    count: int = 0

    @action(when=lambda self: self.count < self.limit)
    def tick(self) -> None:
        self.count += 1


class Source(Process):
    """Sends its numbers at the start."""

    numbers: tuple[int, ...] = (0,)
    to: Pid = Pid("Sink", 0)

    @init
    def start(self) -> None:
        for number in self.numbers:
            self.send(self.to, Note(number))


class Sink(Process):
    """Remembers what it got, in order."""

    got: tuple[int, ...] = ()

    @on(Note)
    def get(self, m: Note) -> None:
        self.got = (*self.got, m.number)


class Ignorer(Process):
    """Takes nothing, so that only the network moves."""


def counts(system: System) -> tuple[int, int, int, int]:
    found = explore(system)
    return found.states, found.transitions, found.terminal, found.depth


# -- values


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    y: Any


def test_values_of_different_types_are_different() -> None:
    values = [1, True, 1.0, "1", b"1", (1,), [1], {1}, frozenset({1}), {1: 1}, {True: 1}, Colour.RED, Point(1, 1)]
    values += [0, False, 0.0, None, (), [], set(), {}, Colour.BLUE, Point(1, True), Pid("A", 1), Note(1)]
    assert len({freeze(v) for v in values}) == len(values)


def test_the_order_of_sets_and_dicts_is_no_difference() -> None:
    assert freeze({8: "a", 0: "b"}) == freeze({0: "b", 8: "a"})
    assert freeze({8, 0}) == freeze({0, 8})


def test_thawed_values_are_equal_and_share_nothing() -> None:
    inner = [1]
    value = {"a": [inner, inner], Pid("A", 0): Point(1, {2.5, None}), Colour.RED: (True, 1)}
    copy = thaw(freeze(value))
    assert copy == value
    copy["a"][0].append(2)
    assert copy["a"] == [[1, 2], [1]]
    assert inner == [1]


# -- interleaving


@pytest.mark.parametrize(("n", "limit"), [(1, 3), (2, 1), (3, 2), (4, 1)])
def test_independent_counters_make_a_grid(n: int, limit: int) -> None:
    edges = n * limit * (limit + 1) ** (n - 1)
    assert counts(System([Counter(limit=limit) for _ in range(n)])) == ((limit + 1) ** n, edges, 1, n * limit)


class Chooser(Process):
    picked: tuple[int, ...] = ()

    @action(when=lambda self: not self.picked)
    def pick(self) -> None:
        first = self.choose([1, 2, 3])
        self.picked = (first, self.choose({4, 5}) if first < 3 else self.choose([0, 0, 0, 0]))


def test_every_combination_of_choices_is_a_transition() -> None:
    # (1 or 2) and (4 or 5), or 3 and four times the same: 8 transitions to 5 states
    assert counts(System([Chooser()])) == (1 + 4 + 1, 4 + 4, 5, 1)


class Spinner(Process):
    @action
    def spin(self) -> None: ...


def test_a_self_loop_is_a_transition_but_no_move() -> None:
    assert counts(System([Spinner(), Counter()])) == (2, 3, 1, 1)


# -- networks


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        # Two equal messages and another one: the orders of the bag {1, 1, 2} as prefixes: 1+2+3+3.
        (unordered(), (9, 8, 3, 3)),
        # One queue: one order.
        (fifo(), (4, 3, 1, 3)),
    ],
)
def test_delivery(network: Network, expected: tuple[int, int, int, int]) -> None:
    assert counts(System([Source(numbers=(1, 1, 2)), Sink()], network=network)) == expected


class Once(Process):
    """Takes each number once; tells whether it is asked again."""

    got: frozenset[int] = frozenset()
    again: bool = False

    @on(Note)
    def get(self, m: Note) -> None:
        self.again |= m.number in self.got
        self.got |= {m.number}


def test_a_duplicating_network_delivers_a_set_for_ever() -> None:
    source = Source(numbers=(1, 1, 2), to=Once.pid(0))
    # {}; {1}, {2}, {1,2}, and each of the last three after a repetition; two deliveries in each of the 7 states.
    assert counts(System([source, Once()], network=duplicating())) == (7, 14, 1, 3)


def test_as_a_bag_equal_messages_of_one_sender_are_one_choice_but_two_deliveries() -> None:
    assert counts(System([Source(numbers=(1, 1)), Sink()])) == (3, 2, 1, 2)


def test_equal_messages_of_two_senders_are_two() -> None:
    # Sink forgets who sent, the inbox does not: {a,b}, {a}, {b}, {}.
    assert counts(System([Source(), Source(), Sink()])) == (4, 4, 1, 2)


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        (unordered(lossy=True), (6, 7, 3)),  # bags of {1,1,2}; 1 is lost in 4 of them, 2 in 3
        (unordered(losses=1), (3, 2, 1)),
        (unordered(losses=2), (5, 5, 2)),  # {112}; {12}, {11}; {2}, {1}: the last by two ways
        (fifo(lossy=True), (6, 7, 3)),  # 112 -> 12, 11; 12 -> 2, 1; 11 -> 1; 1 -> empty; 2 -> empty
        (duplicating(lossy=True), (4, 4, 2)),  # subsets of {1, 2}
        (duplicating(duplications=0), (1, 0, 0)),
        (duplicating(duplications=1), (3, 2, 1)),
        (duplicating(duplications=2), (6, 6, 2)),  # how often 1 was copied, and 2
    ],
)
def test_network_steps(network: Network, expected: tuple[int, int, int]) -> None:
    system = System([Source(numbers=(1, 1, 2), to=Pid("Ignorer", 0)), Ignorer()], network=network)
    found = explore(system)
    assert (found.states, found.transitions, found.depth) == expected
    assert found.terminal == found.states


def test_fifo_loses_any_position_once_per_result() -> None:
    system = System([Source(numbers=(1, 2, 1), to=Pid("Ignorer", 0)), Ignorer()], network=fifo(losses=1))
    assert counts(system) == (4, 3, 4, 1)  # 21, 11, 12


def test_messages_wait_for_an_unborn_process_and_are_lost_there_too() -> None:
    system = System([Source()], spare={Sink: 1}, network=unordered(losses=1))
    assert counts(system) == (2, 1, 2, 1)


# -- quorums


class Gatherer(Process):
    done: tuple[int, ...] = ()

    @on(Note, quorum=2, same="number", where=lambda self, m: not self.done)
    def gather(self, ms: tuple[Note, ...]) -> None:
        self.done = tuple(m.sender.index for m in ms)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_a_quorum_takes_each_set_of_senders(n: int) -> None:
    system = System([*(Source(to=Gatherer.pid(0)) for _ in range(n)), Gatherer()])
    assert counts(system) == (1 + comb(n, 2), comb(n, 2), comb(n, 2), 1)


def test_same_splits_a_quorum() -> None:
    numbers = [1, 1, 1, 2, 2]
    system = System([*(Source(numbers=(i,), to=Gatherer.pid(0)) for i in numbers), Gatherer()])
    assert explore(system).transitions == comb(3, 2) + comb(2, 2)


def test_two_messages_of_one_sender_are_no_quorum() -> None:
    assert counts(System([Source(numbers=(1, 1), to=Gatherer.pid(0)), Gatherer()])) == (1, 0, 1, 0)


def test_a_quorum_on_queues_takes_heads() -> None:
    sources = [Source(numbers=(1, 2), to=Gatherer.pid(0)), Source(numbers=(2, 1), to=Gatherer.pid(0))]
    assert explore(System([*sources, Gatherer()], network=fifo())).transitions == 0
    assert explore(System([*(type(s)(numbers=s.numbers, to=s.to) for s in sources), Gatherer()])).transitions == 2


class Quorums(Process):
    need: int = 1
    log: tuple[str, ...] = ()

    @on(Note, quorum=majority(Source), where=lambda self, m: not self.log)
    def most(self, ms: tuple[Note, ...]) -> None:
        self.log = ("most", *(repr(m.sender) for m in ms))

    @on(Note, quorum=some(1, Counter), where=lambda self, m: not self.log)
    def never(self, ms: tuple[Note, ...]) -> None:
        self.log = ("never",)

    @on(Note, quorum=lambda self: self.need, where=lambda self, m: not self.log)
    def needed(self, ms: tuple[Note, ...]) -> None:
        self.log = ("needed", *(repr(m.sender) for m in ms))


def test_quorums_by_role_and_by_function() -> None:
    sources = [Source(to=Quorums.pid(0)) for _ in range(4)]
    system = System([*sources, Quorums(need=2), Counter(limit=0)])
    labels = [t.label for t in successors(system, initial(system))]
    assert labels.count("most") == comb(4, 3)
    assert labels.count("needed") == comb(4, 2)
    assert "never" not in labels


# -- faults


def test_crash_stop_drops_the_inbox_and_keeps_the_fields() -> None:
    # With and without the delivery, each before and after the crash; then nothing.
    system = System([Source(), Sink()], faults=[crash_stop(Sink)])
    assert counts(system) == (4, 3, 3, 2)


def test_each_fault_has_its_own_budget() -> None:
    n = 4
    system = System([Counter(limit=0) for _ in range(n)], faults=[crash_stop(budget=2)])
    assert explore(system).states == comb(n, 0) + comb(n, 1) + comb(n, 2)
    both = System([Counter(limit=0)], faults=[crash_stop(Counter), crash_stop(Counter, Sink)])
    assert counts(both) == (3, 2, 3, 1)  # which budget was used is part of the state


class Server(Process):
    kept: int = durable(0)
    lost: int = 0
    back: int = durable(0)

    @action(when=lambda self: self.kept < 1)
    def work(self) -> None:
        self.kept += 1
        self.lost += 1

    @recovery
    def wake(self) -> None:
        self.back = self.choose([1, 2])


def test_crash_recovery_resets_volatile_fields() -> None:
    found = explore(System([Server(lost=7)], faults=[crash_recovery()]))
    values = {(s.slots[0].status, *(v[1] for v in s.slots[0].fields)) for s in found.seen}
    assert values == {
        ("up", 0, 7, 0),
        ("up", 1, 8, 0),
        ("down", 0, 7, 0),
        ("down", 1, 7, 0),
        *(("up", 0, 7, back) for back in (1, 2)),
        *(("up", 1, 8, back) for back in (1, 2)),
        *(("up", 1, 7, back) for back in (1, 2)),
    }
    assert (found.transitions, found.terminal) == (1 + 2 + 4 + 2, 10 - 3)


class Starter(Process):
    started: int = 0

    @init
    def start(self) -> None:
        self.started = 5


def test_a_reset_is_to_the_values_before_init() -> None:
    found = explore(System([Starter()], faults=[crash_recovery()]))
    assert {s.slots[0].fields[0][1] for s in found.seen if s.slots[0].status == "down"} == {0}


# -- spawning, monitors, assertions


class Parent(Process):
    born: int = 0

    @action(when=lambda self: self.born < 2)
    def bear(self) -> None:
        self.send(self.spawn(Sink), Note(self.born))
        self.born += 1


def test_spawn_takes_the_first_free_slot() -> None:
    system = System([Parent()], spare={Sink: 2})
    # No child; the first before and after its delivery; with the second: each delivered or not.
    assert counts(system) == (1 + 2 + 4, 1 + (2 + 1) + (2 + 1 + 1), 1, 4)
    with pytest.raises(ModelError, match="slot"):
        explore(System([Parent()], spare={Sink: 1}))


class Teller(Process):
    said: bool = False

    @action(when=lambda self: not self.said)
    def say(self) -> None:
        self.said = True
        self.announce("hello")


class Log(Monitor):
    who: tuple[Pid, ...] = ()

    def observe(self, process: Pid, event: Any) -> None:
        self.who = (*self.who, process)


def test_a_monitor_is_part_of_the_state() -> None:
    tellers = [Teller() for _ in range(3)]
    system = System(tellers, monitors=[Log()])
    assert explore(system).states == 1 + 3 + 6 + 6  # all orders, against 2**3 without it


class Careful(Process):
    n: int = 0

    @action(when=lambda self: self.n < 3)
    def step(self) -> None:
        self.n += 1
        assert self.n != 3


def test_assertions_and_properties() -> None:
    @always
    def small(s: Any) -> bool:
        assert s[Careful][0].n < 2
        return True

    @final
    def done(s: Any) -> bool:
        return bool(s[Careful][0].n == 3)

    @reachable
    def one(s: Any) -> bool:
        return bool(s[Careful][0].n == 1)

    @reachable
    def three(s: Any) -> bool:
        return bool(s[Careful][0].n == 3)

    found = explore(System([Careful()], properties=[small, done, one, three]))
    assert (found.states, found.transitions, found.terminal) == (3, 3, 0)
    assert {name: r.length for name, r in found.properties.items()} == {
        "assertions": 3,
        "no_exceptions": None,
        "small": 2,
        "done": None,
        "one": 1,
        "three": None,
    }
    assert found.violated == {"assertions", "small", "three"}


# -- published counts


class Ping(Message):
    number: int


class Pong(Message):
    number: int


class Player(Process):
    serve_to: Pid | None = None
    count: int = 0

    @init
    def serve(self) -> None:
        if self.serve_to is not None:
            self.send(self.serve_to, Ping(0))

    @on(Ping, where=lambda self, m: self.count == m.number and m.number < 5)
    def ping(self, m: Ping) -> None:
        self.send(m.sender, Pong(m.number))
        self.count += 1

    @on(Pong, where=lambda self, m: self.count == m.number)
    def pong(self, m: Pong) -> None:
        self.send(m.sender, Ping(m.number + 1))
        self.count += 1


@pytest.mark.parametrize("network", [unordered(), duplicating(), fifo()])
def test_ping_pong(network: Network) -> None:
    assert counts(System([Player(serve_to=Player.pid(1)), Player()], network=network)) == (11, 10, 1, 10)


class Vote(enum.Enum):
    WORKING = 0
    PREPARED = 1
    COMMITTED = 2
    ABORTED = 3


class Prepared(Message):
    pass


class Commit(Message):
    pass


class Abort(Message):
    pass


class Manager(Process):
    """The TLA+ TwoPhase specification: the transaction manager."""

    done: bool = False
    prepared: frozenset[Pid] = frozenset()

    @on(Prepared, where=lambda self, m: not self.done)
    def receive(self, m: Prepared) -> None:
        self.prepared |= {m.sender}

    @action(when=lambda self: not self.done and len(self.prepared) == 3)
    def commit(self) -> None:
        self.done = True
        self.broadcast(Resource, Commit())

    @action(when=lambda self: not self.done)
    def abort(self) -> None:
        self.done = True
        self.broadcast(Resource, Abort())


class Resource(Process):
    vote: Vote = Vote.WORKING

    @action(when=lambda self: self.vote is Vote.WORKING)
    def prepare(self) -> None:
        self.vote = Vote.PREPARED
        self.send(Manager.pid(0), Prepared())

    @action(when=lambda self: self.vote is Vote.WORKING)
    def give_up(self) -> None:
        self.vote = Vote.ABORTED

    @on(Commit)
    def committed(self, m: Commit) -> None:
        self.vote = Vote.COMMITTED

    @on(Abort)
    def aborted(self, m: Abort) -> None:
        self.vote = Vote.ABORTED


def test_two_phase_commit() -> None:
    @always
    def consistent(s: Any) -> bool:
        return not {Vote.COMMITTED, Vote.ABORTED} <= {r.vote for r in s[Resource]}

    @reachable
    def commits(s: Any) -> bool:
        return all(r.vote is Vote.COMMITTED for r in s[Resource])

    processes = [Manager(), *(Resource() for _ in range(3))]
    found = explore(System(processes, network=duplicating(), properties=[consistent, commits]))
    assert (found.states, found.transitions) == (288, 1145)  # Stateright: 288 unique, 1,146 total with the initial one
    assert not found.violated
    assert found.properties["commits"].length == 3 + 3 + 1 + 3
