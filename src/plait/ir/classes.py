"""The classes of a program: what the virtual machine must know of each class whose instances it can meet.

Methods, properties and constants of classes are lowered when the program uses a name that a class defines. An instance
of a class that is not in the table makes the virtual machine bail.
"""

from __future__ import annotations

import abc
import ast
import collections
import dataclasses
import enum
import inspect
import itertools
import types
from collections import defaultdict, deque
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from plait.ir import nodes
from plait.ir.builtins import COLLECTIONS, derived_from, flag_objection, is_foreign, is_named_tuple, is_special
from plait.ir.frame import NO_CONTENT, is_code, unwrapped
from plait.ir.nodes import Expression
from plait.ir.parameters import Parameters, Supplied, parameters_of
from plait.ir.scope import Instance, Kind, Static, Viewed
from plait.model.clock import Clock
from plait.model.message import Message
from plait.model.monitor import Monitor
from plait.model.process import Process
from plait.model.shared import Shared
from plait.model.view import VIEW_KEEPS

if TYPE_CHECKING:
    from plait.ir.effects import Effects
    from plait.ir.program import Lowering

RECEIVER = "(value)"
"""The parameter for the value on which a static method or a class method is called."""
_HARMLESS = frozenset(
    [
        "__repr__",
        "__str__",
        "__format__",
        "__init_subclass__",
        "__class_getitem__",
        "__getnewargs__",
        "__getstate__",
        "__setstate__",
        "__replace__",
        "__reduce__",
        "__reduce_ex__",
        "__copy__",
        "__deepcopy__",
        "__sizeof__",
        "__dir__",
        "__subclasshook__",
        "__set_name__",
        "__rich_repr__",
    ]
)
"""Special methods that change nothing which the virtual machine computes. (It bails on the text of instances.)"""
_OF_CLASSES = ("__init_subclass__", "__class_getitem__", "__subclasshook__", "__set_name__")
"""Special methods of classes, which no instance uses."""
_DATA: tuple[type, ...] = (str, tuple, list, dict, int, frozenset, type(None), types.GetSetDescriptorType)
_DATA += (types.MemberDescriptorType, dataclasses._DataclassParams)  # type: ignore[attr-defined]
"""The types of what Python itself notes in a class: `__doc__`, `__annotations__`, `__dataclass_params__`."""
_LIBRARY: tuple[str, ...] = (
    "abc",
    "builtins",
    "collections",
    "collections.abc",
    "dataclasses",
    "enum",
    "functools",
    "typing",
)
_LIBRARY += (
    "plait.model.message",
    "plait.model.process",
    "plait.model.monitor",
    "plait.model.shared",
    "typing_extensions",
)
_DEEPEST = 100
"""No state holds a value that is nested more deeply."""
_NO_CALL = ast.Pass()
"""Stands for a call without arguments, where there is none in the source."""
_FACTORIES: dict[type, Expression] = {
    list: nodes.ListDisplay([]),
    tuple: nodes.TupleDisplay([]),
    dict: nodes.DictDisplay([], []),
}
_FACTORIES |= {f: nodes.CallBuiltin(f.__name__, [], {}) for f in (set, frozenset, int, str, bool, float)}
_FACTORIES |= {f: nodes.CallBuiltin(name, [], {}) for f, name in COLLECTIONS.items() if f is not defaultdict}


def is_values(cls: type) -> bool:
    """Whether a class has values: an enum, a named tuple, a dataclass, a message, a class that derives from a built-in."""
    known = issubclass(cls, enum.Enum) or is_named_tuple(cls) or dataclasses.is_dataclass(cls)
    return known or derived_from(cls) is not None


def _is_generated(value: Any) -> bool:
    value = getattr(value, "__func__", value)
    if isinstance(value, types.FunctionType) and value.__code__.co_filename.startswith("<"):
        return True
    return callable(value) and getattr(value, "__module__", None) in _LIBRARY


