"""Types of C: integers with promotion and conversions, pointers, arrays, structs, synchronization objects.

An object consists of cells: a scalar has one, an array or a struct has those of its parts in order. Addresses count
cells, not bytes. The size in bytes is only for `sizeof` and `malloc`.
"""

from __future__ import annotations

import dataclasses

from plait.bmc.program.arithmetic import operation, wrap
from plait.bmc.program.definition import Choice, Constant, Expr


@dataclasses.dataclass(frozen=True)
class Integer:
    """An integer type."""

    bits: int
    signed: bool
    name: str = dataclasses.field(default="", compare=False)
    atomic: bool = dataclasses.field(default=False, compare=False)

    @property
    def low(self) -> int:
        """The smallest value."""
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def high(self) -> int:
        """The largest value."""
        return (1 << (self.bits - self.signed)) - 1


@dataclasses.dataclass(frozen=True)
class Pointer:
    """A pointer. Its value is an address: a number without a sign."""

    target: CType
    atomic: bool = dataclasses.field(default=False, compare=False)


@dataclasses.dataclass(frozen=True)
class Array:
    """An array with a known number of elements."""

    element: CType
    count: int


@dataclasses.dataclass(eq=False)
class Struct:
    """A struct. Its fields are known after its definition has been read."""

    name: str
    fields: dict[str, CType] = dataclasses.field(default_factory=dict)
    bytes: int = 0


@dataclasses.dataclass(frozen=True)
class Synchronization:
    """A type of pthreads that the model treats as a whole: a mutex, a semaphore."""

    kind: str
    bytes: int = dataclasses.field(default=8, compare=False)


@dataclasses.dataclass(frozen=True)
class Function:
    """The type of a function."""

    parameters: int


@dataclasses.dataclass(frozen=True)
class Void:
    """No value."""


CType = Integer | Pointer | Array | Struct | Synchronization | Function | Void
Scalar = Integer | Pointer

BOOL = Integer(1, False, "_Bool")
CHAR = Integer(8, True, "char")
INT = Integer(32, True, "int")
UNSIGNED = Integer(32, False, "unsigned int")
LONG = Integer(64, True, "long")
SIZE = Integer(64, False, "unsigned long")
VOID = Void()
ADDRESS = SIZE
"""The integer type with the values of pointers."""

SYNCHRONIZATION = {
    "pthread_mutex_t": "mutex",
    "pthread_cond_t": "condition",
    "pthread_rwlock_t": "rwlock",
    "pthread_barrier_t": "barrier",
    "pthread_spinlock_t": "spin",
    "pthread_once_t": "once",
    "pthread_mutexattr_t": "attribute",
    "pthread_condattr_t": "attribute",
    "pthread_rwlockattr_t": "attribute",
    "pthread_barrierattr_t": "attribute",
    "pthread_attr_t": "attribute",
    "sem_t": "semaphore",
}
"""Types that are recognised by name, never by their layout."""

PARTS: dict[str, tuple[str, ...]] = {
    "mutex": ("", "depth", "kind"),
    "condition": (),
    "rwlock": ("readers", "writer"),
    "barrier": ("arrived", "parties"),
    "spin": ("",),
    "once": ("",),
    "attribute": ("",),
    "semaphore": ("",),
}
"""The variables of a synchronization object."""


def integer(t: CType) -> Integer:
    """The integer type with the values of a scalar."""
    return t if isinstance(t, Integer) else ADDRESS


def cells(t: CType) -> int:
    """The number of cells of an object."""
    match t:
        case Array(element, count):
            return count * cells(element)
        case Struct():
            return sum(map(cells, t.fields.values()))
        case _:
            return 1


def offset(t: Struct, field: str) -> int:
    """The number of cells before a field."""
    at = 0
    for name, part in t.fields.items():
        if name == field:
            return at
        at += cells(part)
    raise KeyError(field)


def size(t: CType) -> int:
    """The size in bytes."""
    match t:
        case Integer(bits):
            return max(1, bits // 8)
        case Array(element, count):
            return count * size(element)
        case Struct() | Synchronization():
            return t.bytes
        case Pointer():
            return 8
        case _:
            return 1


def similar(a: CType, b: CType) -> bool:
    """Whether an object of one type may be accessed as one of the other: they differ in the sign at most."""
    if isinstance(a, Integer) and isinstance(b, Integer):
        return a.bits == b.bits
    if isinstance(a, Pointer) and isinstance(b, Pointer):
        return True
    if isinstance(a, Array) and isinstance(b, Array):
        return a.count == b.count and similar(a.element, b.element)
    return a == b


def promoted(t: Integer) -> Integer:
    """Integer promotion: what is smaller than int becomes int."""
    return INT if t.bits < INT.bits else t


def common(a: Integer, b: Integer) -> Integer:
    """The usual arithmetic conversions.

    >>> common(Integer(8, True), Integer(8, False)).name, common(INT, UNSIGNED).name, common(LONG, UNSIGNED).name
    ('int', 'unsigned int', 'long')
    """
    a, b = promoted(a), promoted(b)
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    return b if a.signed else a


def converted(e: Expr, source: CType, target: CType) -> Expr:
    """A value of one scalar type as a value of another."""
    a, b = integer(source), integer(target)
    if b.bits == 1:
        return e if a.bits == 1 else as_number(operation("!=", e, Constant(0)))
    if b.low <= a.low and a.high <= b.high:
        return e
    return wrap(e, b.bits, b.signed)


def as_number(condition: Expr) -> Expr:
    """A truth value as 0 or 1."""
    if isinstance(condition, Constant):
        return Constant(int(condition.value))
    return Choice(condition, Constant(1), Constant(0))


def as_condition(e: Expr) -> Expr:
    """Whether a number is not 0."""
    match e:
        case Choice(condition, Constant(1), Constant(0)):
            return condition
        case _:
            return operation("!=", e, Constant(0))


def described(t: CType) -> str:
    """A type in words, for errors."""
    match t:
        case Integer():
            return t.name
        case Pointer(target):
            return f"{described(target)} *"
        case Array(element, count):
            return f"{described(element)}[{count}]"
        case Struct():
            return f"struct {t.name}"
        case Synchronization(kind):
            return kind
        case Function():
            return "function"
        case Void():
            return "void"
