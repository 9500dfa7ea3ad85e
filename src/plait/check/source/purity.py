"""The white list of the analysis: types, operators, builtins and methods, and what each of them may do.

What is not listed here is not understood (see `plait.check.source.dataflow`). Every callee in these tables touches only
its arguments, and calls none of them, except the functions of CALLING.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import sys
import types
import typing
from typing import Any

from plait.ir.builtins import NAMES, UNKNOWN
from plait.model.message import Message

BUILTIN = (int, float, bool, complex, str, bytes, list, tuple, set, frozenset, dict)
"""The builtin types of values in a state. A value of a class that derives from one of them has another type."""
HASHABLE = (int, float, bool, complex, str, bytes)
"""Types whose values are always hashable. A tuple may contain a list."""
SETS = (set, frozenset)
SEQUENCES = (list, tuple, str, bytes)
CONTAINERS = (*SEQUENCES, *SETS, dict)

BY_NAME = {cls.__name__: cls for cls in BUILTIN}

# -- operators ---------------------------------------------------------------------------------------------------------

ORDERINGS = ("<", "<=", ">", ">=")
_BITS = ("|", "&", "^")


def result_of(operator: str, left: type | None, right: type | None) -> type | None:
    """The type of the result, if the operator never raises on values of these types; None if it may, or is unknown.

    >>> result_of("+", int, int), result_of("+", int, str), result_of("|", set, frozenset)
    (<class 'int'>, None, <class 'set'>)
    """
    numbers = (int, float)
    if left in numbers and right in numbers and operator in ("+", "-", "*"):
        return int if left is right is int else float
    if left is right is int and operator in _BITS:
        return int
    if left is right and left in SEQUENCES and operator == "+":
        return left
    if left in SEQUENCES and right is int and operator == "*":
        return left
    if left in SETS and right in SETS and operator in (*_BITS, "-"):
        return left
    return dict if left is right is dict and operator == "|" else None


def may_be_ordered(left: type | None, right: type | None) -> bool:
    """Whether an ordering of values of these types never raises. Lists may have elements that cannot be ordered."""
    groups = ((int, float), (str,), (bytes,), SETS)
    return any(left in group and right in group for group in groups)


# -- callees -----------------------------------------------------------------------------------------------------------

FRESH = frozenset({"bool", "repr", "str"})
"""Callees that never raise, and whose result shares nothing with its argument."""
LAZY = frozenset({"enumerate", "zip", "reversed", "map", "filter", "iter"})
LAZY |= {"itertools.chain", "itertools.islice", "itertools.product"}
"""Callees whose result is an iterator. An iterator is used where it is made, and is never stored."""
ITERATING = frozenset({"list", "tuple", "any", "all", *LAZY})
"""Callees that iterate over their arguments and do nothing else. The result may contain parts of the arguments."""
_KEYED = frozenset({"sorted", "min", "max"})
CALLING = frozenset({"map", "filter", "functools.reduce", *_KEYED})
"""Callees that call an argument (`plait.ir.builtins` has its position), or the argument `key`."""
EAGER = frozenset({"list", "tuple", "set", "frozenset", "dict", "any", "all", "sum", "sorted", "max", "min"})
EAGER |= {"join", "extend", "update"}
"""Callees that run a generator at once, to its end or until they stop."""
_READING = (
    "next int float divmod round ord chr pow dict abs sum set frozenset len range hash functools.reduce copy.copy "
)
_READING += "copy.deepcopy collections.Counter collections.deque bisect.bisect bisect.bisect_left bisect.bisect_right "
_READING += "heapq.nlargest heapq.nsmallest operator.contains operator.index"
READING = frozenset({*_READING.split(), *_KEYED})
READING |= {name for name in (*NAMES.values(), *UNKNOWN.values()) if name.startswith("math.")}
"""Callees that may raise, but only read their arguments. The result may contain parts of them."""
CHANGING = frozenset(name for name in UNKNOWN.values() if name.startswith(("heapq.heap", "bisect.insort")))
"""Callees that may raise, and change and keep their arguments."""

# -- methods of builtin types ------------------------------------------------------------------------------------------

_ANY, _HASH, _ITER, _INT, _SET, _STR, _DICT = "any", "hashable", "iterable", "int", "set", "str", "dict"
_Kinds = dict[str, tuple[str, ...]]
_SET_READS: _Kinds = {"copy": ()}
_SET_READS |= dict.fromkeys(("union", "intersection", "difference", "symmetric_difference"), (_SET,))
_SET_READS |= dict.fromkeys(("issubset", "issuperset", "isdisjoint"), (_SET,))
_STR_READS: _Kinds = {"startswith": (_STR,), "endswith": (_STR,)}
_STR_READS |= dict.fromkeys(("lower", "upper", "strip", "title"), ())
READS: dict[type, _Kinds] = {
    list: {"copy": (), "count": (_ANY,)},
    tuple: {"count": (_ANY,)},
    set: _SET_READS,
    frozenset: _SET_READS,
    dict: {"get": (_HASH, _ANY), "keys": (), "values": (), "items": (), "copy": ()},
    str: _STR_READS,
}
"""Methods that only read, and never raise on arguments of these kinds."""
WRITES: dict[type, _Kinds] = {
    list: {"append": (_ANY,), "extend": (_ITER,), "insert": (_INT, _ANY), "reverse": (), "clear": ()},
    set: {"add": (_HASH,), "discard": (_HASH,), "clear": ()}
    | dict.fromkeys(("update", "difference_update", "intersection_update"), (_SET,)),
    dict: {"setdefault": (_HASH, _ANY), "clear": (), "update": (_DICT,)},
}
"""Methods that change their receiver, keep their arguments, and never raise on arguments of these kinds."""
_MORE_READS = "index find rfind join split rsplit splitlines replace lstrip rstrip isdigit isalpha swapcase zfill"
MAY_READ = frozenset({name for table in READS.values() for name in table} | set(_MORE_READS.split()))
"""Methods of builtin types that only read. They may raise if the types are not known."""
_MORE_WRITES = "pop popitem popleft appendleft remove sort symmetric_difference_update"
MAY_WRITE = frozenset({name for table in WRITES.values() for name in table} | set(_MORE_WRITES.split()))
"""Methods of builtin types that may change their receiver and keep their arguments."""


def is_builtin_type(annotation: Any, module: str, depth: int = 8) -> type | None:
    """The builtin type of an annotation, or None.

    >>> is_builtin_type("list[int]", "builtins"), is_builtin_type("int | None", "builtins"), is_builtin_type(dict, "")
    (<class 'list'>, None, <class 'dict'>)
    """
    if depth == 0:
        return None
    if isinstance(annotation, str):
        try:
            parsed = ast.parse(annotation, mode="eval").body
        except SyntaxError:
            return None
        if isinstance(parsed, ast.Subscript):
            parsed = parsed.value
        if not isinstance(parsed, ast.Name):
            return None
        by_name = {t.__name__: t for t in BUILTIN}
        names = vars(sys.modules[module]) if module in sys.modules else {}
        found = names.get(parsed.id, by_name.get(parsed.id))
        return None if isinstance(found, str) else is_builtin_type(found, module, depth - 1)
    if isinstance(annotation, types.GenericAlias) or typing.get_origin(annotation) in BUILTIN:
        annotation = typing.get_origin(annotation)
    return annotation if annotation in BUILTIN else None


def plain_type(value: Any) -> type:
    """The type of a value. A bool is a number like any other."""
    return int if isinstance(value, bool) else type(value)


def is_hashable(value: Any) -> bool:
    """Whether a value is hashable."""
    try:
        hash(value)
    except Exception:  # the user's own __hash__
        return False
    return True


def is_plain_record(cls: type) -> bool:
    """Whether the constructor only stores its arguments."""
    if issubclass(cls, tuple):
        return (
            hasattr(cls, "_fields") and "__new__" in cls.__dict__ and cls.__new__.__code__.co_filename.startswith("<")
        )
    if not dataclasses.is_dataclass(cls) or cls.__new__ is not object.__new__ or type(cls) is not type:
        return False
    frozen = cls.__dataclass_params__.frozen  # type: ignore[attr-defined]
    if not frozen and any("__setattr__" in base.__dict__ for base in cls.__mro__[:-1]):
        return False
    factories = [f.default_factory for f in dataclasses.fields(cls) if f.default_factory is not dataclasses.MISSING]
    if not all(f in BUILTIN for f in factories):
        return False
    return is_plain_init(cls)


def is_plain_init(cls: type) -> bool:
    """Whether a dataclass is initialised by generated code alone."""
    made = getattr(inspect.getattr_static(cls, "__init__"), "__code__", None)
    return made is not None and made.co_filename == "<string>" and not hasattr(cls, "__post_init__")


def is_message_field(cls: type[Message] | None, name: str) -> bool:
    """Whether every message of a class has this attribute."""
    return cls is not None and (name == "sender" or any(f.name == name for f in dataclasses.fields(cls)))