def special_method(cls: type, except_for: Collection[str] = (), harmless: Collection[str] = _HARMLESS) -> str | None:
    """A special method that a class or one of its bases defines, in whatever way; None if there is none."""
    for base in cls.__mro__:
        if base.__module__ in _LIBRARY:
            continue
        for key, value in base.__dict__.items():
            if key == "_missing_" and issubclass(cls, enum.Enum):
                return key
            if not (key.startswith("__") and key.endswith("__")) or key.startswith("__plait_"):
                continue
            if key in harmless or key in except_for:
                continue
            if not isinstance(value, _DATA) and not _is_generated(value):
                return key
    return None


def attribute_hook(cls: type, fields: Iterable[str]) -> str | None:
    """What runs if a field of an instance is read, set or deleted, apart from Plait's own code; None if nothing does."""
    for base in cls.__mro__[:-1]:
        for name in ("__getattr__", "__getattribute__", "__setattr__", "__delattr__"):
            found = base.__dict__.get(name)
            if found is not None and base.__module__ not in _LIBRARY and not _is_generated(found):
                return f"{base.__name__}.{name}"
    for name in fields:
        found = inspect.getattr_static(cls, name, None)
        if hasattr(type(found), "__get__") or hasattr(type(found), "__set__"):
            return f"{cls.__name__}.{name}, a descriptor"
    return None


def _receiver(cls: type) -> Kind:
    """What is known of `self` in a method that is found by its name. A process is then one that a property looks at."""
    return Viewed(cls) if issubclass(cls, Process) else Instance(cls)


