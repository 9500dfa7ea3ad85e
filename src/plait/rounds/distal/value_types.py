"""The types of Distal values: int, bool, text, pid, lists of these, and messages."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class ValueType:
    """A type: its name, and for a list the type of its elements (None if not known yet)."""

    name: str
    element: ValueType | None = None

    def __str__(self) -> str:
        return f"[{self.element or '?'}]" if self.name == "list" else self.name

    @property
    def python(self) -> str:
        """Its annotation in Python."""
        if self.name == "list":
            return f"tuple[{self.element.python if self.element else 'Any'}, ...]"
        return {"text": "str", "pid": "Pid | None"}.get(self.name, self.name)

    @property
    def default(self) -> str:
        """The value of an unassigned variable, in Python."""
        return {"int": "0", "bool": "False", "text": '""', "list": "()"}.get(self.name, "None")


INT, BOOL, TEXT, PID = ValueType("int"), ValueType("bool"), ValueType("text"), ValueType("pid")
PROCESS = ValueType("process")
"""The type of variables of quantifiers in properties."""
NAMED = {kind.name: kind for kind in (INT, BOOL, TEXT, PID)}


def merge(one: ValueType | None, other: ValueType | None) -> ValueType | None:
    """The common type of two types; a ValueError if there is none.

    >>> str(merge(ValueType("list"), ValueType("list", INT)))
    '[int]'
    """
    if one is None or other is None:
        return one or other
    if one.name != other.name:
        raise ValueError
    if one.name == "list":
        return ValueType("list", merge(one.element, other.element))
    return one
