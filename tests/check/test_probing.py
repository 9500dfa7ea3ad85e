"""The order of a set must not reach a result, wherever the set is made or iterated: a helper, a library, C code."""

from __future__ import annotations

import collections
import contextlib
import copy
import functools
import graphlib
import heapq
import os
import random
import statistics
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from plait import Message, Monitor, Pid, Process, System, action, always, check, init, on
from plait.check.tabulate.probe import set_order, unpermuted
from tests.support.bad_models import explained

NAMES = ("red", "green", "blue", "black", "white")
CONSTANT = frozenset(NAMES)
TABLE = {"all": {*NAMES}}


def first() -> str:
    return next(iter({name + "!" for name in NAMES}))


def of_a_generator() -> str:
    def each() -> Iterator[str]:
        yield from {*NAMES}

    return next(each())


@functools.cache
def cached() -> str:
    return next(iter(set(NAMES)))


def counted(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*arguments: Any) -> Any:
        return function(*arguments)

    return wrapper


@counted
def wrapped() -> str:
    return max({*NAMES}, key=len)


@dataclass
class Bag:
    names: set[str] = field(default_factory=set)

    def fill(self) -> Bag:
        self.names.update(NAMES)
        return self

    @property
    def top(self) -> str:
        return next(iter(self.names))

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)


class Settings:
    def __init__(self) -> None:
        self.names = set(NAMES)


class Names(set[str]):
    pass


SETTINGS = Settings()
FUNCTIONS = {"first": first}


def grouped() -> str:
    groups: dict[int, set[str]] = collections.defaultdict(set)
    for name in NAMES:
        groups[0].add(name)
    return next(iter(groups[0]))


def _call(function: Callable[[], Any]) -> Any:
    return function()


def popped() -> str:
    return Bag().fill().names.pop()


def unpacked() -> str:
    a, *_ = SETTINGS.names
    return a


LEAKS: dict[str, Callable[[], Any]] = {
    "a function": first,
    "a generator": of_a_generator,
    "a cache": cached,
    "a decorated function": wrapped,
    "a defaultdict": grouped,
    "a default factory": lambda: list(Bag().fill().names),
    "a property of a value": lambda: Bag().fill().top,
    "an iterator of a value": lambda: list(Bag().fill()),
    "pop": popped,
    "a constant": lambda: tuple(CONSTANT),
    "a constant in a table": lambda: [name.upper() for name in TABLE["all"]],
    "an attribute of a constant": unpacked,
    "a table of functions": lambda: FUNCTIONS["first"](),
    "getattr": lambda: getattr(Bag().fill(), "to" + "p"),
    "map": lambda: list(map(_call, [first])),
    "partial": lambda: functools.partial(first)(),
    "reduce": lambda: functools.reduce(lambda a, b: a + b, CONSTANT),
    "a key with ties": lambda: sorted(CONSTANT, key=len),
    "keys": lambda: list(dict.fromkeys(NAMES, 1).keys() & set(NAMES)),
    "text": lambda: f"{SETTINGS.names}",
    "join": lambda: ",".join(SETTINGS.names),
    "a library in Python": lambda: list(graphlib.TopologicalSorter({"top": CONSTANT}).static_order()),
    "a library in C": lambda: collections.deque(CONSTANT)[0],
    "a counter": lambda: collections.Counter(CONSTANT).most_common(1),
    "a mode": lambda: statistics.mode(CONSTANT),
    "ties in a heap": lambda: heapq.nlargest(2, CONSTANT, key=len),
    "the method of the protocol": lambda: CONSTANT.__iter__().__next__(),
    "a dict of keys": lambda: list(dict.fromkeys(CONSTANT)),
    "a subclass": lambda: next(iter(Names(NAMES))),
    "a subclass that is made late": lambda: next(iter(type("Late", (set,), {})(NAMES))),
    "a type passed on": lambda: [list(made) for made in map(set, [NAMES])],
    "a starred call": lambda: (lambda *names: names)(*CONSTANT),
}

if unpermuted():  # from Python 3.13 on: list, sorted and repr of a set that existed before (see test_hash_seeds.py)
    for _name in ("a key with ties", "text", "a library in Python"):
        del LEAKS[_name]

