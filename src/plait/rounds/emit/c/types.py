"""The types of values in the C program.

Numbers, texts, process ids and `None` are an `int`: a process id is the position of the process, a text of one character
is the code of this character, other texts are numbered, and `None` is a number that no other value has. A tuple, list or
set of any length is a struct with a length and an array; a tuple of a fixed length, a message and a named tuple are structs.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from typing import Any, Literal

from plait.kernel.pid import Pid
from plait.model.message import Message

Kind = Literal["int", "bool", "text", "pid", "none", "sequence", "tuple", "record", "process", "nothing"]


@dataclasses.dataclass(frozen=True)
class Type:
    """A type. `optional` says that a value may be None."""

    kind: Kind
    parts: tuple[Type, ...] = ()
    """The type of the items of a sequence (none if it is known to be empty), or the types of a tuple."""
    cls: type | None = None
    """The class of a record."""
    optional: bool = False
    unordered: bool = False
    """Whether a sequence is a set: its order does not matter."""

    @property
    def scalar(self) -> bool:
        """Whether it is a number in C."""
        return self.kind in ("int", "bool", "text", "pid", "none", "process")


INT, BOOL, TEXT, PID, NONE = (Type(k) for k in ("int", "bool", "text", "pid", "none"))
PROCESS, NOTHING = Type("process"), Type("nothing")
EMPTY = Type("sequence")


class UnknownTypeError(Exception):
    """A type that C does not have here."""


def sequence(item: Type) -> Type:
    """The type of a tuple, list or set of any length."""
    return Type("sequence", (item,))


def joined(one: Type, other: Type) -> Type:
    """The smallest type that has the values of both."""
    if one == other:
        return one
    if "nothing" in (one.kind, other.kind):
        return other if one.kind == "nothing" else one
    if "none" in (one.kind, other.kind):
        found = other if one.kind == "none" else one
        if not found.scalar:
            raise UnknownTypeError("None, or a value that is no number, text or process id")
        return dataclasses.replace(found, optional=found.kind != "none")
    if one.kind == other.kind and one.scalar:
        return dataclasses.replace(one, optional=one.optional or other.optional)
    if {one.kind, other.kind} == {"int", "bool"}:
        return Type("int", optional=one.optional or other.optional)
    if {one.kind, other.kind} <= {"sequence", "tuple"}:
        one, other = as_sequence(one), as_sequence(other)
        if not one.parts or not other.parts:
            return other if not one.parts else one
        if one.unordered != other.unordered:
            raise UnknownTypeError("a set, or a tuple or list")
        return dataclasses.replace(one, parts=(joined(one.parts[0], other.parts[0]),))
    raise UnknownTypeError(f"a value that is {said(one)} or {said(other)}")


def as_sequence(type_: Type) -> Type:
    """A tuple of a fixed length as a sequence, if its items have one type."""
    if type_.kind != "tuple":
        return type_
    item = NOTHING
    for part in type_.parts:
        item = joined(item, part)
    return sequence(item) if type_.parts else EMPTY


def said(type_: Type) -> str:
    """A type in words."""
    words = {
        "int": "a number",
        "bool": "true or false",
        "text": "a text",
        "pid": "a process id",
        "none": "None",
        "sequence": "a sequence",
        "tuple": "a tuple",
        "record": "a record",
        "process": "a process",
        "nothing": "nothing",
    }
    return words[type_.kind] + (" or None" if type_.optional else "")


def of_annotation(annotation: Any) -> Type:
    """The type of a field from its annotation."""
    if annotation in (int, bool, str, Pid):
        return {int: INT, bool: BOOL, str: TEXT, Pid: PID}[annotation]
    if annotation in (None, type(None)):
        return NONE
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Literal:
        found = NOTHING
        for value in arguments:
            found = joined(found, of_value(value))
        return found
    if origin in (typing.Union, types.UnionType):
        found = NOTHING
        for part in arguments:
            found = joined(found, of_annotation(part))
        return found
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return sequence(of_annotation(arguments[0]))
    if origin is tuple:
        return Type("tuple", tuple(map(of_annotation, arguments)))
    if origin is frozenset and len(arguments) == 1:
        return dataclasses.replace(sequence(of_annotation(arguments[0])), unordered=True)
    if isinstance(annotation, type) and is_record(annotation):
        return Type("record", cls=annotation)
    raise UnknownTypeError(f"the type {getattr(annotation, '__name__', annotation)}")


def of_value(value: Any) -> Type:
    """The type of a constant."""
    if value is None:
        return NONE
    if isinstance(value, bool):
        return BOOL
    if type(value) is int and -(2**31) < value < 2**31:
        return INT
    if type(value) is str:
        return TEXT
    if isinstance(value, Pid):
        return PID
    if isinstance(value, tuple) and is_record(type(value)):
        return Type("record", cls=type(value))
    if type(value) is tuple:
        return Type("tuple", tuple(map(of_value, value))) if value else EMPTY
    if type(value) in (list, set, frozenset):
        found = NOTHING
        for item in value:
            found = joined(found, of_value(item))
        return dataclasses.replace(sequence(found), unordered=type(value) is not list) if value else EMPTY
    if is_record(type(value)):
        return Type("record", cls=type(value))
    raise UnknownTypeError(f"the value {value!r}")


def is_record(cls: type) -> bool:
    """Whether instances of a class are structs: messages, named tuples and frozen dataclasses."""
    if issubclass(cls, Message):
        return True
    parameters = getattr(cls, "__dataclass_params__", None)
    return hasattr(cls, "_fields") or (parameters is not None and parameters.frozen)


def fields_of(cls: type) -> dict[str, Type]:
    """The fields of a record."""
    hints = typing.get_type_hints(cls)
    names = list(getattr(cls, "_fields", ())) or [f.name for f in dataclasses.fields(cls)]
    found = {}
    for name in names:
        try:
            found[name] = of_annotation(hints[name])
        except UnknownTypeError as error:
            raise UnknownTypeError(f"{cls.__name__}.{name}: {error}") from None
    return found


def snake(name: str) -> str:
    """`ListDisplay` as `list_display`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def identifier(text: str) -> str:
    """A text as a name in C."""
    return re.sub(r"\W", "_", text)


