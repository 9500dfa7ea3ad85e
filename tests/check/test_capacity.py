"""Channels with a capacity: a step that sends to a full one is not possible, or the message is dropped."""

from __future__ import annotations

from typing import Any

import pytest

from plait import (
    Message,
    ModelError,
    Process,
    System,
    action,
    always,
    check,
    deadlock_free,
    fifo,
    final,
    init,
    on,
    reachable,
    unordered,
)
from tests.oracle.explorer import explore
from tests.support.agreement import compare as compare_all
from tests.support.configurations import leaving_out, violated


class Item(Message):
    number: int


class Producer(Process):
    made: int = 0
    most: int = 5

    @action(when=lambda self: self.made < self.most)
    def make(self) -> None:
        self.made += 1
        self.broadcast(Consumer, Item(self.made))


class Consumer(Process):
    taken: tuple[int, ...] = ()
    works: bool = True

    @on(Item, where=lambda self, m: self.works)
    def take(self, m: Item) -> None:
        self.taken = (*self.taken, m.number)


@always
def in_order(s: Any) -> bool:
    return all(list(c.taken) == sorted(c.taken) for c in s[Consumer])


@always
def nothing_is_lost(s: Any) -> bool:
    return all(c.taken == tuple(range(1, len(c.taken) + 1)) for c in s[Consumer])


def pipe(network: Any, *properties: Any, works: bool = True, producers: int = 1) -> System:
    makers = [Producer() for _ in range(producers)]
    return System([*makers, Consumer(works=works)], network=network, properties=properties or [in_order])


def test_a_full_channel_blocks_its_sender() -> None:
    # As many states as pairs (made, taken) with taken <= made <= taken + capacity, and made at most five.
    for capacity, states in ((1, 11), (2, 15), (5, 21)):
        verdict = check(pipe(fifo(capacity=capacity), in_order, nothing_is_lost))
        assert (verdict.status, verdict.statistics.states) == ("holds", states)
    assert check(pipe(fifo(), in_order)).statistics.states == 21
    assert check(pipe(unordered(capacity=1), nothing_is_lost)).status == "holds"
    assert check(pipe(unordered(capacity=2), nothing_is_lost)).status == "violated"


def test_a_channel_belongs_to_one_sender() -> None:
    """Two producers do not compete for room: each has a channel of its own."""
    verdict = check(pipe(unordered(capacity=1), deadlock_free(lambda s: len(s[Consumer][0].taken) == 10), producers=2))
    assert verdict.status == "holds"


def test_a_full_channel_drops() -> None:
    verdict = check(pipe(fifo(capacity=1, full="drop"), in_order, nothing_is_lost), keep_going=True)
    assert {p.name: p.status for p in verdict.properties} == {"in_order": "holds", "nothing_is_lost": "violated"}
    assert "the channel to Consumer0 is full" in str(verdict)


def test_full_channels_may_deadlock() -> None:
    verdict = check(pipe(fifo(capacity=2), deadlock_free(), works=False))
    assert verdict.status == "violated"
    assert verdict.trace is not None
    assert len(verdict.trace) == 2
    waits = {(w.lane, w.handler): w.reason for w in verdict.trace.waiting}
    assert waits["Producer0", "make"] == "there is no room in the channel to Consumer0"
    assert check(pipe(fifo(capacity=2, full="drop"), deadlock_free(), works=False)).trace is not None


class Echo(Process):
    left: int = 3

    @init
    def begin(self) -> None:
        self.send(self.id, Item(0))

    @on(Item)
    def again(self, m: Item) -> None:
        self.left -= 1
        for _ in range(2 if self.left == 2 else 1 if self.left > 0 else 0):
            self.send(self.id, Item(self.left))

    @action(when=lambda self: self.left == 1)
    def shout(self) -> None:
        self.send(self.id, Item(9))


@pytest.mark.parametrize(
    "network", [fifo(capacity=2), unordered(capacity=2), fifo(capacity=2, full="drop"), unordered(capacity=4)]
)
def test_messages_to_oneself_need_room_too(network: Any) -> None:
    system = System([Echo()], network=network, properties=[always(lambda s: s[Echo][0].left >= -2, name="it")])
    compare_all(system, explore(system))


def test_bad_capacities() -> None:
    for bad in (0, -1, True, "3", 1.5):
        with pytest.raises(ModelError, match="is not a number of messages"):
            fifo(capacity=bad)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="full='lose' is not known"):
        fifo(capacity=2, full="lose")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match='full="drop" needs a capacity'):
        fifo(full="drop")
    assert str(fifo(capacity=2)) == "fifo, at most 2 per sender and receiver, more are blocked"


@pytest.mark.parametrize("native", ["auto", "off"])
def test_a_step_that_can_never_send_is_an_error(native: Any) -> None:
    class Flood(Process):
        done: bool = False

        @action(when=lambda self: not self.done)
        def flood(self) -> None:
            self.done = True
            for number in range(3):
                self.send(Consumer.pid(0), Item(number))

    class First(Process):
        @init
        def begin(self) -> None:
            self.send([Consumer.pid(0)] * 2, Item(1))

    properties = [always(lambda s: True, name="it")]
    with pytest.raises(
        ModelError, match=r"Flood\.flood sends 3 messages to Consumer0 in one step, but the network holds at most 2"
    ):
        check(System([Flood(), Consumer()], network=unordered(capacity=2), properties=properties), native=native)
    with pytest.raises(ModelError, match=r"First\.begin sends 2 messages to Consumer0 in one step"):
        check(System([First(), Consumer()], network=fifo(capacity=1), properties=properties), native=native)
    assert (
        check(
            System([First(), Consumer()], network=fifo(capacity=1, full="drop"), properties=properties)
        ).statistics.states
        == 2
    )


# -- partial-order reduction ------------------------------------------------------------------------------------------


class Sender(Process):
    """Sends two messages; then it has one thing to do, or the other."""

    sent: int = 0

    @action(when=lambda self: self.sent < 2)
    def push(self) -> None:
        self.sent += 1
        self.send(Slow.pid(0), Item(self.sent))


class Slow(Process):
    got: int = 0

    @on(Item)
    def get(self, m: Item) -> None:
        self.got = m.number


@pytest.mark.parametrize("full", ["block", "drop"])
def test_room_makes_orders_differ(full: Any) -> None:
    system = System(
        [Sender(), Slow()],
        network=fifo(capacity=1, full=full),
        properties=[
            reachable(lambda s: s[Slow][0].got == 2, name="second"),
            final(lambda s: s[Slow][0].got == 2, name="last"),
        ],
    )
    truth = explore(system)
    for options in ({"reduce": "por"}, {"reduce": "por", "search": "dfs"}, {"reduce": "dpor", "search": "stateless"}):
        verdict = check(system, keep_going=True, **options)  # type: ignore[arg-type]
        assert violated(verdict) == truth.violated == ({"last"} if full == "drop" else set())
    with leaving_out("dpor-room"):
        missed = check(system, keep_going=True, reduce="dpor", search="stateless")
        assert ("second" in violated(missed)) == (full == "drop")
