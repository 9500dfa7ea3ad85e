"""What a value carries is part of the state, or is refused by name: nothing is lost without a word."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

from plait import Message, Process, System, action, always, check
from tests.support.bad_models import explained


@dataclass
class Record:
    number: int = 0


@dataclass(slots=True)
class Slotted:
    number: int = 0


class Sub(Record):
    def __init__(self) -> None:
        super().__init__(0)
        self.extra = 1


@dataclass
class Counted:
    number: int = 0

    @functools.cached_property
    def twice(self) -> int:
        return 2 * self.number


class Color(enum.Enum):
    RED = 1
    BLUE = 2

    def __init__(self, number: int) -> None:
        self.label = f"color {number}"


class Pair(NamedTuple):
    one: int


class LoosePair(Pair):
    pass


@dataclass
class Listed(list):  # type: ignore[type-arg]
    number: int = 0


class Hidden:
    __slots__ = ("hidden",)


@dataclass
class WithSlot(Hidden):
    number: int = 0


class Bag(set):  # type: ignore[type-arg]
    pass


class Note(Message):
    number: int


def with_attribute(value: Any, name: str) -> Any:
    object.__setattr__(value, name, 1)
    return value


def cached() -> Counted:
    value = Counted(3)
    assert value.twice == 6
    return value


REFUSED: dict[Callable[[], Any], tuple[str, ...]] = {
    lambda: with_attribute(Record(), "dirty"): ("Record", "dirty"),
    lambda: (0, [with_attribute(Record(), "dirty")]): ("Record", "dirty"),
    lambda: with_attribute(Note(1), "dirty"): ("Note", "dirty"),
    Sub: ("Sub", "extra"),
    cached: ("Counted", "twice", "cached_property"),
    lambda: with_attribute(Color.RED, "dirty"): ("Color", "dirty"),
    lambda: with_attribute(LoosePair(1), "dirty"): ("LoosePair", "dirty"),
    Listed: ("Listed", "list"),
    lambda: with_attribute(WithSlot(), "hidden"): ("WithSlot", "hidden"),
    lambda: Bag([1]): ("Bag",),
}


def system(make: Callable[[], Any]) -> System:
    class Node(Process):
        color: Any = Color.BLUE
        value: Any = None

        @action(when=lambda self: self.value is None)
        def go(self) -> None:
            self.value = make()

    return System([Node()])


@pytest.mark.parametrize("make", REFUSED, ids=lambda make: " ".join(REFUSED[make]))
def test_what_would_be_lost_is_refused_by_name(make: Callable[[], Any]) -> None:
    try:
        error = explained(lambda: check(system(make)), "Node.go: field value", *REFUSED[make])
        assert error.hint
    finally:
        Color.RED.__dict__.pop("dirty", None)


@pytest.mark.parametrize(
    "make", [Record, Slotted, Counted, WithSlot, lambda: Pair(1), lambda: Color.RED, lambda: Note(1)]
)
def test_values_that_carry_nothing_else_are_fine(make: Callable[[], Any]) -> None:
    assert check(system(make)).statistics.states == 2


def test_a_lost_mark_is_no_pass() -> None:
    """With the mark dropped, this system would hold: `dirty` is never seen again."""

    class Marker(Process):
        record: Record | None = None
        seen: bool = False

        @action(when=lambda self: self.record is None)
        def mark(self) -> None:
            self.record = with_attribute(Record(), "dirty")

        @action(when=lambda self: self.record is not None and not self.seen)
        def look(self) -> None:
            self.seen = hasattr(self.record, "dirty")

    never = always(lambda s: not any(p.seen for p in s[Marker]), name="never")
    explained(lambda: check(System([Marker()], properties=[never])), "Marker.mark", "Record", "dirty")


def test_a_base_with_slots_is_no_place_for_state() -> None:
    def define() -> None:
        class Node(Hidden, Process):
            pass

    explained(define, "process Node", "Hidden", "__slots__")