def _ordered(type_: Type) -> Type:
    return dataclasses.replace(type_, parts=tuple(map(_ordered, type_.parts)), unordered=False)


class Structs:
    """The structs of a program, in the order of their declaration, and the functions on them that are used."""

    def __init__(self) -> None:
        self._names: dict[Type, str] = {}
        self.declared: list[str] = []
        self._functions: dict[str, str] = {}

    @property
    def functions(self) -> list[str]:
        """The texts of the functions, in the order of their declaration."""
        return list(self._functions.values())

    def function(self, name: str, text: str) -> str:
        """Declare a function once."""
        self._functions.setdefault(name, text)
        return name

    def name(self, type_: Type) -> str:
        """A type as C writes it."""
        if type_.kind == "nothing":
            return "void"
        if type_.scalar:
            return "bool" if type_.kind == "bool" and not type_.optional else "int"
        if type_.kind == "sequence" and not type_.parts:
            raise UnknownTypeError("a sequence whose items are not known")
        plain = _ordered(type_)  # a set and a tuple of the same items are the same struct
        if plain not in self._names:
            self._names[plain] = self._declare(plain)
        return self._names[plain]

    def label(self, type_: Type) -> str:
        """A type as a part of a name."""
        return self.name(type_).removesuffix("_t")

    def _declare(self, type_: Type) -> str:
        if type_.kind == "sequence":
            item = type_.parts[0]
            name = f"{'text' if item.kind == 'text' else 'pid' if item.kind == 'pid' else self.label(item)}s_t"
            fields = f"int length; {self.name(item)} at[CAPACITY];"
        elif type_.kind == "tuple":
            name = "_".join(["tuple", *(self.label(part) for part in type_.parts)]) + "_t"
            fields = " ".join(f"{self.name(part)} _{i};" for i, part in enumerate(type_.parts))
        else:
            assert type_.cls is not None
            name = f"{type_.cls.__name__}_t"
            fields = " ".join(f"{self.name(part)} {name};" for name, part in fields_of(type_.cls).items())
            if issubclass(type_.cls, Message):
                fields += " int sender;"
        while name in self._names.values():
            name = name.removesuffix("_t") + "x_t"
        self.declared.append(f"typedef struct {{ {fields.strip()} }} {name};")
        return name

    # -- functions on values -----------------------------------------------------------------------------------------

    def equal(self, type_: Type, one: str, other: str) -> str:
        """Whether two values of a type are equal."""
        if type_.scalar:
            return f"{one} == {other}"
        name, c = f"equal_{self.label(type_)}", self.name(type_)
        if _ordered(type_) != type_:
            name = f"equal_set{len(self._functions)}_{self.label(type_)}"
        if type_.unordered:
            name = f"equal_sets_{self.label(type_)}"
            body = (
                "    if (a.length != b.length) return false;\n"
                f"    for (int i = 0; i < a.length; i++) if (!{self.contains(type_)}(b, a.at[i])) return false;\n"
                "    return true;\n"
            )
        elif type_.kind == "sequence":
            test = self.equal(type_.parts[0], "a.at[i]", "b.at[i]")
            body = (
                "    if (a.length != b.length) return false;\n"
                f"    for (int i = 0; i < a.length; i++) if (!({test})) return false;\n    return true;\n"
            )
        else:
            tests = [self.equal(t, f"a.{field}", f"b.{field}") for field, t in self.members(type_)]
            body = f"    return {' && '.join(tests) or 'true'};\n"
        self.function(name, f"static bool {name}({c} a, {c} b) {{\n{body}}}\n")
        return f"{name}({one}, {other})"

    def less(self, type_: Type, one: str, other: str) -> str:
        """Whether a value is smaller than another one, as Python compares them."""
        if type_.optional or type_.unordered or type_.kind in ("none", "process", "pid"):
            raise UnknownTypeError(f"a comparison of the order of values that are {said(type_)}")
        if type_.scalar:
            return f"{one} < {other}"
        name, c = f"less_{self.label(type_)}", self.name(type_)
        if type_.kind == "sequence":
            item = type_.parts[0]
            body = (
                "    for (int i = 0; i < a.length && i < b.length; i++) {\n"
                f"        if ({self.less(item, 'a.at[i]', 'b.at[i]')}) return true;\n"
                f"        if ({self.less(item, 'b.at[i]', 'a.at[i]')}) return false;\n    }}\n"
                "    return a.length < b.length;\n"
            )
        elif type_.kind == "tuple" or hasattr(type_.cls, "_fields"):
            lines = [
                f"    if ({self.less(t, f'a.{field}', f'b.{field}')}) return true;\n"
                f"    if ({self.less(t, f'b.{field}', f'a.{field}')}) return false;\n"
                for field, t in self.members(type_)
            ]
            body = "".join(lines) + "    return false;\n"
        else:
            raise UnknownTypeError(f"a comparison of the order of values that are {said(type_)}")
        self.function(name, f"static bool {name}({c} a, {c} b) {{\n{body}}}\n")
        return f"{name}({one}, {other})"

    def members(self, type_: Type) -> list[tuple[str, Type]]:
        """The members of a struct, without the sender of a message."""
        if type_.kind == "tuple":
            return [(f"_{i}", part) for i, part in enumerate(type_.parts)]
        assert type_.cls is not None
        return list(fields_of(type_.cls).items())

    def append(self, type_: Type) -> str:
        """The function that adds an item at the end of a sequence."""
        c, item = self.name(type_), self.name(type_.parts[0])
        name = f"append_{self.label(type_)}"
        text = (
            f"static void {name}({c} *a, {item} x) {{\n"
            "    assert(a->length < CAPACITY);  // otherwise make CAPACITY larger\n"
            "    a->at[a->length] = x;\n    a->length++;\n}\n"
        )
        return self.function(name, text)

    def contains(self, type_: Type) -> str:
        """The function that looks for an item in a sequence."""
        c, item = self.name(type_), self.name(type_.parts[0])
        name = f"contains_{self.label(type_)}"
        test = self.equal(type_.parts[0], "a.at[i]", "x")
        text = (
            f"static bool {name}({c} a, {item} x) {{\n"
            f"    for (int i = 0; i < a.length; i++) if ({test}) return true;\n    return false;\n}}\n"
        )
        return self.function(name, text)

    def concatenate(self, type_: Type) -> str:
        """The function that puts a sequence after another one."""
        c, name, append = self.name(type_), f"concatenate_{self.label(type_)}", self.append(type_)
        text = (
            f"static {c} {name}({c} a, {c} b) {{\n"
            f"    for (int i = 0; i < b.length; i++) {append}(&a, b.at[i]);\n    return a;\n}}\n"
        )
        return self.function(name, text)

    def repeat(self, type_: Type) -> str:
        """The function for `a * times`."""
        c, name, concatenate = self.name(type_), f"repeat_{self.label(type_)}", self.concatenate(type_)
        text = (
            f"static {c} {name}({c} a, int times) {{\n    {c} b;\n    b.length = 0;\n"
            f"    for (int i = 0; i < times; i++) b = {concatenate}(b, a);\n    return b;\n}}\n"
        )
        return self.function(name, text)

    def slice(self, type_: Type) -> str:
        """The function for `a[lower:upper]`."""
        c, name = self.name(type_), f"slice_{self.label(type_)}"
        text = (
            f"static {c} {name}({c} a, int lower, int upper) {{\n    {c} b;\n    b.length = 0;\n"
            "    if (lower < 0) lower = lower + a.length < 0 ? 0 : lower + a.length;\n"
            "    if (upper < 0) upper += a.length;\n"
            "    if (upper > a.length) upper = a.length;\n"
            "    for (int i = lower; i < upper; i++) { b.at[b.length] = a.at[i]; b.length++; }\n    return b;\n}\n"
        )
        return self.function(name, text)
