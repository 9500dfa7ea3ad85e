"""What the names of a P program mean: its declarations, the types that it names, and the Python names of its parts."""

from __future__ import annotations

import builtins
import dataclasses
import difflib
import keyword
from collections.abc import Iterable, Sequence

from plait.rounds.p import machine
from plait.rounds.p import syntax as s
from plait.rounds.p.lexer import Place, Text
from plait.rounds.p.value_types import BASIC, MACHINE, NOTHING, ValueType

IMPORTS = [
    "Message",
    "Pid",
    "System",
    "View",
    "always",
    "always_eventually",
    "everybody",
    "field",
    "final",
    "init",
    "ltl",
    "mailbox",
]
IMPORTS += ["on", "weak"]
"""The names of Plait that translated code uses."""
OPERATIONS = [name for name, value in vars(machine).items() if getattr(value, "__module__", "") == machine.__name__]
OPERATIONS = ["HALTED", "UNBORN", *OPERATIONS]
"""The names of `plait.rounds.p.machine` that translated code uses."""
_TAKEN = {*dir(builtins), *keyword.kwlist, *keyword.softkwlist, *IMPORTS, *OPERATIONS, *dir(machine.PMachine)}
_TAKEN |= {
    "self",
    "m",
    "s",
    "got",
    "point",
    "values",
    "jump",
    "Events",
    "Any",
    "Monitor",
    "dataclass",
    "Enum",
    "machines",
}
_TAKEN |= {"OBSERVED", "inbox", "status", "crashed", "observe", "process", "event", "payload", "name", "value", "mro"}
_TAKEN |= {"k__", "v__", "e__", "x__"}


