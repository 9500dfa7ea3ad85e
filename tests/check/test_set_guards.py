"""Quorum transitions in full: guards over sets, sets of any size, several types, several messages of one sender.

Random systems with all of this are in `tests/oracle/`; the tests of the engine and of each reduction compare with them.
Here: laws that can be counted by hand, the same answers of the virtual machine, and combinations.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from plait import Message, ModelError, Process, System, action, always, at_least, check, final, init, majority, on
from plait.check.explain.replay import replay
from plait.kernel.verdict import Verdict
from plait.model.network import Network, duplicating, fifo, unordered
from plait.model.properties import Property
from plait.model.quorum import AtLeast
from plait.rounds.check import check_rounds
from tests.oracle.explorer import explore
from tests.support.configurations import Way, run


class Coin(Message):
    value: int


class Note(Message):
    value: int


class Giver(Process):
    """Sends its coins, and then notes of the same values."""

    coins: tuple[int, ...] = ()
    notes: tuple[int, ...] = ()

    @init
    def give(self) -> None:
        for value in self.coins:
            self.send(Purse.pid(0), Coin(value))
        for value in self.notes:
            self.send(Purse.pid(0), Note(value))


class Purse(Process):
    total: int = 0
    taken: int = 0

    def put(self, ms: tuple[Any, ...]) -> None:
        self.total += sum(m.value for m in ms)
        self.taken += len(ms)


def purse(quorum: AtLeast | int, *kinds: type[Message], **options: Any) -> type[Process]:
    """A purse that takes a set once."""

    class Once(Purse):
        @on(*(kinds or (Coin,)), quorum=quorum, where=lambda self, m: self.taken == 0, **options)
        def take(self, ms: tuple[Any, ...]) -> None:
            self.put(ms)

    Once.__name__ = Once.__qualname__ = "Purse"
    return Once


def sets(made: type[Process], *givers: Giver, network: Network | None = None) -> int:
    """How many transitions the purse has: one for each set."""
    verdict = check(System([made(), *givers], network=network, properties=[]), keep_going=True)
    truth = explore(System([made(), *givers], network=network, properties=[]))
    assert (verdict.statistics.states, verdict.statistics.transitions) == (truth.states, truth.transitions)
    return verdict.statistics.transitions


def test_sets_are_counted_as_in_combinatorics() -> None:
    apart = [Giver(coins=(2**i,)) for i in range(5)]
    assert sets(purse(at_least(1)), *apart) == 2**5 - 1
    assert sets(purse(at_least(3)), *apart) == math.comb(5, 3) + math.comb(5, 4) + 1
    assert sets(purse(at_least(2, most=3)), *apart) == math.comb(5, 2) + math.comb(5, 3)
    assert sets(purse(2), *apart) == math.comb(5, 2)
    # Giver i's subsets with an even number of ones: half of all.
    even = purse(at_least(1), accept=lambda self, ms: len(ms) % 2 == 0)
    assert sets(even, *apart) == math.comb(5, 2) + math.comb(5, 4)
    both = [Giver(coins=(2**i,), notes=(2**i,)) for i in range(3)]
    assert sets(purse(at_least(1), Coin, Note), *both) == 3**3 - 1, "none, the coin or the note of each"
    assert sets(purse(at_least(1), Coin, Note, same="value"), *both) == 2 * 3
    assert sets(purse(at_least(1), Coin, Note, distinct=False), *both) == 4**3 - 1


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        (unordered(), (3 + 1) * (1 + 1) - 1),  # of three equal coins none to all, and the other one or not
        (duplicating(), 2 * 2 - 1),  # a set has each once
        (fifo(), 4),  # the first one, two, three, four of the queue
    ],
    ids=["bag", "set", "queue"],
)
def test_several_messages_of_one_sender(network: Network, expected: int) -> None:
    giver = Giver(coins=(1, 1, 1, 5))
    assert sets(purse(at_least(1), distinct=False), giver, network=network) == expected


def test_a_queue_gives_messages_up_to_the_first_that_is_refused() -> None:
    class Sorter(Purse):
        @on(Coin, Note, quorum=at_least(1), distinct=False, where=lambda self, m: self.taken == 0 and m.value != 3)
        def take(self, ms: tuple[Any, ...]) -> None:
            self.put(ms)

    Sorter.__name__ = "Purse"
    assert sets(Sorter, Giver(coins=(1, 2, 3), notes=(4,)), network=fifo()) == 2
    assert sets(Sorter, Giver(coins=(1, 2, 3), notes=(4,)), Giver(notes=(8,)), network=fifo()) == 3 * 2 - 1


# -- the same with the virtual machine, with reductions, and in traces --------------------------------------------------


class Pledge(Message):
    weight: int


class Objection(Message):
    weight: int


class Member(Process):
    weight: int
    voted: bool = False

    @action(when=lambda self: not self.voted)
    def vote(self) -> None:
        self.voted = True
        if self.choose((True, False)):
            self.send(Council.pid(0), Pledge(self.weight))
        else:
            self.send(Council.pid(0), Objection(self.weight))


class Council(Process):
    needed: int
    verdict: str | None = None
    heard: int = 0
    hurried: bool = False

    @action(when=lambda self: not self.hurried)
    def hurry(self) -> None:
        """What was not enough may be enough now: a step of the process enables a set."""
        self.hurried = True
        self.needed -= 1

    @on(
        Pledge,
        Objection,
        quorum=at_least(1),
        where=lambda self, m: self.verdict is None,
        accept=lambda self, ms: (
            sum(m.weight for m in ms if isinstance(m, Pledge)) >= self.needed
            or sum(m.weight for m in ms if isinstance(m, Objection)) > 2
        ),
    )
    def decide(self, ms: tuple[Pledge | Objection, ...]) -> None:
        self.heard = len(ms)
        pledged = sum(m.weight for m in ms if isinstance(m, Pledge))
        self.verdict = "passed" if pledged >= self.needed else "failed"


@always
def never_by_one(s: Any) -> bool:
    return all(c.verdict != "passed" or c.heard > 1 for c in s[Council])


@final
def decided(s: Any) -> bool:
    return all(c.verdict is not None for c in s[Council])


def council(*properties: Property, needed: int = 4, weights: tuple[int, ...] = (1, 2, 2)) -> System:
    return System([Council(needed=needed), *(Member(weight=w) for w in weights)], properties=properties)


WAYS: dict[str, dict[str, Any]] = {
    "bfs": {},
    "dfs": {"search": "dfs"},
    "python": {"native": "off"},
    "native": {"native": "only"},
    "por": {"reduce": "por", "split": "none"},
    "por, split": {"reduce": "por", "split": "combined"},
    "dpor": {"search": "stateless", "reduce": "dpor"},
    "coverage": {"coverage": True},
}


@pytest.mark.parametrize("needed", [2, 3, 4, 5])
@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_search_agrees_with_the_oracle(way: str, needed: int) -> None:
    truth = explore(council(never_by_one, decided, needed=needed))
    verdict = check(council(never_by_one, decided, needed=needed), keep_going=True, **WAYS[way])
    assert {p.name for p in verdict.properties if p.status == "violated"} == truth.violated
    if "reduce" not in WAYS[way]:
        assert (verdict.statistics.states, verdict.statistics.transitions) == (truth.states, truth.transitions)
    if verdict.trace is not None:
        assert len(list(replay(council(never_by_one, decided, needed=needed), verdict.trace))) == len(verdict.trace)


def test_reductions_leave_states_out_and_splits_do_not_add_any() -> None:
    full, none, split = (
        check(council(never_by_one), keep_going=True, **way).statistics.states
        for way in ({}, {"reduce": "por", "split": "none"}, {"reduce": "por", "split": "combined"})
    )
    assert split <= none < full


class Flag(Process):
    raised: bool = False

    @action(when=lambda self: not self.raised)
    def hoist(self) -> None:
        self.raised = True


class Gate(Process):
    open: bool = False
    passed: bool = False

    @action(when=lambda self: not self.open)
    def unlock(self) -> None:
        self.open = True

    @on(Coin, quorum=at_least(1), accept=lambda self, ms: self.open)
    def enter(self, ms: tuple[Coin, ...]) -> None:
        self.passed = True


class Turnstile(Process):
    passed: bool = False

    @on(Coin, quorum=2, distinct=False)
    def enter(self, ms: tuple[Coin, ...]) -> None:
        self.passed = True


class Payer(Process):
    """Pays coins, with a note after the first one."""

    coins: int

    @init
    def pay(self) -> None:
        for number in range(self.coins):
            self.send((*self.ids(Gate), *self.ids(Turnstile)), Coin(1))
            if number == 0:
                self.send((*self.ids(Gate), *self.ids(Turnstile)), Note(0))


@always
def only_with_a_flag(s: Any) -> bool:
    return not any(p.passed for p in (*s.get(Gate), *s.get(Turnstile))) or all(f.raised for f in s[Flag])


WITHOUT_A_MESSAGE: dict[str, Any] = {
    "a step of the process": lambda: System([Flag(), Gate(), Payer(coins=1)], properties=[only_with_a_flag]),
    "a copy": lambda: System(
        [Flag(), Turnstile(), Payer(coins=1)], network=duplicating(duplications=1), properties=[only_with_a_flag]
    ),
    "a loss in a queue": lambda: System(
        [Flag(), Turnstile(), Payer(coins=2)], network=fifo(losses=1), properties=[only_with_a_flag]
    ),
}


@pytest.mark.parametrize("case", WITHOUT_A_MESSAGE)
def test_a_set_that_is_enabled_without_another_message(case: str) -> None:
    """A stubborn set that waits for messages only raises the flag first, and misses the violation."""
    make = WITHOUT_A_MESSAGE[case]
    assert explore(make()).violated == {"only_with_a_flag"}
    for search, split in itertools.product(("bfs", "dfs"), ("none", "quorum", "combined")):
        assert run(make(), Way(search=search, split=split)).status == "violated"
    assert check(make(), search="stateless", reduce="dpor").status == "violated"
    mutant = run(make(), Way(split="none"), without="sets")
    assert mutant.status == "holds", "the rule was left out, and nothing was missed"


def test_members_of_equal_weight_are_symmetric() -> None:
    def symmetric(reduce: str) -> Verdict:
        system = System(
            [Council(needed=4), *(Member(weight=2) for _ in range(4))], properties=[never_by_one], symmetric=[Member]
        )
        return check(system, reduce=reduce, keep_going=True)

    assert symmetric("symmetry").statistics.states < symmetric("none").statistics.states
    assert symmetric("symmetry").status == symmetric("none").status == "holds"


def test_a_guard_over_sets_that_tells_processes_apart_is_no_symmetry() -> None:
    class Biased(Council):
        @on(Pledge, quorum=at_least(1), accept=lambda self, ms: ms[0].sender.index == 0)
        def favour(self, ms: tuple[Pledge, ...]) -> None:
            self.heard = 7

    members = [Member(weight=1) for _ in range(3)]
    Biased.__name__ = "Council"
    with pytest.raises(ModelError, match="Council"):
        check(System([Biased(needed=9), *members], properties=[never_by_one], symmetric=[Member]), reduce="symmetry")


def test_an_exception_of_accept_is_a_violation_with_a_run() -> None:
    made = purse(at_least(1), accept=lambda self, ms: 6 // (sum(m.value for m in ms) - 3) > 0)
    for options in WAYS.values():
        if options.get("native") == "only":
            continue
        verdict = check(System([made(), Giver(coins=(1,)), Giver(coins=(2,))], properties=[]), **options)
        assert (verdict.status, verdict.property) == ("violated", "no_exceptions")
        assert verdict.trace is not None
        assert verdict.trace.exception is not None
        assert verdict.trace.exception.type == "ZeroDivisionError"
        assert "accept guard of Purse.take" in verdict.trace.exception.where


def test_accept_must_be_a_function_and_change_nothing() -> None:
    calls = []
    forgetful = purse(at_least(1), accept=lambda self, ms: calls.append(1) or len(calls) % 2 == 0)  # type: ignore[func-returns-value]
    with pytest.raises(ModelError, match=r"accept guard of Purse\.take is not a function"):
        check(System([forgetful(), Giver(coins=(1,))], properties=[]))
    greedy = purse(at_least(1), accept=lambda self, ms: self.put(ms) is None)
    with pytest.raises(ModelError, match=r"accept guard of Purse\.take changes the state"):
        check(System([greedy(), Giver(coins=(1,))], properties=[]))


def test_very_many_sets_are_an_error_that_names_the_handler() -> None:
    givers = [Giver(coins=(i,)) for i in range(17)]
    with pytest.raises(ModelError, match=r"Purse\.take may take more than 50,000 sets") as refused:
        check(System([purse(at_least(1))(), *givers], properties=[]))
    assert "most=" in str(refused.value.hint)


def test_rounds_refuse_by_name() -> None:
    for made, what in (
        (purse(at_least(1)), "at_least"),
        (purse(1, accept=lambda self, ms: True), "accept="),
        (purse(1, distinct=False), "distinct=False"),
        (purse(1, Coin, Note), "several message types"),
    ):
        with pytest.raises(ModelError, match=f"Purse.take uses {what}, which rounds do not support"):
            check_rounds(System([made(), Giver(coins=(1,))], properties=[never_by_one]))


BAD: dict[str, tuple[Any, str]] = {
    "accept without quorum": (lambda: on(Coin, accept=lambda self, ms: True), "has no quorum"),  # type: ignore[call-overload]
    "types without quorum": (lambda: on(Coin, Note), "@on(Coin, Note) has no quorum"),  # type: ignore[call-overload]
    "distinct without quorum": (lambda: on(Coin, distinct=False), "distinct=False) has no quorum"),  # type: ignore[call-overload]
    "accept is no function": (lambda: on(Coin, quorum=1, accept=True), "accept must be a function"),  # type: ignore[call-overload]
    "no message class": (lambda: on(Coin, int, quorum=1), "expected a Message class"),  # type: ignore[type-var]
    "zero": (lambda: at_least(0), "expected 1 or more"),
    "nested": (lambda: at_least(at_least(1)), "expected a number"),  # type: ignore[arg-type]
    "no size": (lambda: at_least(3, most=2), "no set has this size"),
    "most": (lambda: at_least(1, most=0), "expected a number of messages"),
    "larger than its role": (lambda: System([purse(at_least(majority(Giver), most=1))(), *map(Giver, ())]), "Giver"),
    "too small a most": (
        lambda: System([purse(at_least(majority(Giver), most=1))(), *(Giver() for _ in range(3))]),
        "at least 2 and at most 1",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_mistakes_are_refused(case: str) -> None:
    make, expected = BAD[case]
    with pytest.raises(ModelError) as refused:
        make()
    assert expected in refused.value.message
    assert refused.value.hint


def test_decomposition_sees_what_accept_reads() -> None:
    class Auditor(Purse):
        mood: int = 0
        log: int = 0

        @on(
            Coin,
            quorum=at_least(1),
            accept=lambda self, ms: len(ms) + self.mood > 1,
            where=lambda self, m: self.taken < 2,
        )
        def take(self, ms: tuple[Coin, ...]) -> None:
            self.taken += len(ms)
            self.mood = 1
            self.log = self.choose((1, 2))

    Auditor.__name__ = "Purse"

    @always
    def few(s: Any) -> bool:
        return all(p.taken <= 3 for p in s[Purse])

    def system() -> System:
        return System([Auditor(), *(Giver(coins=(i,)) for i in (1, 2, 3))], properties=[few])

    verdict = check(system(), reduce="decomposition", keep_going=True)
    truth = explore(system())
    assert verdict.status == "holds"
    assert not truth.violated
    assert verdict.statistics.states < truth.states, "the log is auxiliary, the mood is not"
