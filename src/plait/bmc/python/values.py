"""Types and values: what the translation knows about a value, and the expressions that hold the rest at run time.

A type is an abstract value. A number, truth value or text that is always the same is part of the type, and so is a
reference to the only object of its pool. Such a value needs no variable at all. `join` gives the type of a variable
that holds values of both types. `layout` says which parts a value has at run time:

- a number is one part; None in a variable of numbers is the number `NONE`;
- a text or a reference is a number from 1; None is 0;
- a tuple has the parts of its items, and one more that says whether it is not None, if it can be None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import structs

from plait.bmc.program.arithmetic import operation
from plait.bmc.program.definition import Choice, Constant, Expr, Kind

if TYPE_CHECKING:
    from plait.bmc.python.heap import Heap, Site

NONE = -(1 << 31)
"""None in a variable of numbers."""

Category = Literal["never", "none", "int", "bool", "str", "ref", "tuple", "method", "static"]


class Static(msgspec.Struct, frozen=True):
    """A value that exists only during the translation: a function, a class, a module, a float. Equal if identical."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


class Type(msgspec.Struct, frozen=True):
    """The type of a value."""

    category: Category
    constant: int | None = None
    """The value, if it is always the same: of a number, a truth value (0 or 1) or a text (its number)."""
    site: Site | None = None
    """Where the objects of a reference are made."""
    items: tuple[Type, ...] = ()
    """The types of the items of a tuple; the type of the receiver of a method."""
    static: Static | None = None
    """A value that exists only during the translation."""
    name: str = ""
    """The name of a method."""
    optional: bool = False
    """Whether it can be None too."""


NEVER = Type("never")
"""The type of a variable that nothing has been assigned to, and of an expression that has no value."""
NOTHING = Type("none")
INT, BOOL, TEXT = Type("int"), Type("bool"), Type("str")


class MixedTypesError(Exception):
    """Two types have no common variable."""


def constant(category: Category, value: int) -> Type:
    """The type of one number, truth value or text."""
    return Type(category, constant=value)


def static(value: Any) -> Type:
    """The type of a value that exists only during the translation."""
    return Type("static", static=Static(value))


def tuple_of(items: tuple[Type, ...]) -> Type:
    """The type of a tuple."""
    return Type("tuple", items=items)


def described(t: Type) -> str:
    """A type in words, for errors."""
    names = {"int": "number", "bool": "truth value", "str": "text", "none": "None", "never": "nothing"}
    if t.category == "ref":
        assert t.site is not None
        return f"{t.site.cls.__name__} object"
    if t.category == "static":
        assert t.static is not None
        found = t.static.value
        if (function := getattr(found, "function", None)) is not None:
            return f"function {getattr(function, 'name', '')}".strip()
        return getattr(found, "__name__", type(found).__name__)
    if t.category == "tuple":
        return f"tuple of {len(t.items)}"
    return names.get(t.category, t.category)


def join(a: Type, b: Type, heap: Heap) -> Type:
    """The smallest type that has the values of both. Pools of objects become one."""
    if a == b or b.category == "never":
        return a
    if a.category == "never":
        return b
    if a.category == "none" or b.category == "none":
        other = b if a.category == "none" else a
        if other.category == "none":
            return other
        if other.category in ("int", "bool"):
            return Type("int", optional=True)
        if other.category == "str":
            return Type("str", optional=True)
        if other.category in ("ref", "tuple"):
            return structs.replace(other, optional=True)
        raise MixedTypesError
    optional = a.optional or b.optional
    if a.category in ("int", "bool") and b.category in ("int", "bool"):
        if a.category == b.category and a.constant == b.constant and not optional:
            return a
        return Type("bool") if a.category == b.category == "bool" and not optional else Type("int", optional=optional)
    if a.category != b.category:
        raise MixedTypesError
    match a.category:
        case "str":
            return Type("str", optional=optional)
        case "ref":
            assert a.site is not None
            assert b.site is not None
            return Type("ref", site=heap.unite(a.site, b.site), optional=optional)
        case "tuple" if len(a.items) == len(b.items):
            items = tuple(join(x, y, heap) for x, y in zip(a.items, b.items, strict=True))
            return Type("tuple", items=items, optional=optional)
        case "method" if a.name == b.name:
            return Type("method", items=(join(a.items[0], b.items[0], heap),), name=a.name)
    raise MixedTypesError


