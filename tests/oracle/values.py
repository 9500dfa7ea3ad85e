"""Model values as hashable tuples, equal exactly when they are the same value of the same type; and back."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any

from plait.kernel.errors import ModelError
from plait.kernel.pid import Pid

Frozen = tuple[Any, ...]


def freeze(value: Any) -> Frozen:
    """A value as a hashable tuple that starts with its type."""
    kind = type(value)
    if isinstance(value, enum.Enum):
        return kind, value.name
    if kind is Pid:
        return kind, value.role, value.index
    if kind is float:
        return kind, repr(value)
    if kind in (bool, int, str, bytes) or value is None:
        return kind, value
    if isinstance(value, list | tuple):
        return kind, *map(freeze, value)
    if kind in (set, frozenset):
        return kind, *sorted(map(freeze, value), key=repr)
    if kind is dict:
        return kind, *sorted(((freeze(k), freeze(v)) for k, v in value.items()), key=repr)
    if dataclasses.is_dataclass(value):
        return kind, *(freeze(getattr(value, f.name)) for f in dataclasses.fields(value))
    raise ModelError(f"{value!r} is no model value")


def thaw(frozen: Frozen) -> Any:
    """A fresh value: nothing in it is shared with any other state."""
    kind, *content = frozen
    if issubclass(kind, enum.Enum):
        return kind[content[0]]
    if kind is Pid or kind is float:
        return kind(*content)
    if kind in (bool, int, str, bytes, type(None)):
        return content[0]
    if kind is dict:
        return {thaw(k): thaw(v) for k, v in content}
    if hasattr(kind, "_fields"):
        return kind(*map(thaw, content))
    if issubclass(kind, list | tuple | set | frozenset):
        return kind(map(thaw, content))
    value = kind.__new__(kind)
    for field, part in zip(dataclasses.fields(kind), content, strict=True):
        object.__setattr__(value, field.name, thaw(part))  # as a frozen dataclass does it
    return value


def freeze_fields(thing: Any) -> tuple[Frozen, ...]:
    return tuple(freeze(thing.__dict__[name]) for name in thing.__plait_fields__)


def thaw_fields(cls: Any, fields: tuple[Frozen, ...]) -> dict[str, Any]:
    return dict(zip(cls.__plait_fields__, map(thaw, fields), strict=True)) if fields else {}


def make(cls: Any, fields: tuple[Frozen, ...], **more: Any) -> Any:
    thing = cls.__new__(cls)
    thing.__dict__.update(thaw_fields(cls, fields), **more)
    return thing
