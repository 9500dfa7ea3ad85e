"""The types of P values, and how their values look in Python.

| P | Python |
|---|---|
| int, bool, string | int, bool, str |
| enum | a member of an `enum.Enum` |
| machine | the id of a process; null is None |
| event | the name of the event in a member of the enum `Events`; null is None |
| tuple, named tuple | a frozen dataclass, one class for each list of names |
| seq | tuple |
| set, map | frozenset, dict |
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class ValueType:
    """A type: its name, the types of its parts, and the names of the fields of a named tuple."""

    name: str
    of: tuple[ValueType, ...] = ()
    fields: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.name == "tuple":
            return f"({', '.join(map(str, self.of))}{',' if len(self.of) == 1 else ''})"
        if self.name == "record":
            return f"({', '.join(f'{field}: {of}' for field, of in zip(self.fields, self.of, strict=True))})"
        return f"{self.name}[{', '.join(map(str, self.of))}]" if self.of else self.name

    @property
    def mutable(self) -> bool:
        """Whether a value may contain a map, which Python must copy."""
        return self.name in ("map", "any") or any(of.mutable for of in self.of)

    @property
    def vague(self) -> bool:
        """Whether equal values may be of different types."""
        return self.name == "any" or any(of.vague for of in self.of)


INT, BOOL, STRING = ValueType("int"), ValueType("bool"), ValueType("string")
EVENT, MACHINE, ANY, NULL, NOTHING = (
    ValueType("event"),
    ValueType("machine"),
    ValueType("any"),
    ValueType("null"),
    ValueType("nothing"),
)
BASIC = {"int": INT, "bool": BOOL, "string": STRING, "event": EVENT, "machine": MACHINE, "any": ANY, "data": ANY}


def fits(value: ValueType, place: ValueType) -> bool:
    """Whether a value of one type can be assigned to a place of another type.

    >>> fits(ValueType("seq", (INT,)), ValueType("seq", (ANY,))), fits(ANY, INT)
    (True, False)
    """
    if place.name == "any" and value.name != "nothing":
        return True
    if value.name == "null":
        return place.name in ("machine", "event")
    return (
        value.name == place.name
        and value.fields == place.fields
        and len(value.of) == len(place.of)
        and all(fits(one, other) for one, other in zip(value.of, place.of, strict=True))
    )
