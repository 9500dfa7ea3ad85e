"""The number of a phase as an opaque value: handlers can copy, compare and shift it, and nothing else."""

from __future__ import annotations

import collections
import copy
import dataclasses
import enum
from collections.abc import Hashable
from typing import Any, NoReturn

from plait.rounds.program.protocol import key_of

AGE = 2
"""By how many phases a number may be behind the current phase so that it is still known exactly."""


class NotInvariantError(Exception):
    """A step may depend on the number of its phase: there is no proof for any number of phases."""

    def __init__(self, why: str, compared: int | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.compared = compared
        """The number that a phase was compared with."""


class Phase:
    """A phase relative to the current one: so many phases before it (negative: after it). None: more than `AGE`."""

    __slots__ = ("age", "shift")

    def __init__(self, age: int | None, shift: int = 0) -> None:
        if age is not None and age - shift > AGE:
            age, shift = None, 0
        elif age is not None:
            age, shift = age - shift, 0
        self.age, self.shift = age, shift

    def __add__(self, other: object) -> Phase:
        if type(other) is not int:
            raise NotInvariantError("a phase is added to something that is not a whole number")
        # An exact number that becomes older than AGE is not forgotten before it is stored.
        made = object.__new__(Phase)
        made.age = None if self.age is None else self.age - other
        made.shift = self.shift + other if self.age is None else 0
        return made

    __radd__ = __add__

    def __sub__(self, other: object) -> Phase | int:
        if type(other) is int:
            return self + -other
        if isinstance(other, Phase) and self.age is not None and other.age is not None:
            return other.age - self.age
        raise NotInvariantError("a phase is subtracted from one that is much older or later, or from something else")

    def __rsub__(self, other: object) -> NoReturn:
        raise NotInvariantError("a phase is subtracted from something that is not a phase")

    def order(self, other: object) -> int:
        """-1, 0 or 1 if this phase is before, the same as, or after the other."""
        if not isinstance(other, Phase):
            number = other if type(other) is int else None
            raise NotInvariantError(f"a phase is compared with {other!r}, which is not a phase", number)
        if self.age is not None and other.age is not None:
            return (other.age > self.age) - (other.age < self.age)
        if self.age is None and other.age is not None and AGE + 1 - self.shift > other.age:
            return -1
        if self.age is not None and other.age is None and AGE + 1 - other.shift > self.age:
            return 1
        raise NotInvariantError("two phases are compared that both are long past")

    def __eq__(self, other: object) -> bool:
        return other is not None and self.order(other) == 0

    def __ne__(self, other: object) -> bool:
        return other is None or self.order(other) != 0

    def __lt__(self, other: object) -> bool:
        return self.order(other) < 0

    def __le__(self, other: object) -> bool:
        return self.order(other) <= 0

    def __gt__(self, other: object) -> bool:
        return self.order(other) > 0

    def __ge__(self, other: object) -> bool:
        return self.order(other) >= 0

    def __hash__(self) -> int:
        raise NotInvariantError("a phase is an element of a set or a key of a dict")

    def __bool__(self) -> bool:
        raise NotInvariantError("a phase is used as a truth value", 0)

    def __index__(self) -> int:
        raise NotInvariantError("a phase is used as a plain number (an index, a range, a remainder)")

    __int__ = __float__ = __mod__ = __rmod__ = __floordiv__ = __mul__ = __rmul__ = __neg__ = __index__

    def __repr__(self) -> str:
        raise NotInvariantError("a phase is made text")

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        raise NotInvariantError("a phase is made text")

    def __copy__(self) -> Phase:
        return self

    def __deepcopy__(self, memo: object) -> Phase:
        return self

    def __reduce__(self) -> NoReturn:
        raise NotInvariantError("a phase is made text")


def rebased(value: Any, by: int) -> Any:
    """A copy of a value that shares nothing mutable with it, as seen when the current phase is so many phases later."""
    if isinstance(value, Phase):
        if value.age is None and value.shift > 0:
            raise NotInvariantError("a phase that is long past is advanced")
        return Phase(None) if value.age is None else Phase(value.age + by)
    if isinstance(value, tuple) and type(value) is not tuple:
        return tuple.__new__(type(value), (rebased(v, by) for v in tuple.__iter__(value)))
    if isinstance(value, collections.deque):
        return collections.deque((rebased(v, by) for v in value), value.maxlen)
    for base in (list, tuple):
        if isinstance(value, base):
            return base(rebased(v, by) for v in value)
    if isinstance(value, dict):
        entries = {key: rebased(v, by) for key, v in value.items()}
        twin = copy.copy(value)  # of a defaultdict, with its factory
        twin.clear()
        twin |= entries
        return twin
    if dataclasses.is_dataclass(value) and not isinstance(value, type | enum.Enum):
        made = copy.copy(value)
        for field in dataclasses.fields(value):
            object.__setattr__(made, field.name, rebased(getattr(value, field.name), by))
        return made
    return copy.deepcopy(value)


def frozen(value: Any) -> Hashable:
    """A value as a key: equal for values that differ only in the numbers of phases, if these are equally old."""
    if isinstance(value, Phase):
        if value.age is None and value.shift > 0:
            raise NotInvariantError("a phase that is long past is advanced")
        return (Phase, None if value.age is None or value.age > AGE else value.age)
    if isinstance(value, tuple | list | collections.deque):
        return (type(value), getattr(value, "maxlen", None), *map(frozen, value))
    if isinstance(value, dict):
        pairs = [(key_of(key), frozen(v)) for key, v in value.items()]
        ordered = isinstance(value, collections.OrderedDict)
        return (type(value), getattr(value, "default_factory", None), tuple(pairs) if ordered else frozenset(pairs))
    if dataclasses.is_dataclass(value) and not isinstance(value, type | enum.Enum):
        return (type(value), *(frozen(getattr(value, f.name)) for f in dataclasses.fields(value)))
    return key_of(value)
