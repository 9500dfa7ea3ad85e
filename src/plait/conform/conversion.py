"""JSON of a log to values of a model, by the annotations of fields.

JSON says less than Python: an array may be a list, a tuple or a set. The annotation of the field decides. Where it does not,
all values that may be meant are returned. Plain data of Plait (`{"#tup": [1, 2]}`) says exactly what is meant.
"""

from __future__ import annotations

import base64
import binascii
import collections.abc
import contextlib
import dataclasses
import enum
import itertools
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from plait.kernel.pid import Pid

_MOST = 64
"""Values that may be meant."""


class UnclearError(ValueError):
    """The JSON is no value of the annotated type. The text says what was expected."""


def hints_of(cls: type) -> dict[str, Any]:
    """The annotations of the fields of a class; Any where they are not known."""
    names = [field.name for field in dataclasses.fields(cls)] if dataclasses.is_dataclass(cls) else []
    names = names or list(getattr(cls, "_fields", ()))
    try:
        known = typing.get_type_hints(cls)
    except Exception:  # a name that is only known inside of a function, say
        known = {}
    return {name: known.get(name, Any) for name in names}


class Conversion:
    """Converts JSON for one system."""

    def __init__(self, pids: Mapping[str, Pid]) -> None:
        self._pids = pids
        """By name, also in the log."""
        self._hints: dict[type, dict[str, Any]] = {}

    def hints(self, cls: type) -> dict[str, Any]:
        if cls not in self._hints:
            self._hints[cls] = hints_of(cls)
        return self._hints[cls]

    def values(self, data: Any, annotation: Any) -> list[Any]:
        """The values that JSON may mean, for an annotation. Raise an UnclearError if there is none."""
        while typing.get_origin(annotation) in (typing.Annotated, typing.ClassVar, typing.Final):
            annotation = typing.get_args(annotation)[0]
        if isinstance(annotation, typing.TypeAliasType) if hasattr(typing, "TypeAliasType") else False:
            annotation = annotation.__value__
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        if origin in (typing.Union, types.UnionType):
            return self._union(data, arguments)
        if isinstance(data, dict) and any(key.startswith("#") for key in data):
            return self._tagged(data, annotation)
        if origin is typing.Literal:
            found = [one for one in arguments if type(one) is type(data) and one == data]
            return found or _refuse(data, f"one of {', '.join(map(repr, arguments))}")
        if annotation in (None, types.NoneType):
            return [None] if data is None else _refuse(data, "null")
        if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
            return self._enum(data, annotation)
        if annotation is Pid:
            return [self._pids[data]] if isinstance(data, str) and data in self._pids else _refuse(data, "a process")
        if annotation in (bool, int, float, str, bytes):
            return self._scalar(data, annotation)
        if dataclasses.is_dataclass(annotation) or hasattr(annotation, "_fields"):
            return self._fields(data, annotation)
        kind = origin or annotation
        if kind is tuple:
            return self._tuple(data, arguments)
        if kind in _SEQUENCES:
            item = arguments[0] if arguments else Any
            parts = [self.values(one, item) for one in _array(data)]
            return _all(map(_SEQUENCES[kind], _product(parts)))
        if kind in (dict, collections.abc.Mapping, collections.abc.MutableMapping):
            return self._dict(data, arguments or (Any, Any))
        return self._any(data)

    def _union(self, data: Any, arguments: Sequence[Any]) -> list[Any]:
        found: list[Any] = []
        for argument in arguments:
            try:
                found += self.values(data, argument)
            except UnclearError:
                continue
        return found or _refuse(data, " or ".join(map(_name, arguments)))

    def _enum(self, data: Any, cls: type[enum.Enum]) -> list[Any]:
        if isinstance(data, str) and data.removeprefix(f"{cls.__name__}.") in cls.__members__:
            return [cls[data.removeprefix(f"{cls.__name__}.")]]
        found = [member for member in cls if type(member.value) is type(data) and member.value == data]
        return found or _refuse(data, f"a member of {cls.__name__}: {', '.join(cls.__members__)}")

    def _scalar(self, data: Any, cls: type) -> list[Any]:
        number = isinstance(data, int | float) and not isinstance(data, bool)
        if cls is bytes and isinstance(data, str):
            try:
                return [base64.b64decode(data, validate=True)]
            except binascii.Error:
                return _refuse(data, "bytes in base64")
        if cls is float and number:
            return [float(data), data] if isinstance(data, int) else [data]
        if cls is int and isinstance(data, float) and data.is_integer():
            return [int(data)]
        return [data] if type(data) is cls else _refuse(data, _name(cls))

    def _fields(self, data: Any, cls: Any) -> list[Any]:
        hints = self.hints(cls)
        if isinstance(data, list) and hasattr(cls, "_fields") and len(data) == len(hints):
            data = dict(zip(hints, data, strict=True))
        if not isinstance(data, dict):
            return _refuse(data, f"an object with the fields of {cls.__name__}")
        if data.keys() != hints.keys():
            return _refuse(data, f"an object with the fields {', '.join(hints)}")
        parts = [self.values(data[name], hint) for name, hint in hints.items()]
        return _all(
            cls(*one) if hasattr(cls, "_fields") else cls(**dict(zip(hints, one, strict=True)))
            for one in _product(parts)
        )

    def _tuple(self, data: Any, arguments: Sequence[Any]) -> list[Any]:
        items = _array(data)
        if not arguments:
            kinds = [Any] * len(items)
        elif arguments[-1] is ...:
            kinds = [arguments[0]] * len(items)
        elif len(arguments) == len(items):
            kinds = list(arguments)
        else:
            return _refuse(data, f"an array of {len(arguments)}")
        return _all(_product([self.values(one, kind) for one, kind in zip(items, kinds, strict=True)]))

    def _dict(self, data: Any, arguments: Sequence[Any]) -> list[Any]:
        if isinstance(data, dict):
            pairs = [(self._keys(key, arguments[0]), value) for key, value in data.items()]
        elif isinstance(data, list) and all(isinstance(one, list) and len(one) == 2 for one in data):
            pairs = [(self.values(key, arguments[0]), value) for key, value in data]
        else:
            return _refuse(data, "an object")
        parts = [[(k, v) for k in keys for v in self.values(value, arguments[1])] for keys, value in pairs]
        return _all(dict(one) for one in _product(parts))

    def _keys(self, key: str, annotation: Any) -> list[Any]:
        """The keys that the text of a key may mean: JSON has no others."""
        found: list[Any] = []
        texts: list[Any] = [key]
        with contextlib.suppress(ValueError):
            texts.append(int(key))
        for one in texts:
            try:
                found += self.values(one, annotation)
            except UnclearError:
                continue
        return found or _refuse(key, _name(annotation))

    def _any(self, data: Any) -> list[Any]:
        """Where the annotation says nothing."""
        if isinstance(data, str):
            return [data, self._pids[data]] if data in self._pids else [data]
        if isinstance(data, list):
            parts = _product([self._any(one) for one in data])
            made: list[Any] = [kind(part) for part in parts for kind in (list, tuple)]
            for part in parts:
                try:
                    unique = set(part)
                except TypeError:
                    continue
                if len(unique) == len(part):
                    made += [unique, frozenset(unique)]
            return _all(made)
        return self._dict(data, (Any, Any)) if isinstance(data, dict) else [data]

    def _tagged(self, data: dict[str, Any], annotation: Any) -> list[Any]:
        """Plain data of Plait (`plait.kernel.values`)."""
        if "#tup" in data:
            return self._parts(data["#tup"], tuple, annotation)
        if "#set" in data:
            sets = self._parts(data["#set"], set, annotation)
            kind = typing.get_origin(annotation) or annotation
            return (
                sets
                if kind is set
                else [frozenset(one) for one in sets]
                if kind is frozenset
                else [made for one in sets for made in (one, frozenset(one))]
            )
        if "#map" in data:
            return self._dict([[key, value] for key, value in data["#map"]], typing.get_args(annotation) or (Any, Any))
        if "#pid" in data and data["#pid"] in self._pids:
            return [self._pids[data["#pid"]]]
        if "#bigint" in data:
            return [int(data["#bigint"])]
        if "#enum" in data and isinstance(annotation, type) and issubclass(annotation, enum.Enum):
            return self._enum(data["#enum"], annotation)
        if "#type" in data and (dataclasses.is_dataclass(annotation) or hasattr(annotation, "_fields")):
            return self._fields({name: value for name, value in data.items() if name != "#type"}, annotation)
        return _refuse(data, _name(annotation))

    def _parts(self, items: Any, make: Callable[[Iterable[Any]], Any], annotation: Any) -> list[Any]:
        arguments = typing.get_args(annotation)
        if make is tuple and arguments and arguments[-1] is not ...:
            return self._tuple(items, arguments)
        item = arguments[0] if arguments else Any
        return _all(make(part) for part in _product([self.values(one, item) for one in _array(items)]))


_SEQUENCES: dict[Any, Callable[[Iterable[Any]], Any]] = {
    list: list,
    set: set,
    frozenset: frozenset,
    collections.abc.Sequence: tuple,
    collections.abc.Set: frozenset,
}


def _array(data: Any) -> list[Any]:
    return data if isinstance(data, list) else _refuse(data, "an array")


def _product(parts: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    return _all(itertools.product(*parts))


def _all(values: Iterable[Any]) -> list[Any]:
    found = list(itertools.islice(values, _MOST + 1))
    if len(found) > _MOST:
        raise UnclearError(f"it may mean more than {_MOST} values: annotate the field, or write plain data of Plait")
    return found


def _name(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def _refuse(data: Any, expected: str) -> list[Any]:
    raise UnclearError(f"{data!r} is not {expected}")