class Classes:
    """The table of classes."""

    def __init__(self, lowering: Lowering) -> None:
        self.lowering = lowering
        self.order: list[type] = []
        self._numbers: dict[type, int] = {}
        self._objections: dict[type, str | None] = {}
        self._fields: dict[type, tuple[str, ...]] = {}
        self._members: dict[type, dict[str, Any]] = {}
        self._used: dict[str, None] = {}
        self._shapes: dict[tuple[str, int, tuple[str, ...]], str] = {}
        self._plain: dict[str, int] = {}
        self._swept: set[int] = set()
        self.methods: dict[tuple[type, str], int] = {}
        """Functions of the program, by class and name of a method."""
        self.properties: dict[tuple[type, str], int] = {}
        self._constants: dict[tuple[type, str], bytes] = {}
        self._asked: set[tuple[type, Any]] = set()

    # -- the table -------------------------------------------------------------------------------------------------

    def number(self, cls: type) -> int:
        """The number of a class. A class that is new gets the next one."""
        found = self._numbers.get(cls)
        if found is None:
            found = self._numbers[cls] = len(self.order)
            self.order.append(cls)
        return found

    def fields(self, cls: type) -> tuple[str, ...]:
        """The fields of a class."""
        found = self._fields.get(cls)
        if found is None:
            if issubclass(cls, Process | Monitor | Shared):
                found = cls.__plait_fields__
            elif is_named_tuple(cls):
                found = tuple(cls._fields)  # type: ignore[attr-defined]
            elif dataclasses.is_dataclass(cls):
                found = tuple(f.name for f in dataclasses.fields(cls))
            elif cls is Clock:
                found = cls.__plait_record__
            else:
                found = ()
            self._fields[cls] = found
        return found

    def objection(self, cls: type) -> str | None:
        """Why values of this class cannot be lowered; None if they can."""
        if cls not in self._objections:
            self._objections[cls] = self._objection(cls)
        return self._objections[cls]

    def self_objection(self, cls: type) -> str | None:
        """Why methods whose `self` is of this class cannot be lowered; None if they can."""
        if not issubclass(cls, Process | Monitor | Shared):
            return self.objection(cls)
        special = special_method(cls, except_for=("__init__", "__post_init__"))
        return attribute_hook(cls, self.fields(cls)) if special is None else f"{cls.__name__}, which defines {special}"

    def view_objection(self, cls: type[Process]) -> str | None:
        """Why properties that look at processes of this class cannot be lowered; None if they can."""
        special = special_method(cls, except_for=VIEW_KEEPS)
        return None if special is None else f"{cls.__name__}, which defines {special}"

    def _objection(self, cls: type) -> str | None:
        name = cls.__name__
        if issubclass(cls, Process | Monitor | Shared):
            return f"{name} as a value"
        if type(cls) not in (type, abc.ABCMeta, enum.EnumType) or not is_values(cls) or cls is Message:
            return f"{name}(…)"
        if self.lowering.whole and is_special(cls):
            return f"{name}(…)"
        base = derived_from(cls)
        special = special_method(cls) if base is None else special_method(cls, harmless=_OF_CLASSES)
        if special is not None:
            return f"{name}, which defines {special}"
        if base is not None:
            if cls.__hash__ is None:
                return f"{name}, which cannot be hashed"
            replaced = [key for key in self.members(cls) if hasattr(base, key)]
            return f"{name}.{replaced[0]}, which replaces a method of {base.__name__}" if replaced else None
        hook = None if is_named_tuple(cls) else attribute_hook(cls, self.fields(cls))
        if hook is not None:
            return hook
        if issubclass(cls, enum.Enum):
            if cls._member_type_ is not object:  # type: ignore[attr-defined]
                return f"{name}, an enum that is also another type"
            return flag_objection(cls) if issubclass(cls, enum.Flag) else None
        if is_named_tuple(cls):
            return None
        return self._record_objection(cls)

    @staticmethod
    def _record_objection(cls: type) -> str | None:
        params: Any = cls.__dataclass_params__  # type: ignore[attr-defined]
        made = {key for base in cls.__mro__[:-1] for key in base.__dict__}
        if not params.init or ("__eq__" in made) != params.eq or ("__lt__" in made) != params.order:
            return f"{cls.__name__}, a dataclass with inherited methods"
        for field in cls.__dataclass_fields__.values():  # type: ignore[attr-defined]
            if field._field_type is dataclasses._FIELD_INITVAR or not field.compare:  # type: ignore[attr-defined]
                return f"{cls.__name__}.{field.name}, a field with special rules"
        return None

    def meet(self, value: Any, depth: int = 0) -> str | None:
        """Put the classes of the objects in a value into the table. Returns why the value cannot be a constant."""
        if depth > _DEEPEST:  # no state can hold it
            return "a value that is nested too deeply"
        if isinstance(value, Shared):
            return f"the shared object {value!r}, which no field of the process holds"
        found: str | None = None
        parts: Iterable[Any] = ()
        if is_foreign(value) or (self.lowering.whole and is_special(type(value))):
            return f"a value of type {type(value).__name__}"
        if isinstance(value, enum.Enum) or derived_from(type(value)) is not None:
            found = self._add(type(value))
            parts = value if isinstance(value, tuple) else ()
        elif isinstance(value, tuple | list | set | frozenset | deque):
            found = self._add(type(value)) if hasattr(value, "_fields") else None
            parts = value
        elif isinstance(value, dict):
            if isinstance(value, defaultdict):
                self.lowering.inserts = True
                found = "a defaultdict that is a constant, which a subscript may change"
            parts = itertools.chain(value, value.values())
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            found = self._add(type(value))
            parts = (getattr(value, name, None) for name in self.fields(type(value)))
        for part in parts:
            objection = self.meet(part, depth + 1)
            found = found or objection
        return found

    def _add(self, cls: type) -> str | None:
        objection = self.objection(cls)
        if objection is None:
            self.number(cls)
        return objection

    def sweep(self, names: dict[str, Any]) -> None:
        """Put the classes of a module into the table: a function that CPython runs may make instances of them."""
        if id(names) in self._swept:
            return
        self._swept.add(id(names))
        for value in list(names.values()):
            if value is defaultdict or value is collections:
                self.lowering.inserts = True
            if isinstance(value, type) and value not in self._numbers and is_values(value):
                own = value.__module__
                if own == "plait.model.linearizability" or not own.startswith(("plait.model.", "plait.kernel.")):
                    self._add(value)

    # -- constructors ----------------------------------------------------------------------------------------------

    def parameters(self, cls: type) -> Parameters:
        """The parameters of the constructor."""
        if is_named_tuple(cls):
            names = self.fields(cls)
            defaults = cls._field_defaults  # type: ignore[attr-defined]
            return Parameters(names, frozenset(names), tuple(n for n in names if n not in defaults))
        fields = [f for f in dataclasses.fields(cls) if f.init]
        missing = dataclasses.MISSING
        required = tuple(f.name for f in fields if f.default is missing and f.default_factory is missing)
        positional = tuple(f.name for f in fields if not f.kw_only)
        return Parameters(positional, frozenset(f.name for f in fields), required)

    def filled(self, cls: type, given: dict[str, Expression], frame: Effects, node: ast.AST) -> list[Expression]:
        """A value for each field, in order: those that are given, and defaults."""
        names = list(self.fields(cls))
        if not set(given) <= set(names):
            raise frame.refused(node, f"arguments of {cls.__name__}(…)")
        if is_named_tuple(cls):
            defaults = cls._field_defaults  # type: ignore[attr-defined]
            return [given[n] if n in given else frame.constant(defaults[n], node) for n in names]
        found: list[Expression] = []
        for field in dataclasses.fields(cls):
            if field.name in given:
                found.append(given[field.name])
            elif field.default is not dataclasses.MISSING:
                found.append(frame.constant(field.default, node))
            elif field.default_factory is not dataclasses.MISSING:
                found.append(self._from_factory(field.default_factory, frame, node))
            else:
                raise frame.refused(node, f"arguments of {cls.__name__}(…)")
        return found

    def _from_factory(self, factory: Any, frame: Effects, node: ast.AST) -> Expression:
        factory = unwrapped(factory)
        if isinstance(factory, type) and factory in _FACTORIES:
            return _FACTORIES[factory]
        if isinstance(factory, types.FunctionType) and not parameters_of(factory).required:
            return frame.call(factory, [], _NO_CALL)
        if isinstance(factory, type) and self.objection(factory) is None and not self.parameters(factory).required:
            return frame.made(factory, {}, node)
        raise frame.refused(node, "default_factory that is no function")

    # -- attributes ------------------------------------------------------------------------------------------------

    def use(self, name: str) -> None:
        """Note that the program reads an attribute of this name of some value."""
        self._used[name] = None

    def call(self, name: str, count: int, keywords: tuple[str, ...]) -> str:
        """Note that the program calls a method of some value. Returns the name of the method in the table.

        Calls with other numbers of arguments, or with keywords, reach other variants of the method, by other names.
        """
        shape = (name, count, keywords)
        found = self._shapes.get(shape)
        if found is None:
            plain = not keywords and self._plain.setdefault(name, count) == count
            found = name if plain else f"{name}/{'/'.join([str(count), *keywords])}"
            self._shapes[shape] = found
        return found

    def members(self, cls: type) -> dict[str, Any]:
        """What the class and its bases define, except fields and special methods."""
        found = self._members.get(cls)
        if found is None:
            found = {}
            for base in reversed(cls.__mro__):
                if base.__module__ not in _LIBRARY:
                    found.update({k: v for k, v in base.__dict__.items() if not k.startswith("_")})
            for name in (*self.fields(cls), *(cls.__members__ if issubclass(cls, enum.Enum) else ())):
                found.pop(name, None)
            self._members[cls] = found
        return found

    def defines(self, name: str) -> bool:
        """Whether a class of the table has a method of this name."""
        return any(name in self.members(cls) for cls in self.order)

    def complete(self) -> None:
        """Lower the methods, properties and constants that the program uses. This may use more names and classes."""
        before = -1
        while before != len(self._asked):
            before = len(self._asked)
            for cls in list(self.order):
                if not is_values(cls) and not issubclass(cls, Process | Monitor):
                    continue
                members = self.members(cls)
                if members:
                    for name in [n for n in members if n in self._used]:
                        self._attribute(cls, name, members[name])
                    for shape, called in [s for s in self._shapes.items() if s[0][0] in members]:
                        self._method(cls, shape, called, members[shape[0]])

    def _attribute(self, cls: type, name: str, value: Any) -> None:
        if (cls, name) in self._asked:
            return
        self._asked.add((cls, name))
        if isinstance(value, property):
            getter = unwrapped(value.fget)
            if isinstance(getter, types.FunctionType) and len(parameters_of(getter).positional) == 1:
                supplied = ((parameters_of(getter).positional[0], _receiver(cls)),)
                self.properties[cls, name] = self.lowering.variant(getter, supplied, None, None)
        elif not is_code(value) and not hasattr(type(value), "__get__"):
            try:
                content = self.lowering.encode(value)
            except NO_CONTENT:
                return
            if self.meet(value) is None:
                self._constants[cls, name] = content

    def _method(self, cls: type, shape: tuple[str, int, tuple[str, ...]], called: str, value: Any) -> None:
        if (cls, shape) in self._asked:
            return
        self._asked.add((cls, shape))
        _, count, keywords = shape
        function = unwrapped(value.__func__ if isinstance(value, classmethod) else value)
        if not isinstance(function, types.FunctionType) or (cls, called) in self.methods:
            return
        parameters = parameters_of(function)
        first: tuple[Supplied, ...] = ((RECEIVER, None),)
        names = list(parameters.positional)
        if isinstance(value, classmethod):
            first += ((names.pop(0), Static(cls)),)
        elif not isinstance(value, staticmethod):
            first = ((names.pop(0), _receiver(cls)),) if names else ()
        supplied = (*first, *((n, None) for n in names[:count]), *((k, None) for k in keywords))
        given = [n for n, _ in supplied]
        fits = count <= len(names) and set(keywords) <= parameters.keywords and len(set(given)) == len(given)
        if fits and first and not parameters.kwarg and set(parameters.required) <= set(given):
            self.methods[cls, called] = self.lowering.variant(function, supplied, None, None)

    def method(self, cls: type, called: str, count: int) -> int | None:
        """The function that a call of a method with `count` arguments reaches; None if it is not in the table."""
        return self.methods.get((cls, self._shapes.get((called, count, ()), called)))

    # -- the result ------------------------------------------------------------------------------------------------

    def finished(self) -> list[nodes.Class]:
        """The table."""
        by_class: dict[type, tuple[dict[str, int], dict[str, int], dict[str, bytes]]] = {}
        for number, found in enumerate((self.methods, self.properties, self._constants)):
            for (cls, name), value in found.items():  # type: ignore[attr-defined]
                by_class.setdefault(cls, ({}, {}, {}))[number][name] = value
        texts = [n for n in self._used if n.startswith("__class__")]
        return [self._entry(cls, *by_class.get(cls, ({}, {}, {})), texts) for cls in self.order]

    def _entry(
        self,
        cls: type,
        methods: dict[str, int],
        properties: dict[str, int],
        constants: dict[str, bytes],
        texts: list[str],
    ) -> nodes.Class:
        encode = self.lowering.encode
        fields: list[str] = list(self.fields(cls))
        values: list[bytes] = []
        kind: Any = "record"
        mutable, equal, ordered = False, True, False
        if issubclass(cls, enum.Enum):
            flag = issubclass(cls, enum.Flag)
            # A class has combinations and nothing as members only if they have names.
            members: list[Any] = list(dict.fromkeys(cls.__members__.values())) if flag else list(cls)
            kind, fields = "flag" if flag else "enum", [m.name for m in members]
            for member in members:
                try:
                    values.append(encode(member.value))
                except NO_CONTENT:
                    values.append(b"")
        elif issubclass(cls, Process | Monitor | Shared):
            kind = "process" if issubclass(cls, Process) else "monitor" if issubclass(cls, Monitor) else "shared"
            mutable, equal = True, False
        elif is_named_tuple(cls):
            kind, ordered = "tuple", True
        elif derived_from(cls) is not None:
            kind, ordered = "derived", True
        elif dataclasses.is_dataclass(cls):
            params: Any = cls.__dataclass_params__  # type: ignore[attr-defined]
            kind = "message" if issubclass(cls, Message) else "record"
            mutable, equal, ordered = not params.frozen, params.eq, params.order
        elif cls is Message:
            kind = "message"
        elif cls is Clock:
            mutable, equal = True, False
        name = f"{cls.__module__}.{cls.__qualname__}"
        for text in texts:
            attribute = text.partition(".")[2]
            constants[text] = encode(getattr(cls, attribute) if attribute else name)
        bases = [i for i, other in enumerate(self.order) if issubclass(cls, other)]
        return nodes.Class(
            name=name,
            kind=kind,
            fields=fields,
            values=values,
            mutable=mutable,
            equal=equal,
            ordered=ordered,
            hashable=cls.__hash__ is not None,
            bases=bases,
            methods=methods,
            properties=properties,
            constants=constants,
        )
