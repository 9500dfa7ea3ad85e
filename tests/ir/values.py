"""Classes of values for random functions."""

from __future__ import annotations

import dataclasses
import enum
from typing import NamedTuple

from plait import Process, System


class Node(Process):
    pass


def system() -> System:
    return System([Node(), Node(), Node()])


class Color(enum.Enum):
    RED = 1
    GREEN = 2
    BLUE = 3

    @property
    def warm(self) -> bool:
        return self is Color.RED

    def after(self, steps: int = 1) -> Color:
        members = list(Color)
        return members[(members.index(self) + steps) % len(members)]


class Point(NamedTuple):
    x: int
    y: int = 7

    def plus(self, other: Point) -> Point:
        return Point(self.x + other.x, self.y + other.y)

    @property
    def size(self) -> int:
        return abs(self.x) + abs(self.y)


@dataclasses.dataclass(frozen=True, order=True)
class Card:
    rank: int
    suit: str = "s"
    marks: tuple[int, ...] = ()

    LIMIT = 3

    def best(self, *, least: int = 0) -> int:
        return max((self.rank, least, *self.marks))

    @staticmethod
    def double(number: int) -> int:
        return number * 2

    @classmethod
    def of(cls, rank: int) -> Card:
        return cls(rank, marks=(rank, cls.LIMIT))


@dataclasses.dataclass(frozen=True)
class Tag:
    """Equal to nothing else, although a Card may have the same fields."""

    rank: int
    suit: str = "s"


@dataclasses.dataclass
class Box:
    number: int
    items: list[int] = dataclasses.field(default_factory=list)

    def put(self, item: int) -> int:
        self.items.append(item)
        self.number += 1
        return len(self.items)

    @property
    def total(self) -> int:
        return self.number + sum(self.items)


@dataclasses.dataclass(frozen=True, order=True)
class Ace(Card):
    """A card with one more field."""

    wild: bool = False

    def best(self, *, least: int = 0) -> int:
        return super().best(least=least) + int(self.wild)


@dataclasses.dataclass
class Crate(Box):
    label: str = "c"

    @property
    def total(self) -> int:
        return self.number + len(self.label)


class Right(enum.Flag):
    READ = 1
    WRITE = 2
    BOTH = 3
    SHARE = 8

    @property
    def is_open(self) -> bool:
        return bool(self & Right.BOTH)


class Name(str):
    def loud(self, times: int = 1) -> str:
        return self.upper() + "!" * times

    @property
    def first(self) -> str:
        return self[:1]


class Amount(int):
    LIMIT = 4

    def capped(self) -> Amount:
        return Amount(min(self, self.LIMIT))


class Pair(tuple[int, ...]):
    def swapped(self) -> Pair:
        return Pair(self[::-1])


SIZES = {"small": 1, "large": 9}
PRIMES = (2, 3, 5, 7)
LIMIT = 4


def twice(number: int, plus: int = 0) -> int:
    """A function of the module."""
    return 2 * number + plus


def factorial(number: int) -> int:
    return 1 if number <= 1 else number * factorial(number - 1)


def largest(*numbers: int) -> int:
    best = 0
    for number in numbers:
        if number > best:
            best = number
    return best


def apply(function, value):  # type: ignore[no-untyped-def]
    return function(value)
