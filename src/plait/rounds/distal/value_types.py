"""The types of Distal values: int, bool, text, pid, lists, sets, records, values that may be absent, messages."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class ValueType:
    """A type: its name, and for lists, sets and values that may be absent the type inside (None if not known yet)."""

    name: str
    element: ValueType | None = None

    def __str__(self) -> str:
        inside = str(self.element or "?")
        return {"list": f"[{inside}]", "set": f"{{{inside}}}", "optional": f"{inside}?"}.get(self.name, self.name)

    @property
    def python(self) -> str:
        """Its annotation in Python."""
        inside = self.element.python if self.element else "Any"
        named = {"list": f"tuple[{inside}, ...]", "set": f"frozenset[{inside}]", "text": "str", "pid": "Pid | None"}
        if self.name == "optional":
            return inside if inside.endswith("| None") else f"{inside} | None"
        return named.get(self.name, self.name)

    @property
    def default(self) -> str:
        """The value of an unassigned variable, in Python."""
        known = {"int": "0", "bool": "False", "text": '""', "list": "()", "set": "frozenset()"}
        return known.get(self.name, "None")


INT, BOOL, TEXT, PID = ValueType("int"), ValueType("bool"), ValueType("text"), ValueType("pid")
PROCESS = ValueType("process")
"""The type of variables of quantifiers in properties."""
NAMED = {kind.name: kind for kind in (INT, BOOL, TEXT, PID)}


def list_of(element: ValueType | None = None) -> ValueType:
    """The type of lists of these."""
    return ValueType("list", element)


def set_of(element: ValueType | None = None) -> ValueType:
    """The type of sets of these."""
    return ValueType("set", element)


def optional(element: ValueType | None = None) -> ValueType:
    """The type of these values and `none`."""
    return element if element is not None and element.name == "optional" else ValueType("optional", element)


def merge(one: ValueType | None, other: ValueType | None) -> ValueType | None:
    """The common type of two types; a ValueError if there is none.

    >>> str(merge(ValueType("list"), ValueType("list", INT))), str(merge(INT, optional()))
    ('[int]', 'int?')
    """
    if one is None or other is None:
        return one or other
    if "optional" in (one.name, other.name):
        inside = [kind.element if kind.name == "optional" else kind for kind in (one, other)]
        return optional(merge(*inside))
    if one.name != other.name:
        raise ValueError
    if one.name in ("list", "set"):
        return ValueType(one.name, merge(one.element, other.element))
    return one


def fits(found: ValueType | None, wanted: ValueType | None) -> bool:
    """Whether a value of one type can be used where another one is wanted: a value that may be absent is not enough.

    >>> fits(INT, optional(INT)), fits(optional(INT), INT)
    (True, False)
    """
    if found is None or wanted is None:
        return True
    if wanted.name == "optional":
        return fits(found.element if found.name == "optional" else found, wanted.element)
    return found.name == wanted.name and fits(found.element, wanted.element)
