"""Functions, methods and classes of the standard library that the virtual machine knows, and what derives from built-ins."""

from __future__ import annotations

import bisect
import builtins
import collections
import copy
import dataclasses
import enum
import functools
import heapq
import itertools
import math
import operator
import sys
import types
from typing import Any

_PLAIN = (
    "abs all any bool chr dict divmod enumerate filter float frozenset int iter len list map max min next ord pow range "
    "repr reversed round set sorted str sum tuple zip"
)
_QUALIFIED: dict[types.ModuleType, str] = {
    itertools: "accumulate chain combinations combinations_with_replacement dropwhile filterfalse islice pairwise "
    "permutations product repeat starmap takewhile",
    functools: "reduce",
    math: "ceil floor gcd isqrt prod",
    copy: "copy deepcopy",
}
NAMES: dict[Any, str] = {getattr(builtins, name): name for name in _PLAIN.split()}
NAMES |= {
    getattr(module, name): f"{module.__name__}.{name}" for module, names in _QUALIFIED.items() for name in names.split()
}
NAMES[itertools.chain.from_iterable] = "itertools.chain.from_iterable"
NAMES[dict.fromkeys] = "dict.fromkeys"
"""What a call of this object is called in `CallBuiltin`."""

_UNKNOWN: dict[types.ModuleType, str] = {
    builtins: "hash print",
    bisect: "bisect bisect_left bisect_right insort insort_left insort_right",
    collections: "Counter deque",
    heapq: "heapify heappop heappush heappushpop heapreplace nlargest nsmallest",
    math: " ".join(name for name, f in vars(math).items() if isinstance(f, types.BuiltinFunctionType)),
    operator: "contains index",
}
UNKNOWN = {
    getattr(m, name): f"{m.__name__}.{name}".removeprefix("builtins.")
    for m, names in _UNKNOWN.items()
    for name in names.split()
}
"""Functions that the virtual machine does not know. `CallBuiltin` has them for analyses only."""

ITERATORS = frozenset(
    [
        "enumerate",
        "filter",
        "iter",
        "map",
        "reversed",
        "zip",
        *(n for n in NAMES.values() if n.startswith("itertools.")),
    ]
)
"""Their result is an iterator. It stands only where something consumes it at once."""

CALLED: dict[str, tuple[int, int | None]] = {
    "map": (0, None),
    "filter": (0, 1),
    "functools.reduce": (0, 2),
    "itertools.accumulate": (1, 2),
    "itertools.dropwhile": (0, 1),
    "itertools.filterfalse": (0, 1),
    "itertools.takewhile": (0, 1),
    "itertools.starmap": (0, None),
}
"""Functions that call an argument: its position, and with how many arguments it is called (None: it depends)."""

KEYWORDS: dict[str, frozenset[str]] = {
    name: frozenset(keywords.split())
    for name, keywords in {
        "sorted": "key reverse",
        "min": "key default",
        "max": "key default",
        "sum": "start",
        "enumerate": "start",
        "zip": "strict",
        "math.prod": "start",
        "itertools.accumulate": "initial",
        "itertools.product": "repeat",
        "collections.deque": "maxlen",
    }.items()
}
"""The keyword arguments of functions."""

METHODS = frozenset(
    [
        "add",
        "append",
        "clear",
        "copy",
        "count",
        "difference",
        "difference_update",
        "discard",
        "endswith",
        "extend",
        "find",
        "format",
        "get",
        "index",
        "insert",
        "intersection",
        "intersection_update",
        "isalpha",
        "isdecimal",
        "isdigit",
        "isdisjoint",
        "issubset",
        "issuperset",
        "items",
        "join",
        "keys",
        "lower",
        "lstrip",
        "partition",
        "pop",
        "popitem",
        "remove",
        "removeprefix",
        "removesuffix",
        "replace",
        "reverse",
        "rfind",
        "rstrip",
        "setdefault",
        "sort",
        "split",
        "startswith",
        "strip",
        "symmetric_difference",
        "symmetric_difference_update",
        "union",
        "update",
        "upper",
        "values",
    ]
)
"""Methods of built-in types."""
LIBRARY_METHODS = frozenset(["appendleft", "extendleft", "most_common", "move_to_end", "popleft", "rotate", "subtract"])
LIBRARY_METHODS |= {"total"}
"""Methods that only classes of `collections` have. Classes of the user may have methods of these names, too."""
METHOD_KEYWORDS = {
    "sort": frozenset({"key", "reverse"}),
    "popitem": frozenset({"last"}),
    "move_to_end": frozenset({"last"}),
    "most_common": frozenset({"n"}),
}
"""The keyword arguments of methods."""