FINE: dict[str, Callable[[], Any]] = {
    "sorted": lambda: sorted(CONSTANT),
    "a changed argument": lambda: sorted(_added(Bag())),
    "a shared set": lambda: (lambda b: (b.fill(), len(b.names)))(Bag())[1],
    "types": lambda: (
        isinstance(set(), set),
        isinstance(CONSTANT, frozenset),
        isinstance(Bag().names, set),
    ),
    "one element": lambda: next(iter({"red"})),
    "text of one element": lambda: str({"red"}) + str(frozenset({"red"})) + str(set()),
    "copies": lambda: copy.deepcopy(Bag().fill()).names == set(NAMES) == copy.copy({*NAMES}),
    "algebra": lambda: ({*NAMES} | {"x"}) - {"x"} == CONSTANT and {"a"} < {"a", "b"} and not {"a"} & {"b"},
    "an alias in a table": lambda: _alias(),
    "a cache": lambda: _fib(40),
    "membership": lambda: [name in CONSTANT for name in NAMES],
}


def _added(bag: Bag) -> set[str]:
    def add(names: set[str]) -> None:
        names.add("pink")
        names |= {"red"}

    add(bag.names)
    return bag.names


def _alias() -> int:
    groups: dict[str, set[str]] = collections.defaultdict(set)
    mine = groups["a"]
    mine.add("x")
    groups.get("a", set()).add("y")
    return len(groups["a"])


@functools.cache
def _fib(n: int) -> int:
    return n if n < 2 else _fib(n - 1) + _fib(n - 2)


class Mixin:
    def leak(self) -> Any:
        return self.source()  # type: ignore[attr-defined]


def systems(source: Callable[[], Any]) -> Iterator[tuple[str, Callable[[], System]]]:
    """Systems that use a function in each place where Plait runs code of the user's."""

    class InAction(Mixin, Process):
        found: Any = None

        def source(self) -> Any:
            return source()

        @action(when=lambda self: self.found is None)
        def go(self) -> None:
            self.found = self.leak()

    class InGuard(Process):
        n: int = 0

        @action(when=lambda self: self.n < 1 and str(source()) >= "a")
        def go(self) -> None:
            self.n += 1

    class Announcer(Process):
        n: int = 0

        @action(when=lambda self: self.n < 1)
        def go(self) -> None:
            self.n += 1
            self.announce(self.n)

    class Eye(Monitor):
        seen: Any = None

        def observe(self, process: Pid, event: Any) -> None:
            self.seen = source()

    yield "Eye.observe", lambda: System([Announcer()], monitors=[Eye()])
    yield "InAction.go", lambda: System([InAction()])
    # The value of a guard and of a property is one bit, so they compare with a result that is kept.
    kept = source()
    yield "property same", lambda: System([Announcer()], properties=[always(lambda s: source() == kept, name="same")])
    InGuard.__plait_handlers__ = tuple(
        type(h)(h.name, h.kind, h.function, h.message, lambda self: self.n < 1 and source() == kept)
        for h in InGuard.__plait_handlers__
    )
    yield "the guard of InGuard.go", lambda: System([InGuard()])


@pytest.mark.parametrize("name", LEAKS)
def test_the_order_of_a_set_is_found_wherever_the_set_is_made(name: str) -> None:
    for where, system in systems(LEAKS[name]):
        explained(lambda: check(system()), f"{where} is not a function of ")  # noqa: B023


@pytest.mark.parametrize("name", FINE)
def test_functions_of_their_inputs_are_not_refused(name: str) -> None:
    for _, system in systems(FINE[name]):
        assert check(system(), explore=True).status == "holds"


class Box:
    def __init__(self, source: Callable[[], Any]) -> None:
        self.source = source

    @property
    def value(self) -> Any:
        return self.source()

    def __call__(self) -> Any:
        return self.source()

    def __iter__(self) -> Iterator[Any]:
        yield self.source()

    @staticmethod
    def of(source: Callable[[], Any]) -> Any:
        return source()

    @classmethod
    def made(cls, source: Callable[[], Any]) -> Any:
        return cls(source)()


@contextlib.contextmanager
def opened(source: Callable[[], Any]) -> Iterator[Any]:
    yield source()


