"""Values of models as plain data, and plain data as text.

Traces contain data, not Python objects, so that they can be saved, compared and drawn without the model. The data is
JSON in the style of ITF (Informal Trace Format): tuples, sets and maps are tagged objects. Values that ITF does not
define (process ids, members of enums) have tags too.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
from typing import Any

import msgspec

Data = Any
"""JSON: None, bool, int, float, str, list, dict."""

_EXACT_INTEGER = 2**53


def to_data(value: object) -> Data:
    """Turn a value of a model into JSON data.

    >>> to_data({"b": (1, 2)})
    {'#map': [['b', {'#tup': [1, 2]}]]}
    """
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if isinstance(value, enum.Enum):
        # A combination of flags may have no name.
        return {"#enum": f"{kind.__name__}.{value.name}" if value.name else f"{kind.__name__}({value.value!r})"}
    if isinstance(value, int) and kind is int:
        return int(value) if -_EXACT_INTEGER < value < _EXACT_INTEGER else {"#bigint": str(value)}
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else {"#unserializable": repr(value)}
    if hasattr(value, "__plait_data__"):
        return value.__plait_data__()
    if (arguments := _arguments(value)) is not None:
        return {"#call": kind.__name__, "arguments": arguments}
    if dataclasses.is_dataclass(value):
        fields = {f.name: to_data(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"#type": type(value).__name__, **fields}
    if isinstance(value, tuple):
        if hasattr(value, "_fields"):
            return {"#type": type(value).__name__, **{n: to_data(v) for n, v in zip(value._fields, value, strict=True)}}
        return {"#tup": [to_data(v) for v in value]}
    if isinstance(value, list):
        return [to_data(v) for v in value]
    if isinstance(value, dict):
        return {"#map": sorted(([to_data(k), to_data(v)] for k, v in value.items()), key=lambda kv: order(kv[0]))}
    if isinstance(value, set | frozenset):
        return {"#set": sorted((to_data(v) for v in value), key=order)}
    return {"#unserializable": repr(value)}


def _arguments(value: object) -> list[Data] | None:
    """The arguments that make a value of a class of Python's library, or of a class that derives from a built-in one."""
    kind: Any = type(value)
    if isinstance(value, collections.deque):
        return [[to_data(v) for v in value], *([] if value.maxlen is None else [value.maxlen])]
    if isinstance(value, collections.OrderedDict):
        return [[{"#tup": [to_data(k), to_data(v)]} for k, v in value.items()]]
    if isinstance(value, collections.defaultdict):
        factory = getattr(value.default_factory, "__name__", None)
        return [factory and {"#unserializable": factory}, to_data({**value})]
    if isinstance(value, collections.Counter):
        return [to_data({**value})]
    if kind.__module__ == "fractions" and kind.__name__ == "Fraction":
        return [to_data(kind.numerator.__get__(value)), to_data(kind.denominator.__get__(value))]
    if kind.__module__ == "decimal" and kind.__name__ == "Decimal":
        return [str(value)]
    for base in (str, int):
        if isinstance(value, base) and kind is not base:
            return [to_data(str.__str__(value) if isinstance(value, str) else int.__add__(value, 0))]
    if isinstance(value, tuple) and kind is not tuple and not hasattr(value, "_fields"):
        return [to_data(tuple(tuple.__iter__(value)))]
    return None


def order(data: Data) -> tuple[int, Any]:
    """A total order on data: numbers by value, everything else by its text."""
    if isinstance(data, int | float) and not isinstance(data, bool):
        return (0, data)
    return (1, text(data))


def text(data: Data) -> str:
    """Show data as the value is written in Python.

    >>> text({"#map": [["b", {"#tup": [1, 2]}]]})
    "{'b': (1, 2)}"
    """
    if isinstance(data, list):
        return "[" + ", ".join(map(text, data)) + "]"
    if not isinstance(data, dict):
        return repr(data)
    if "#tup" in data:
        inner = ", ".join(map(text, data["#tup"]))
        return f"({inner},)" if len(data["#tup"]) == 1 else f"({inner})"
    if "#set" in data:
        return "{" + ", ".join(map(text, data["#set"])) + "}" if data["#set"] else "set()"
    if "#map" in data:
        return "{" + ", ".join(f"{text(k)}: {text(v)}" for k, v in data["#map"]) + "}"
    if "#call" in data:
        return f"{data['#call']}({', '.join(map(text, data.get('arguments', [])))})"
    for tag in ("#pid", "#enum", "#clock", "#bigint", "#unserializable"):
        if tag in data:
            return str(data[tag])
    if "#type" in data:
        fields = ", ".join(f"{k}={text(v)}" for k, v in data.items() if k != "#type")
        return f"{data['#type']}({fields})"
    return "{" + ", ".join(f"{k}: {text(v)}" for k, v in data.items()) + "}"


def exact(data: Data) -> str:
    """Data as text that is different for different values (1, 1.0 and True are three values)."""
    try:
        return msgspec.json.encode(data, order="sorted").decode()
    except (TypeError, ValueError):
        return repr(data)