@dataclasses.dataclass
class Names:
    """The declarations of a program by name."""

    text: Text
    machines: dict[str, s.Machine] = dataclasses.field(default_factory=dict)
    specs: dict[str, s.Machine] = dataclasses.field(default_factory=dict)
    events: dict[str, s.Event] = dataclasses.field(default_factory=dict)
    enums: dict[str, s.Enum] = dataclasses.field(default_factory=dict)
    types: dict[str, s.TypeDefinition] = dataclasses.field(default_factory=dict)
    functions: dict[str, s.Function] = dataclasses.field(default_factory=dict)
    modules: dict[str, s.NamedModule] = dataclasses.field(default_factory=dict)
    tests: dict[str, s.Test] = dataclasses.field(default_factory=dict)
    records: dict[tuple[str, ...], str] = dataclasses.field(default_factory=dict)
    """The classes of named tuples, by the names of their fields."""
    casts: dict[ValueType, str] = dataclasses.field(default_factory=dict)
    """The functions that check a cast, by the type."""
    _resolving: list[str] = dataclasses.field(default_factory=list)

    @classmethod
    def of(cls, text: Text, program: Sequence[s.Declaration]) -> Names:
        """Collect the declarations. A name has one meaning."""
        names = cls(text)
        for declared in program:
            match declared:
                case s.Machine():
                    table: dict[str, object] = names.machines if declared.observes is None else names.specs  # type: ignore[assignment]
                case s.Event():
                    table = names.events  # type: ignore[assignment]
                case s.Enum():
                    table = names.enums  # type: ignore[assignment]
                case s.TypeDefinition():
                    table = names.types  # type: ignore[assignment]
                case s.Function():
                    table = names.functions  # type: ignore[assignment]
                case s.NamedModule():
                    table = names.modules  # type: ignore[assignment]
                case _:
                    table = names.tests  # type: ignore[assignment]
            if declared.name in names.all():
                raise text.error(declared.place, f"the name {declared.name} is declared twice", "rename one of them")
            table[declared.name] = declared
        names._check_elements()
        for definition in names.types.values():
            named = names.resolve(definition.type)
            if named.name == "record" and names.records[named.fields].startswith("Record_"):
                names.records[named.fields] = names.python(definition.name)
        return names

    def all(self) -> set[str]:
        """All names that are declared at the top."""
        return {
            *self.machines,
            *self.specs,
            *self.events,
            *self.enums,
            *self.types,
            *self.functions,
            *self.modules,
            *self.tests,
        }

    def _check_elements(self) -> None:
        met: set[str] = set(self.events)
        for enum in self.enums.values():
            for element, _ in enum.elements:
                if element in met:
                    raise self.text.error(enum.place, f"the element {element} of {enum.name} has the name of another")
                met.add(element)
            if len({number for _, number in enum.elements}) < len(enum.elements):
                raise self.text.error(enum.place, f"two elements of {enum.name} have the same number", "renumber them")

    def unknown(self, place: Place, what: str, name: str, known: Iterable[str]) -> Exception:
        """The error for a name that is not declared."""
        near = difflib.get_close_matches(name, list(known), 1)
        return self.text.error(
            place, f"there is no {what} {name}", f"did you mean {near[0]}?" if near else "declare it"
        )

    def element(self, name: str) -> s.Enum | None:
        """The enum that has an element of this name."""
        return next((enum for enum in self.enums.values() if name in dict(enum.elements)), None)

    def resolve(self, node: s.TypeName | None) -> ValueType:
        """The type that a name means."""
        if node is None:
            return NOTHING
        if node.name in BASIC:
            return BASIC[node.name]
        if node.name in ("seq", "set", "map", "tuple", "record"):
            made = ValueType(node.name, tuple(self.resolve(of) for of in node.of), node.fields)
            if node.name in ("tuple", "record"):
                self.tuple_class(made)
            if len(set(node.fields)) < len(node.fields):
                raise self.text.error(node.place, "two fields have the same name", "rename one of them")
            if node.name in ("set", "map") and (made.of[0].vague or made.of[0].mutable):
                what = "the elements of a set" if node.name == "set" else "the keys of a map"
                raise self.text.error(
                    node.of[0].place, f"{made.of[0]} is not supported for {what}", "use a type without any and maps"
                )
            return made
        if node.name in self.machines:
            return MACHINE
        if node.name in self.enums:
            return ValueType(f"enum {node.name}")
        if node.name not in self.types:
            raise self.unknown(node.place, "type", node.name, [*self.types, *self.machines, *self.enums, *BASIC])
        if node.name in self._resolving:
            raise self.text.error(node.place, f"the type {node.name} contains itself", "use seq or map of machines")
        self._resolving.append(node.name)
        made = self.resolve(self.types[node.name].type)
        self._resolving.pop()
        return made

    def tuple_class(self, kind: ValueType) -> str:
        """The Python class of tuples or named tuples of this type."""
        if kind.name == "tuple":
            return self.records.setdefault(self._key(kind), f"Tuple{len(kind.of)}")
        name = f"Record_{'_'.join(kind.fields)}"
        while kind.fields not in self.records and name in self.records.values():
            name += "_"  # (a_b, c) and (a, b_c)
        return self.records.setdefault(kind.fields, name)

    def attributes(self, kind: ValueType) -> list[str]:
        """The Python names of the parts of a tuple."""
        return [self.attribute(field) for field in self._key(kind)]

    def attribute(self, field: str) -> str:
        """The Python name of a field. The fields of a tuple without names have the names 0., 1., …"""
        if field.endswith("."):
            return f"item{field[:-1]}"
        return f"{field}_" if keyword.iskeyword(field) or field.startswith("_") or field.endswith("_") else field

    def _key(self, kind: ValueType) -> tuple[str, ...]:
        return tuple(f"{i}." for i in range(len(kind.of))) if kind.name == "tuple" else kind.fields

    def python(self, name: str) -> str:
        """The Python name of something that is declared at the top, or of a variable. Different names stay different."""
        prefixes = ("_", "fun_", "entry_", "exit_", "do_", "with_", "on_", "start_", "temporary", "rest", "cast")
        return f"{name}_" if name in _TAKEN or name.endswith("_") or name.startswith(prefixes) else name

    def local(self, name: str) -> str:
        """The Python name of a variable of a function. It hides nothing of the module."""
        made = self.python(name)
        return f"{made}_" if name in self.all() or self.element(name) or made in self.records.values() else made

    def default(self, kind: ValueType) -> str:
        """The default value of a type, in Python."""
        match kind.name:
            case "int":
                return "0"
            case "bool":
                return "False"
            case "string":
                return '""'
            case "seq":
                return "()"
            case "set":
                return "frozenset()"
            case "map":
                return "{}"
            case "tuple" | "record":
                return f"{self.tuple_class(kind)}({', '.join(self.default(of) for of in kind.of)})"
        if kind.name.startswith("enum "):
            enum = self.enums[kind.name[5:]]
            return f"{self.python(enum.name)}.{self.python(min(enum.elements, key=lambda e: e[1])[0])}"
        return "None"

    def cast(self, kind: ValueType) -> str:
        """The function that checks whether a value has a type, and returns it."""
        return self.casts.setdefault(kind, f"cast{len(self.casts)}_")

    def inhabits(self, value: str, kind: ValueType) -> str:
        """A test in Python whether a value has a type; for `as`."""
        match kind.name:
            case "any":
                return "True"
            case "int":
                return f"type({value}) is int"
            case "bool":
                return f"type({value}) is bool"
            case "string":
                return f"type({value}) is str"
            case "machine":
                return f"({value} is None or type({value}) is Pid)"
            case "event":
                return f"({value} is None or type({value}) is Events)"
            case "seq":
                return f"(type({value}) is tuple and all({self.inhabits('x__', kind.of[0])} for x__ in {value}))"
            case "set":
                return f"(type({value}) is frozenset and all({self.inhabits('x__', kind.of[0])} for x__ in {value}))"
            case "map":
                both = f"{self.inhabits('k__', kind.of[0])} and {self.inhabits('x__', kind.of[1])}"
                return f"(type({value}) is dict and all({both} for k__, x__ in {value}.items()))"
            case "tuple" | "record":
                items = zip(self.attributes(kind), kind.of, strict=True)
                parts = [self.inhabits(f"{value}.{attribute}", of) for attribute, of in items]
                return f"(type({value}) is {self.tuple_class(kind)} and {' and '.join(parts)})"
        return f"type({value}) is {self.python(kind.name.removeprefix('enum '))}"
