"""Values and callees that the analysis knows: operations that never raise, or never change or keep their arguments."""

from __future__ import annotations

import ast
import collections
import dataclasses
import sys
import types
import typing
from typing import Any

from plait.model.message import Message

BUILTIN = (
    int,
    float,
    bool,
    complex,
    str,
    bytes,
    list,
    tuple,
    set,
    frozenset,
    dict,
    collections.deque,
    collections.Counter,
)

SAFE_BINARY = (ast.Add, ast.Sub, ast.Mult, ast.BitOr, ast.BitAnd, ast.BitXor)
"""Operators that never raise on builtin values of suitable types."""
ORDERINGS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)

STORING = frozenset({"append", "appendleft", "add", "extend", "update", "insert", "setdefault"})
"""Methods of builtin containers that change them, keep their arguments, and do not raise."""
CLEARING = frozenset({"discard", "clear", "reverse", "difference_update", "intersection_update"})
"""Methods that change a container and do not raise."""
LOOKING = frozenset(
    {
        "get",
        "keys",
        "values",
        "items",
        "copy",
        "count",
        "union",
        "intersection",
        "difference",
        "symmetric_difference",
        "issubset",
        "issuperset",
        "isdisjoint",
        "startswith",
        "endswith",
        "lower",
        "upper",
        "strip",
        "title",
    }
)
"""Methods that only read, and do not raise."""

FRESH = frozenset({len, isinstance, issubclass, bool, repr, str, print, range, hash, id})
"""Builtins that do not raise on builtin values, and whose result shares nothing with its arguments."""
PASSING = frozenset({list, tuple, set, frozenset, enumerate, zip, reversed, map, filter, any, all, iter})
"""Builtins that do not raise on builtin values, and whose result may contain parts of the arguments."""
RAISING = frozenset(
    {max, min, sorted, next, int, float, divmod, round, ord, chr, pow, dict, abs, sum}
    | {collections.deque, collections.Counter}
)
"""Builtins that may raise, but do not change or keep their arguments."""
EAGER = frozenset({list, tuple, set, frozenset, dict, any, all, sum, sorted, max, min})
"""Builtins that run a generator at once, to its end or until they stop."""


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
    if not dataclasses.is_dataclass(cls) or cls.__new__ is not object.__new__:
        return False
    made = getattr(cls.__init__, "__code__", None)
    settles = any("__post_init__" in base.__dict__ or "__setattr__" in base.__dict__ for base in cls.__mro__[:-1])
    frozen = cls.__dataclass_params__.frozen  # type: ignore[attr-defined]
    if settles and not (frozen and not hasattr(cls, "__post_init__")):
        return False
    return made is not None and made.co_filename == "<string>"


def is_message_field(cls: type[Message] | None, name: str) -> bool:
    """Whether every message of a class has this attribute."""
    return cls is not None and (name == "sender" or any(f.name == name for f in dataclasses.fields(cls)))  # type: ignore[arg-type]
