"""Mailboxes: one queue per receiver, of which the first message that a handler accepts is taken."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from plait import (
    Message,
    ModelError,
    Network,
    Process,
    System,
    UsageError,
    action,
    always,
    check,
    field,
    fifo,
    final,
    mailbox,
    on,
    reachable,
    unordered,
)
from tests.oracle.explorer import Exploration, explore
from tests.oracle.random_systems import mailbox_systems
from tests.support.agreement import compare


class Letter(Message):
    number: int


class Key(Message): ...


class Writer(Process):
    left: tuple[int, ...]
    to: int = 0

    @action(when=lambda self: len(self.left) > 0)
    def write(self):
        self.send(Reader.pid(self.to), Letter(self.left[0]))
        self.left = self.left[1:]


class Reader(Process):
    got: list[int] = field(default_factory=list)
    open: bool = True

    @on(Letter, where=lambda self, m: self.open or m.number != 1)
    def read(self, m):
        self.got.append(m.number)

    @on(Key)
    def unlock(self, m):
        self.open = True


def orders(network: Network, *writers: Process, opened: bool = True) -> set[tuple[int, ...]]:
    """The orders in which the letters can be read, by the oracle and by the engine."""
    found = set()
    count = sum(len(w.left) for w in writers if isinstance(w, Writer))
    for order in [(1, 2, 3), (1, 3, 2), (2, 1, 3), (2, 3, 1), (3, 1, 2), (3, 2, 1)]:
        wanted = list(order[:count])
        goal = reachable(lambda s, wanted=wanted: s[Reader][0].got == wanted, name="goal")
        system = System([*writers, Reader(open=opened)], network=network, properties=[goal])
        verdict = check(system)
        assert ("goal" in explore(system).violated) == (verdict.status == "violated")
        found |= {order} if verdict.status == "holds" else set()
    return found


@pytest.mark.slow
def test_a_mailbox_keeps_the_order_of_each_sender_and_merges_senders() -> None:
    merged = {(1, 2, 3), (1, 3, 2), (3, 1, 2)}
    assert orders(mailbox(), Writer(left=(1, 2)), Writer(left=(3,))) == merged
    assert orders(fifo(), Writer(left=(1, 2)), Writer(left=(3,))) == merged
    assert len(orders(unordered(), Writer(left=(1, 2)), Writer(left=(3,)))) == 6


class Relay(Process):
    """Sends 2 after it has got a letter."""

    @on(Letter)
    def pass_on(self, m):
        self.send(Reader.pid(0), Letter(2))


class Both(Process):
    """Sends 1 to the reader, and then a letter to the relay."""

    sent: int = 0

    @action(when=lambda self: self.sent < 2)
    def write(self):
        self.sent += 1
        self.send(Reader.pid(0) if self.sent == 1 else Relay.pid(0), Letter(1))


def test_a_mailbox_keeps_causes_before_effects_and_queues_per_sender_do_not() -> None:
    """The relay sends 2 because 1 was sent before. Only one queue for all senders keeps this order."""

    @always
    def cause_first(s):
        return s[Reader][0].got in ([], [1], [1, 2])

    for network, status in ((mailbox(), "holds"), (fifo(), "violated"), (unordered(), "violated")):
        system = System([Both(), Relay(), Reader()], network=network, properties=[cause_first])
        assert check(system).status == status
        assert ("cause_first" in explore(system).violated) == (status == "violated")


def test_the_first_message_that_is_accepted_is_taken_and_the_others_keep_their_place() -> None:
    class Locksmith(Process):
        done: bool = False

        @action(when=lambda self: not self.done)
        def help(self):
            self.done = True
            self.send(Reader.pid(0), Key())

    @final
    def deferred_comes_later(s):
        return s[Reader][0].got in ([1, 2, 3], [2, 1, 3], [2, 3, 1])

    system = System(
        [Writer(left=(1, 2, 3)), Locksmith(), Reader(open=False)], network=mailbox(), properties=[deferred_comes_later]
    )
    verdict, truth = check(system, keep_going=True), explore(system)
    assert verdict.status == "holds"
    assert (verdict.statistics.states, verdict.statistics.transitions) == (truth.states, truth.transitions)
    wrong = System(
        [Writer(left=(1, 2, 3)), Locksmith(), Reader(open=False)],
        network=fifo(),  # here the first message blocks the others
        properties=[reachable(lambda s: s[Reader][0].got == [2, 3, 1], name="later")],
    )
    assert check(wrong).status == "violated"


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(mailbox_systems(limit=60))
def test_random_systems(pair: tuple[System, Exploration]) -> None:
    compare(*pair)


def test_what_a_mailbox_does_not_support_is_refused() -> None:
    class Chair(Process):
        @on(Letter, quorum=2)
        def count(self, letters): ...

    with pytest.raises(ModelError, match="taken message by message"):
        System([Chair()], network=mailbox())
    with pytest.raises(ModelError, match="loses and copies no messages"):
        Network("mailbox", lossy=True)
    system = System(
        [Writer(left=(1,)), Reader()], network=mailbox(), properties=[reachable(lambda s: True, name="any")]
    )
    with pytest.raises(UsageError, match="do not commute"):
        check(system, reduce="por")
    with pytest.raises(UsageError, match="do not commute"):
        check(system, search="stateless", reduce="dpor")
    twins = System(
        [Writer(left=(1,)), Writer(left=(1,)), Reader()],
        network=mailbox(),
        symmetric=[Writer],
        properties=[reachable(lambda s: True, name="any")],
    )
    with pytest.raises(UsageError, match="symmetry does not support"):
        check(twins, reduce="symmetry")