TYPES: dict[Any, str] = {
    cls: cls.__name__ for cls in (bool, bytes, dict, float, frozenset, int, list, range, set, str, tuple, type(None))
}
"""Built-in types of values, by the names that `IsInstance` uses."""

BINARY: dict[Any, str] = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.truediv: "/",
    operator.floordiv: "//",
    operator.mod: "%",
    operator.pow: "**",
    operator.and_: "&",
    operator.or_: "|",
    operator.xor: "^",
    operator.lshift: "<<",
    operator.rshift: ">>",
}
COMPARISONS: dict[Any, str] = {
    operator.eq: "==",
    operator.ne: "!=",
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
    operator.is_: "is",
    operator.is_not: "is not",
}
UNARY: dict[Any, str] = {operator.neg: "-", operator.pos: "+", operator.invert: "~", operator.not_: "not"}
"""Functions of `operator`, as operators."""


def name_of(value: Any) -> str | None:
    """The name of a built-in function, or of an unbound method of a built-in type (`str.lower`); None if not known."""
    try:
        name = NAMES.get(value)
    except TypeError:
        return None
    unbound = name is None and isinstance(value, types.MethodDescriptorType)
    if unbound and value.__objclass__ in TYPES and value.__name__ in METHODS:
        return f"{value.__objclass__.__name__}.{value.__name__}"
    return name


# -- classes ----------------------------------------------------------------------------------------------------------

COLLECTIONS: dict[Any, str] = {
    getattr(collections, name): f"collections.{name}" for name in ("deque", "OrderedDict", "defaultdict", "Counter")
}
"""Classes of `collections`. Their calls are `CallBuiltin`; the first argument of `defaultdict` is the name of a class."""
_BASES = (str, int, tuple)
_MOST_FLAGS = 1 << 32


def library_class(value: Any) -> str | None:
    """The name of a class of Python's library whose values the virtual machine has; None if it is something else.

    >>> library_class(collections.deque), library_class(list)
    ('collections.deque', None)
    """
    if not isinstance(value, type):
        return None
    fractions = sys.modules.get("fractions")  # importing it takes long
    return "fractions.Fraction" if fractions and value is fractions.Fraction else COLLECTIONS.get(value)


def derived_from(cls: type) -> type | None:
    """The one of `str`, `int` and `tuple` that a class derives from; None if it does not, or is a record or an enum."""
    other = issubclass(cls, enum.Enum) or is_named_tuple(cls) or dataclasses.is_dataclass(cls)
    if other or cls in (*_BASES, bool):
        return None
    return next((base for base in _BASES if issubclass(cls, base)), None)


def is_named_tuple(cls: type) -> bool:
    """Whether a class is a named tuple."""
    return issubclass(cls, tuple) and hasattr(cls, "_fields")


def is_foreign(value: Any) -> bool:
    """Whether the virtual machine has no such values: a decimal number, or a class that derives from `dict`."""
    kind = type(value)
    if isinstance(value, dict):
        return kind is not dict and kind not in COLLECTIONS
    return (kind.__module__, kind.__name__) == ("decimal", "Decimal")


def is_special(cls: type) -> bool:
    """Whether analyses do not know the methods and operators of a class: of Python's library, or derived from a built-in."""
    return library_class(cls) is not None or issubclass(cls, enum.Flag) or derived_from(cls) is not None


def flag_objection(cls: type[enum.Flag]) -> str | None:
    """Why combinations of these flags cannot be lowered: unusual rules, or bits without a name."""
    values = [member.value for member in cls.__members__.values()]
    if cls._boundary_ is not enum.STRICT or not all(type(v) is int and 0 <= v < _MOST_FLAGS for v in values):  # type: ignore[attr-defined]
        return f"{cls.__name__}, a flag with special rules"
    single, every = 0, 0
    for value in values:
        single |= value if value.bit_count() == 1 else 0
        every |= value
    return None if single == every else f"{cls.__name__}, a flag with bits that have no name"
