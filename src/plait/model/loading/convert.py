"""Parameters of models, from the command line or a saved trace, converted to the annotated types.

`convert("3", int)` reads text. `convert(3, int, parse=False)` takes a value that already has its type, or plain data of
`plait.kernel.values.to_data` (a trace stores parameters as data). A value that does not fit raises
`NotConvertibleError`, whose text says what was expected.
"""

from __future__ import annotations

import collections.abc
import enum
import functools
import operator
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any

_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
_SEQUENCES: dict[Any, Callable[[Iterable[Any]], Any]] = {
    list: list,
    set: set,
    frozenset: frozenset,
    collections.abc.Sequence: tuple,
    collections.abc.Iterable: tuple,
    collections.abc.Set: frozenset,
}


class NotConvertibleError(ValueError):
    """The value does not fit. The text says what was expected."""


def convert(value: Any, annotation: Any, *, parse: bool = True) -> Any:
    """Convert the value of a parameter to its annotated type. With `parse`, a string is text to read.

    >>> convert("2,3", tuple[int, ...])
    (2, 3)
    >>> convert("none", int | None) is None
    True
    """
    annotation = _strip(annotation)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation in (Any, object):
        return value
    if origin is typing.Literal:
        return _literal(value, arguments, annotation, parse)
    if origin in (typing.Union, types.UnionType):
        return _union(value, arguments, annotation, parse)
    if annotation in (None, types.NoneType):
        if value is None or (parse and isinstance(value, str) and value.lower() in ("none", "null")):
            return None
        raise _mismatch(annotation)
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return _enum(value, annotation, parse)
    if annotation in (bool, int, float, str):
        return _scalar(value, annotation, parse)
    if origin is tuple or annotation is tuple:
        return _tuple(value, arguments, annotation, parse)
    if (make := _SEQUENCES.get(origin or annotation)) is not None:
        item = arguments[0] if arguments else Any
        return make(convert(v, item, parse=parse) for v in _items(value, annotation, parse))
    if isinstance(annotation, type) and isinstance(value, annotation):
        return value
    raise _mismatch(annotation)


def convertible(annotation: Any) -> bool:
    """Whether the command line can take a parameter of this type, and a trace can store it."""
    annotation = _strip(annotation)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal or annotation in (bool, int, float, str, None, types.NoneType, tuple):
        return True
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return True
    if origin in (typing.Union, types.UnionType, tuple) or origin in _SEQUENCES:
        return all(a is ... or convertible(a) for a in arguments)
    return annotation in _SEQUENCES


def spell(annotation: Any) -> str:
    """An annotation as text, as `plait show` prints it.

    >>> spell(int | None), spell(tuple[int, ...]), spell(typing.Literal["a", "b"])
    ('int | none', 'int,int,…', "'a' | 'b'")
    """
    annotation = _strip(annotation)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation in (Any, object):
        return "anything"
    if annotation in (None, types.NoneType):
        return "none"
    if origin is typing.Literal:
        return " | ".join(map(repr, arguments))
    if origin in (typing.Union, types.UnionType):
        return " | ".join(spell(a) for a in arguments)
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return " | ".join(annotation.__members__)
    if origin is tuple and arguments and arguments[-1] is not ...:
        return ",".join(spell(a) for a in arguments)
    if (origin is tuple or origin in _SEQUENCES) and arguments:
        return f"{spell(arguments[0])},{spell(arguments[0])},…"
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def example(annotation: Any) -> str | None:
    """An example of a value that fits, as text. None if there is no obvious one."""
    annotation = _strip(annotation)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal:
        return str(arguments[0])
    if origin in (typing.Union, types.UnionType):
        return next((e for a in arguments if (e := example(a)) is not None), None)
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return next(iter(annotation.__members__), None)
    if origin is tuple and arguments and arguments[-1] is not ...:
        return ",".join(example(a) or "…" for a in arguments)
    if (origin is tuple or origin in _SEQUENCES) and arguments:
        one = example(arguments[0])
        return one and f"{one},{one}"
    return {bool: "true", int: "3", float: "0.5", str: "text"}.get(annotation)