def by_context(source: Callable[[], Any]) -> Any:
    with opened(source) as value:
        return value


WAYS: list[Callable[[Callable[[], Any]], Callable[[], Any]]] = [
    lambda f: lambda: f(),
    lambda f: functools.partial(_call, f),
    lambda f: lambda: Box(f).value,
    lambda f: lambda: Box(f)(),
    lambda f: lambda: next(iter(Box(f))),
    lambda f: lambda: Box.of(f),
    lambda f: lambda: Box.made(f),
    lambda f: lambda: [value for value, *_ in zip(map(_call, [f]))],
    lambda f: lambda: {0: f}[0](),
    lambda f: lambda: getattr(Box(f), "val" + "ue"),
    lambda f: lambda: by_context(f),
    lambda f: functools.cache(f),
    lambda f: lambda: min([0], key=lambda _: 0) or f(),
    lambda f: counted(f),
    lambda f: Box(f),
    lambda f: lambda: (lambda g=f: g())(),
]


@pytest.mark.parametrize("number", range(40))
def test_a_leak_is_found_through_random_ways(number: int) -> None:
    generator = random.Random(number)
    name = generator.choice(list(LEAKS))
    source = LEAKS[name]
    for way in generator.choices(WAYS, k=generator.randint(1, 4)):
        source = way(source)
    for where, system in systems(source):
        explained(lambda: check(system()), f"{where} is not a function of ")  # noqa: B023


@pytest.mark.parametrize("name", NAMES[:4])
def test_each_element_may_be_the_first(name: str) -> None:
    """Backwards alone does not show whether an element in the middle would be the first with another seed."""
    for where, system in systems(lambda: next(iter(set(NAMES[:4]))) == name):
        explained(lambda: check(system()), f"{where} is not a function of ")  # noqa: B023


def test_a_late_look_at_an_order_is_found() -> None:
    """Not only the first evaluations of guards and properties count."""
    kept = tuple(CONSTANT)

    class Late(Process):
        n: int = 0

        @action(when=lambda self: self.n < 30)
        def up(self) -> None:
            self.n += 1

        @action(when=lambda self: self.n > 20 and tuple(CONSTANT) != kept)
        def never(self) -> None:
            self.n = 0

    class Counter(Process):
        n: int = 0

        @action(when=lambda self: self.n < 30)
        def up(self) -> None:
            self.n += 1

    late = always(lambda s: s[Counter][0].n < 20 or tuple(CONSTANT) == kept, name="late")
    explained(lambda: check(System([Late()])), "the guard of Late.never is not a function of its inputs")
    explained(lambda: check(System([Counter()], properties=[late])), "property late is not a function of the state")


def test_quorums_are_probed() -> None:
    class Vote(Message):
        pass

    class Judge(Process):
        n: int = 0

        @on(Vote, quorum=lambda self: next(iter({1, 2})))
        def count(self, votes: tuple[Vote, ...]) -> None:
            self.n += 1

    class Voter(Process):
        @init
        def start(self) -> None:
            self.send(Judge.pid(0), Vote())

    explained(
        lambda: check(System([Judge(), Voter(), Voter()])),
        "the quorum of Judge.count is not a function of its inputs: evaluated twice, it was 1 and then 2",
    )


# -- the order itself ------------------------------------------------------------------------------------------------


def test_every_way_to_iterate_a_new_set_is_permuted() -> None:
    assert unpermuted(made=True) == set()
    if sys.version_info < (3, 13):
        assert unpermuted() == set()


@pytest.mark.parametrize("size", range(2, 9))
def test_each_turn_is_another_order_of_the_same_elements(size: int) -> None:
    order, elements = set_order(), frozenset(range(size))
    usual = [*iter(elements)]
    seen = [order.permuted(turn, lambda: [*iter(elements)]) for turn in range(size)]
    assert all(sorted(one) == usual and one != usual for one in seen)
    assert {one[0] for one in seen} >= ({1} if size == 2 else elements)