def layout(t: Type, heap: Heap) -> tuple[Kind, ...]:
    """The parts that a value of this type has at run time."""
    match t.category:
        case "int" | "str":
            return () if t.constant is not None else ("int",)
        case "bool":
            return () if t.constant is not None else ("bool",)
        case "ref":
            assert t.site is not None
            return () if heap.only(t.site) and not t.optional else ("int",)
        case "tuple":
            inner = tuple(kind for item in t.items for kind in layout(item, heap))
            return ("bool", *inner) if t.optional else inner
        case "method":
            return layout(t.items[0], heap)
        case _:
            return ()


class Value(msgspec.Struct, frozen=True):
    """A value: its type, and an expression for each part of the layout."""

    type: Type
    parts: tuple[Expr, ...] = ()


NO_VALUE = Value(NEVER)
NONE_VALUE = Value(NOTHING)


def number(value: int) -> Value:
    """A known number."""
    return Value(constant("int", value))


def truth(value: bool) -> Value:
    """A known truth value."""
    return Value(constant("bool", int(value)))


def known(value: Any) -> Value:
    """A value of the translation."""
    return Value(static(value))


def scalar(value: Value, heap: Heap) -> Expr:
    """The only part of a value that is no tuple: of a constant too."""
    if value.parts:
        return value.parts[0]
    t = value.type
    match t.category:
        case "bool" if t.constant is not None:
            return Constant(bool(t.constant))
        case "int" | "str" if t.constant is not None:
            return Constant(t.constant)
        case "ref":
            assert t.site is not None
            return Constant(heap.first(t.site))
        case _:
            return Constant(0)


def number_of(value: Value, heap: Heap) -> Expr:
    """A number or truth value as a number."""
    found = scalar(value, heap)
    if value.type.category == "bool":
        if isinstance(found, Constant):
            return Constant(int(found.value))
        return Choice(found, Constant(1), Constant(0))
    return found


def converted(value: Value, to: Type, heap: Heap) -> tuple[Expr, ...]:
    """The parts of a value in a variable of a larger type."""
    t = value.type
    kinds = layout(to, heap)
    if not kinds or t.category == "never":
        return tuple(Constant(False) if k == "bool" else Constant(0) for k in kinds)
    match to.category:
        case "int":
            return (Constant(NONE),) if t.category == "none" else (number_of(value, heap),)
        case "bool" | "str" | "ref":
            return (scalar(value, heap),)
        case "tuple":
            if t.category == "none":
                return tuple(Constant(False) if k == "bool" else Constant(0) for k in kinds)
            found: list[Expr] = []
            if to.optional:
                found.append(value.parts[0] if t.optional else Constant(True))
            for item, wanted in zip(items_of(value, heap), to.items, strict=True):
                found += converted(item, wanted, heap)
            return tuple(found)
        case "method":
            receiver = Value(t.items[0], value.parts)
            return converted(receiver, to.items[0], heap)
        case _:
            return ()


def items_of(value: Value, heap: Heap) -> list[Value]:
    """The items of a tuple."""
    found: list[Value] = []
    at = 1 if value.type.optional else 0
    for item in value.type.items:
        size = len(layout(item, heap))
        found.append(Value(item, value.parts[at : at + size]))
        at += size
    return found


def is_none(value: Value, heap: Heap) -> Expr:
    """Whether a value is None."""
    t = value.type
    if t.category == "none":
        return Constant(True)
    if not t.optional:
        return Constant(False)
    if t.category == "tuple":
        return operation("==", value.parts[0], Constant(False))
    return operation("==", scalar(value, heap), Constant(NONE if t.category == "int" else 0))
