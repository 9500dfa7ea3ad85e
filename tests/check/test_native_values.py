"""Values of Python's library and of derived classes: checks say the same natively and in CPython, and run natively."""

from __future__ import annotations

import numbers
from collections import defaultdict, deque
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from plait import Process, System, action, always, check, field
from plait.model.loading.loader import load
from tests.support.library_models import MODELS, NATIVE
from tests.support.natively import compare, share

EXAMPLE = Path(__file__).parents[2] / "examples" / "stock.py"
WAYS: dict[str, dict[str, Any]] = {
    "bfs": {},
    "dfs": {"search": "dfs"},
    "symmetry": {"reduce": "symmetry"},
    "por": {"reduce": "por", "counts": False},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", MODELS)
def test_models(kind: str, way: str) -> None:
    found = compare(MODELS[kind], keep_going=True, max_states=2_000, **WAYS[way])
    native, functions = share(found)
    assert native == functions > 0 or kind not in NATIVE


@pytest.mark.parametrize("kind", NATIVE)
def test_the_machine_answers(kind: str) -> None:
    """The first states of a check are asked in CPython, once."""
    statistics = check(MODELS[kind](), native="only", workers=1, max_states=2_000).statistics
    assert statistics.questions - statistics.native_answers <= 1


def test_the_example() -> None:
    statistics = check(load(f"{EXAMPLE}:stock"), native="only", workers=1).statistics
    assert statistics.native_share > 0.99


@dataclass(frozen=True)
class Shelf:
    """Its methods have the names of methods of Python's classes."""

    size: int = 2

    def sort(self, key: int = 0) -> int:
        return self.size + key

    def total(self, by: int = 1, *, plus: int = 0) -> int:
        return self.size * by + plus

    def popitem(self, first: int = 0, last: int = 0) -> int:
        return 10 * first + last


class Shop(Process):
    shelf: Shelf = Shelf()
    number: int | Fraction = 0

    @action(when=lambda self: isinstance(self.number, numbers.Integral) and self.number < 40)
    def fill(self) -> None:
        self.number += self.shelf.sort(key=3) + self.shelf.total(2, plus=1) + self.shelf.popitem(last=1)
        self.number += self.shelf.total() + self.shelf.sort()


@always(each=Shop)
def a_number(shop: Shop) -> bool:
    return isinstance(shop.number, numbers.Number) and not isinstance(shop.number, Fraction | deque)


def test_methods_and_classes_of_the_user_are_not_taken_for_those_of_python() -> None:
    found = compare(lambda: System([Shop()], properties=[a_number]), keep_going=True)
    assert found.verdict is not None
    assert found.verdict.status == "holds"
    assert found.verdict.statistics.states == 4  # 0, 15, 30, 45


class Memory(Process):
    seen: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    left: int = 2

    @action(when=lambda self: self.left > 0 and self.seen[self.left] == 0)
    def see(self) -> None:
        self.left -= 1


def test_a_guard_that_inserts_a_key_is_reported_natively_too() -> None:
    found = compare(lambda: System([Memory()]))
    assert found.error is not None


class Order(Process):
    counts: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int, {1: 1}))
    numbers: frozenset[int] = frozenset({1, 2, 3})
    first: int = 0

    @action(when=lambda self: self.first == 0)
    def find(self) -> None:
        if any(self.counts[number] for number in self.numbers):
            self.first = len(self.counts)


def test_the_order_of_a_set_decides_which_keys_a_defaultdict_gets() -> None:
    """Natively, too, the order is found to matter, although the generator only reads."""
    found = compare(lambda: System([Order()]))
    assert found.error is not None


class Text(str):
    __hash__ = None  # type: ignore[assignment]


WAITING: deque[int] = deque([1])
KNOWN: defaultdict[int, int] = defaultdict(int, {1: 1})


def push(number: int) -> None:
    WAITING.appendleft(number)


class Odd(Process):
    text: Text = field(default_factory=lambda: Text("a"))
    number: int = 0
    table: defaultdict[int, int] = field(default_factory=lambda: KNOWN.copy())

    @action(when=lambda self: self.number == 0)
    def count(self) -> None:
        self.number += len(WAITING)

    @action(when=lambda self: self.number == 1)
    def look(self) -> None:
        self.number += KNOWN[1] + self.table[7]

    @action(when=lambda self: self.number == 2)
    def put(self) -> None:
        self.number = len({self.text: 1})


def test_what_may_change_and_what_cannot_be_hashed_is_left_to_cpython() -> None:
    found = compare(lambda: System([Odd()]))
    assert found.verdict is not None
    assert found.verdict.property == "no_exceptions"
    native, functions = share(found)
    assert functions - native == 2  # `count` and `look` use what changes
