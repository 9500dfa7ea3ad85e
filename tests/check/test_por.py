"""Partial-order reduction against the oracle: the same verdicts and terminal states from fewer states."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from plait import Message, Process, System, action, always, init, on
from plait.model.properties import Property
from plait.protocols.abd import abd
from plait.protocols.chang_roberts import chang_roberts
from plait.protocols.mcpaxos import mcpaxos
from plait.protocols.paxos import paxos
from plait.protocols.ping_pong import ping_pong
from plait.protocols.register_paxos import register_paxos
from plait.protocols.regular_register import regular_register
from plait.protocols.two_phase_commit import two_phase_commit
from tests.oracle import independent_systems, random_systems
from tests.oracle.explorer import Exploration, explore
from tests.oracle.relation import State, make
from tests.support.agreement import ZOO
from tests.support.configurations import WAYS, Way, agrees, compare, run, ways

MODELS: dict[str, Callable[[], System]] = {
    **ZOO,
    "abd, hasty": lambda: abd(clients=2, servers=2, faulty="hasty"),
    "chang_roberts, greedy": lambda: chang_roberts(faulty="greedy"),
    "mcpaxos, leader": lambda: mcpaxos(acceptors=2, faulty="leader"),
    "paxos, memory": lambda: paxos(proposers=2, acceptors=2, faulty="memory"),
    "paxos, learner": lambda: paxos(proposers=2, acceptors=2, faulty="learner"),
    "paxos, faulty, one by one": lambda: paxos(proposers=2, acceptors=2, faulty="acceptor", quorum=False),
    "ping_pong, ponger": lambda: ping_pong(maximum=3, faulty="ponger"),
    "register_paxos, stubborn": lambda: register_paxos(clients=1, servers=3, faulty="stubborn"),
    "regular_register, wrong, quorum": lambda: regular_register(specification="wrong"),
    "two_phase_commit, hasty": lambda: two_phase_commit(faulty="hasty"),
}
RANDOM = settings(deadline=None, suppress_health_check=list(HealthCheck))


@functools.cache
def truth_of(name: str) -> Exploration:
    return explore(MODELS[name]())


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_the_zoo(name: str, way: Way) -> None:
    compare(MODELS[name](), truth_of(name), way)


@pytest.mark.slow
@settings(RANDOM, max_examples=450)
@given(independent_systems.explored_systems(limit=300), ways())
def test_loose_systems(pair: tuple[System, Exploration], way: Way) -> None:
    compare(*pair, way)


@pytest.mark.slow
@settings(RANDOM, max_examples=80)
@given(random_systems.explored_systems(limit=300), ways())
def test_tight_systems(pair: tuple[System, Exploration], way: Way) -> None:
    compare(*pair, way)


# -- what the properties read ----------------------------------------------------------------------------------------

READ = (("P0", "x"), ("P1", "x"), ("P1", "open"))
"""Of the first two processes of an independent system."""


def valuation(system: System, state: State) -> tuple[Any, ...]:
    by_name = {
        cls.__name__: vars(make(cls, slot.fields)) for cls, slot in zip(system.classes, state.slots, strict=True)
    }
    return tuple(by_name[process][field] for process, field in READ)


def asks_for(values: tuple[Any, ...]) -> Property:
    """A property that reads one field after the other, as long as they are as wanted."""

    def there(s: Any) -> bool:
        by_name = {p.id.role: p for p in s[independent_systems.Member]}
        return all(getattr(by_name[p], field) == value for (p, field), value in zip(READ, values, strict=True))

    return Property(f"{values}", "reachable", there)


@pytest.mark.slow
@settings(RANDOM, max_examples=120)
@given(independent_systems.explored_systems(limit=200), ways(), st.integers(1, 18))
def test_reachable_values_are_preserved(pair: tuple[System, Exploration], way: Way, count: int) -> None:
    """With a property for each valuation, as many as are asked for: found are those that the oracle reaches."""
    system, truth = pair
    reached = {valuation(system, state) for state in truth.seen}
    every = [(x, y, is_open) for y in (2, 1, 0) for x in range(3) for is_open in (False, True)]
    asked = sorted(every, key=lambda v: (v not in reached, every.index(v)))[:count]
    system.properties[:] = [asks_for(values) for values in asked]
    verdict = run(system, way)
    found = {p.name for p in verdict.properties if p.kind == "reachable" and p.status == "holds"}
    assert found == {str(values) for values in asked if values in reached}
    assert verdict.statistics.terminal_states == truth.terminal


# -- each rule is needed ---------------------------------------------------------------------------------------------


class Note(Message):
    value: int


class Hasty(Process):
    """Goes its way without waiting; a note that comes before is too much for it."""

    gone: bool = False

    @action(when=lambda self: not self.gone)
    def go(self) -> None:
        self.gone = True

    @on(Note)
    def hear(self, m: Note) -> None:
        assert self.gone, "a note came before"


class Writer(Process):
    """Sends one note."""

    done: bool = False

    @action(when=lambda self: not self.done)
    def write(self) -> None:
        self.done = True
        self.broadcast(Hasty, Note(1))


class Seen(Message): ...


class Reader(Process):
    """Keeps the first note."""

    kept: int | None = None

    @on(Note)
    def read(self, m: Note) -> None:
        assert self.kept is not None or m.value == 1, "the second note came first"
        self.kept = self.kept or m.value
        self.broadcast(Author, Seen())


class Relay(Process):
    @on(Note)
    def forward(self, m: Note) -> None:
        self.broadcast(Reader, m)


class Author(Process):
    """Sends one note at once, and another one by a relay."""

    @init
    def begin(self) -> None:
        self.broadcast(Reader, Note(1))
        self.broadcast(Relay, Note(2))


class Step(Process):
    x: int = 0

    @action(when=lambda self: self.x == 0)
    def step(self) -> None:
        self.x = 1


class Clock(Process):
    tick: bool = False

    @action
    def turn(self) -> None:
        self.tick = not self.tick


@always
def in_order(s: Any) -> bool:
    first, second = s[Step]
    return bool(first.x >= second.x)


@always
def nobody_steps(s: Any) -> bool:
    return all(p.x == 0 for p in s[Step])


NEEDED: dict[str, tuple[Callable[[], System], str]] = {
    # `hear` is not enabled yet, but it is of the same process as `go`, and decides another way.
    "own": (lambda: System([Hasty(), Writer()]), "assertions"),
    # `read` can take the first note, but another one may still come and be read first.
    "enabling": (lambda: System([Reader(), Relay(), Author()]), "assertions"),
    # Two steps that commute, and a property that sees which came first.
    "visibility": (lambda: System([Step(), Step()], properties=[in_order]), "in_order"),
    # The clock commutes with everything, so that it could turn for ever and the step never come.
    "proviso": (lambda: System([Clock(), Step()], properties=[nobody_steps]), "nobody_steps"),
}


@pytest.mark.parametrize("rule", NEEDED)
def test_without_a_rule_a_violation_is_missed(rule: str) -> None:
    make_system, name = NEEDED[rule]
    truth = explore(make_system())
    assert truth.violated == {name}
    for way in WAYS:
        compare(make_system(), truth, way)
    for search in ("bfs", "dfs"):
        mutant = run(make_system(), Way(search=search), without=rule)
        assert mutant.status == "holds", "the rule was left out, and nothing was missed"


SEEDS = (5, 3, 1)
"""Few systems of each: Hypothesis varies what it has drawn. Those of 5 need every rule."""


@functools.cache
def pool(number: int) -> list[tuple[System, Exploration]]:
    """Loose systems, the same ones every time."""
    drawn: list[tuple[System, Exploration]] = []

    def collect(pair: tuple[System, Exploration]) -> None:
        drawn.append(pair)

    few = settings(RANDOM, max_examples=50, database=None, phases=[Phase.generate])
    seed(number)(few(given(independent_systems.explored_systems(limit=300))(collect)))()
    return drawn


@pytest.mark.slow
@pytest.mark.parametrize("rule", NEEDED)
def test_the_comparison_notices_a_missing_rule(rule: str) -> None:
    for number in SEEDS:
        for (system, truth), way in itertools.product(pool(number), WAYS[:2]):
            if not agrees(run(system, way, without=rule), truth):
                return
    pytest.fail(f"the engine without the rule {rule!r} was right about all systems")


@pytest.mark.slow
def test_with_all_rules_half_of_these_systems_are_reduced() -> None:
    """Otherwise the comparisons would be of the unreduced search with itself."""
    verdicts = [(compare(system, truth, WAYS[0]), truth) for system, truth in pool(SEEDS[0])]
    reduced = [verdict.statistics.states < truth.states for verdict, truth in verdicts]
    assert sum(reduced) >= len(reduced) / 2


# -- guards that the virtual machine cannot evaluate -------------------------------------------------------------------


class Odd(Process):
    """Its guard is false without a look at the message, which only CPython finds out."""

    y: int = 0

    @on(Note, where=lambda self, m: getattr(self, "y" + "") > 0 and m.value > 0)
    def hear(self, m: Note) -> None:
        self.y = 2

    @action(when=lambda self: self.y < 1)
    def up(self) -> None:
        self.y = 1


class Telling(Process):
    left: int = 2

    @action(when=lambda self: self.left > 0)
    def tell(self) -> None:
        self.left -= 1
        self.broadcast(Odd, Note(1))


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_guard_that_is_not_lowered(way: Way) -> None:
    system = System([Telling(), Odd(), Odd()], properties=[always(lambda s: s[Odd][0].y < 3, name="small")])
    compare(system, explore(system), way)