def test_the_usual_order_comes_back() -> None:
    order, usual = set_order(), tuple(CONSTANT)

    def fail() -> None:
        assert tuple(CONSTANT) != usual
        raise KeyError

    def nested() -> bool:
        with pytest.raises(KeyError):
            order.permuted(0, fail)
        return tuple(CONSTANT) == usual

    assert order.watched(nested)
    assert not order.permuted(1, nested)
    for question in (fail, lambda: sys.exit(1), lambda: next(iter([]))):
        with pytest.raises((KeyError, SystemExit, StopIteration)):
            order.permuted(0, question)
        assert (tuple(CONSTANT), next(iter(CONSTANT)), set(CONSTANT).pop()) == (
            usual,
            usual[0],
            next(iter(set(CONSTANT))),
        )
    with pytest.raises(KeyError):
        set_order().permuted(0, set().pop)


def test_other_threads_see_the_usual_order() -> None:
    order, usual, seen = set_order(), tuple(CONSTANT), []

    def ask() -> None:
        thread = threading.Thread(target=lambda: seen.append(tuple(CONSTANT)))
        thread.start()
        thread.join()
        seen.append(tuple(CONSTANT))

    order.permuted(0, ask)
    assert seen == [usual, usual[::-1]]


def test_a_watched_call_tells_how_large_the_sets_were() -> None:
    order = set_order()
    for look in (list, tuple, sorted, lambda s: next(iter(s)), lambda s: s.copy().pop(), dict.fromkeys, max):
        made = order.watched(lambda: look({*NAMES}))  # noqa: B023
        assert made
        assert order.largest == len(NAMES)
        order.watched(lambda: look({"one"}) and look(["one"]) if look is not max else 0)  # noqa: B023
    numbers = [1, 2]
    assert order.watched(lambda: [n for n in numbers if n in CONSTANT]) == []
    assert order.largest == 0


# -- the same verdict for every hash seed ----------------------------------------------------------------------------

MODELS = """
from plait import ModelError, Monitor, Process, System, action, always, check

class Picker:
    def pick(self):
        return next(iter({n + "!" for n in self.names}))

def pick(names):
    return next(iter({n + "!" for n in names}))

def fair(names):
    return min({n + "!" for n in names})

def node(choose, *bases, when=None):
    class Node(*bases, Process):
        names: tuple = ("ann", "bob")
        got: str = ""

        @action(when=when or (lambda self: not self.got))
        def go(self):
            self.got = choose(self)
            self.announce(self.got)
    return Node()

class Own(Process):
    names: tuple = ("ann", "bob")
    got: str = ""

    def pick(self):
        return next(iter({n + "!" for n in self.names}))

    @action(when=lambda self: not self.got)
    def go(self):
        self.got = self.pick()

class Eye(Monitor):
    seen: str = ""

    def observe(self, process, event):
        self.seen = pick(("ann", "bob"))

def holds(s):
    return all(p.got != "ann!" for p in s)

NAMES = ("ann", "bob")
systems = {
    "helper": lambda: System([Own()], properties=[always(holds)]),
    "mixin": lambda: System([node(lambda self: self.pick(), Picker)], properties=[always(holds)]),
    "function": lambda: System([node(lambda self: pick(self.names))], properties=[always(holds)]),
    "guard": lambda: System([node(lambda self: "x", when=lambda self: not self.got and pick(self.names) == "ann!")]),
    "property": lambda: System([node(lambda self: "x")], properties=[always(lambda s: pick(NAMES) == "ann!", name="p")]),
    "monitor": lambda: System([node(lambda self: "x")], monitors=[Eye()]),
    "fine": lambda: System([node(lambda self: fair(self.names))], properties=[always(holds, name="p")]),
    "sorted": lambda: System([node(lambda self: sorted({"ann!", "bob!"})[1])], properties=[always(holds, name="p")]),
}
for name, system in systems.items():
    try:
        print(name, check(system()).status)
    except ModelError as error:
        print(name, "refused" if "is not a function of" in error.message else error)
"""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_the_verdict_does_not_depend_on_the_hash_seed(seed: int) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", MODELS],
        env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.stderr == ""
    answers = dict(line.split() for line in ran.stdout.splitlines())
    places = ("helper", "mixin", "function", "guard", "property", "monitor")
    assert answers == {**dict.fromkeys(places, "refused"), "fine": "violated", "sorted": "holds"}