def _strip(annotation: Any) -> Any:
    """The annotation without `Annotated[...]` and `NewType`."""
    while True:
        if typing.get_origin(annotation) is typing.Annotated:
            annotation = typing.get_args(annotation)[0]
        elif isinstance(annotation, typing.NewType):
            annotation = annotation.__supertype__
        else:
            return annotation


def _mismatch(annotation: Any) -> NotConvertibleError:
    annotation = _strip(annotation)
    if typing.get_origin(annotation) is typing.Literal or isinstance(annotation, enum.EnumType):
        return NotConvertibleError(f"one of {spell(annotation)}")
    names = {
        bool: "a bool (true or false)",
        int: "an int",
        float: "a float",
        str: "a string",
    }
    return NotConvertibleError(names.get(annotation) or spell(annotation))


def _scalar(value: Any, kind: type, parse: bool) -> Any:
    if parse and isinstance(value, str):
        if kind is bool:
            if value.lower() in _TRUE + _FALSE:
                return value.lower() in _TRUE
            raise _mismatch(kind)
        try:
            return kind(value)
        except ValueError:
            raise _mismatch(kind) from None
    if isinstance(value, dict) and "#bigint" in value and kind is int:
        return int(value["#bigint"])
    if isinstance(value, bool) and kind is not bool:
        raise _mismatch(kind)
    if kind is float and isinstance(value, int | float):
        return float(value)
    if isinstance(value, kind) and not isinstance(value, enum.Enum):
        return value
    raise _mismatch(kind)


def _literal(value: Any, options: tuple[Any, ...], annotation: Any, parse: bool) -> Any:
    for option in options:
        if type(option) is type(value) and option == value:
            return option
    for option in options:
        if parse and isinstance(value, str):
            try:
                if convert(value, type(option)) == option:
                    return option
            except NotConvertibleError:
                continue
    raise _mismatch(annotation)


def _enum(value: Any, kind: type[enum.Enum], parse: bool) -> Any:
    if isinstance(value, kind):
        return value
    if isinstance(value, dict) and "#enum" in value:
        text = str(value["#enum"])
        if issubclass(kind, enum.Flag) and text == f"{kind.__name__}(0)":
            return kind(0)
        names = text.rpartition(".")[2].split("|")
        if all(name in kind.__members__ for name in names):
            return kind[names[0]] if len(names) == 1 else functools.reduce(operator.or_, map(kind.__getitem__, names))
    elif parse and isinstance(value, str) and issubclass(kind, enum.Flag) and "|" in value:
        return functools.reduce(operator.or_, (_enum(name.strip(), kind, parse) for name in value.split("|")))
    elif parse and isinstance(value, str):
        for name, member in kind.__members__.items():
            if value.lower() == name.lower():
                return member
        for member in kind:
            if value == str(member.value):
                return member
    raise _mismatch(kind)


def _union(value: Any, members: tuple[Any, ...], annotation: Any, parse: bool) -> Any:
    # `str` accepts every text, so it is tried last.
    ordered = sorted(members, key=lambda m: _strip(m) is str) if parse else members
    for member in ordered:
        try:
            return convert(value, member, parse=parse)
        except NotConvertibleError:
            continue
    raise _mismatch(annotation)


def _tuple(value: Any, arguments: tuple[Any, ...], annotation: Any, parse: bool) -> tuple[Any, ...]:
    items = _items(value, annotation, parse)
    if not arguments:
        return tuple(items)
    if arguments[-1] is ...:
        return tuple(convert(v, arguments[0], parse=parse) for v in items)
    if len(items) != len(arguments):
        raise _mismatch(annotation)
    return tuple(convert(v, a, parse=parse) for v, a in zip(items, arguments, strict=True))


def _items(value: Any, annotation: Any, parse: bool) -> list[Any]:
    if parse and isinstance(value, str):
        text = value.strip()
        if text[:1] + text[-1:] in ("[]", "()", "{}"):
            text = text[1:-1].strip()
        return [part.strip() for part in text.split(",") if part.strip()]
    if isinstance(value, dict):
        for tag in ("#tup", "#set"):
            if tag in value:
                return list(value[tag])
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    raise _mismatch(annotation)
