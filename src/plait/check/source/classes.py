"""The classes of the values that a model can hold, and what their attributes and operators run.

A state holds numbers, strings, containers, enums, named tuples and dataclasses. Only the last three can have code of the
user. A handler can make a value of a class only if some code of the model refers to the class, or if the class is in
the first state. So these classes are found by a walk over all functions that the model refers to. A class that is found
in another way (an unusual import in a handler that the analysis gave up on) is caught while searching:
`plait.check.reduce.relevance` refuses a message or a local state with a class that is not in this list.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import inspect
import sys
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from plait.ir.definition import UNKNOWN, codes, value_of
from plait.kernel.pid import Pid
from plait.model.message import Message
from plait.model.process import Process
from plait.model.shared import Shared
from plait.model.system import System

_STDLIB = str(Path(inspect.__file__).parent)
_CONSTRUCTORS = {"__init__", "__new__", "__post_init__", "__init_subclass__", "__set_name__"}
"""Special methods that run only if the class is called or derived from, which the analysis sees."""


_BUILTIN_CODE = (
    *(types.BuiltinFunctionType, types.WrapperDescriptorType, types.MethodDescriptorType),
    *(types.ClassMethodDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType),
)


def is_record(cls: type) -> bool:
    """Whether instances of a class can be part of a state, and the class may have code of the user.

    >>> is_record(int), is_record(enum.Enum)
    (False, True)
    """
    if issubclass(cls, Process | Pid | Shared) or cls in (str, int, bool, tuple):
        return False
    # A defaultdict calls its factory, and changes when it is read.
    derived = issubclass(cls, str | int | tuple | collections.defaultdict)
    return dataclasses.is_dataclass(cls) or issubclass(cls, enum.Enum) or derived


class Classes:
    """The record classes of a System, and the classes of its shared objects."""

    def __init__(self, system: System) -> None:
        self.records: set[type] = set()
        self.shared: set[type] = set(map(type, system.shared))
        self._classes: set[type] = set()
        self._seen: set[int] = set()
        self._kept: list[Any] = []  # so that no id is used twice
        for cls in dict.fromkeys((*system.classes, *map(type, system.processes))):
            self._class(cls)
        for process in system.processes:
            self._value([process.__dict__[name] for name in type(process).__plait_fields__])
        for shared in system.shared:
            self._value(shared)

    def special(self) -> str | None:
        """A special method that the user wrote: an operator on a value may run it. None if there is none."""
        if collections.defaultdict in self.records:
            return "defaultdict.__missing__"
        for cls in self._all():
            for base in cls.__mro__[:-1]:
                if is_library(base.__module__):
                    continue
                for name, found in base.__dict__.items():
                    if _is_special(name) and name not in _CONSTRUCTORS and _is_written(found):
                        return f"{base.__qualname__}.{name}"
        return None

    def attribute(self, name: str, only: frozenset[type] | None = None) -> list[tuple[type, Any]]:
        """What records and shared objects have under this name: "data" for a field, else the raw attribute.

        `only` are the classes to look at, if this is certain.
        """
        found: list[tuple[type, Any]] = []
        for cls in self._all() if only is None else sorted(only, key=lambda c: c.__qualname__):
            if name in fields_of(cls) or (issubclass(cls, enum.Enum) and name in ("name", "value")):
                found.append((cls, "data"))
            elif (raw := inspect.getattr_static(cls, name, UNKNOWN)) is not UNKNOWN:
                found.append((cls, raw))
        return found

    def _all(self) -> list[type]:
        return sorted(self.records | self.shared, key=lambda c: c.__qualname__)

    # -- the walk --------------------------------------------------------------------------------------------------

    def _once(self, value: Any) -> bool:
        if id(value) in self._seen:
            return False
        self._seen.add(id(value))
        self._kept.append(value)
        return True

    def _value(self, value: Any) -> None:
        """A value that the code refers to, or that is part of the first state."""
        if isinstance(value, str | bytes | int | float | None) and type(value).__module__ == "builtins":
            return
        if isinstance(value, staticmethod | classmethod):
            value = value.__func__
        if not self._once(value):
            return
        if isinstance(value, type):
            self._class(value)
        elif isinstance(value, types.FunctionType):
            self._function(value)
        elif isinstance(value, functools.partial):
            self._values((value.func, *value.args, *value.keywords.values()))
        elif isinstance(value, property):
            self._values((value.fget, value.fset))
        elif isinstance(value, types.MethodType):
            self._values((value.__func__, value.__self__))
        elif isinstance(value, tuple | list | set | frozenset | collections.deque):
            self._class(type(value))
            self._values(value)
        elif isinstance(value, dict):
            self._class(type(value))
            self._values((*value.keys(), *value.values()))
        elif not isinstance(value, types.ModuleType):
            self._class(type(value))
            if isinstance(value, Shared):
                self._values(value.__dict__.get(name) for name in value.__plait_fields__)
            elif dataclasses.is_dataclass(value) and not isinstance(value, Process):
                self._values(getattr(value, f.name, None) for f in dataclasses.fields(value))
            elif isinstance(value, enum.Enum):
                self._value(value.value)

    def _values(self, values: Iterable[Any]) -> None:
        for value in values:
            self._value(value)

    def _class(self, cls: type) -> None:
        """A class, with its bases and all that they refer to."""
        for base in cls.__mro__[:-1]:
            if base in self._classes or is_library(base.__module__) or _is_ours(base.__module__):
                continue
            self._classes.add(base)
            if is_record(base):
                self.records.add(base)
            self._values(list(base.__dict__.values()))
            for field in dataclasses.fields(base) if dataclasses.is_dataclass(base) else ():
                self._values((field.default, field.default_factory))
            for handler in getattr(base, "__plait_handlers__", ()):
                self._values((handler.function, handler.where, handler.size, handler.accept, *handler.messages))
        if is_record(cls) and cls is not Message:
            self.records.add(cls)  # a class of the library, too

    def _function(self, function: types.FunctionType) -> None:
        if function.__module__ is None or is_library(function.__module__) or _is_ours(function.__module__):
            return
        self._values((*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()))
        if (wrapped := getattr(function, "__wrapped__", None)) is not None:
            self._value(wrapped)
        names = {n for code in codes(function.__code__) for n in (*code.co_names, *code.co_freevars)}
        for name in sorted(n for n in names if not n.startswith("@")):  # pytest adds names to assertions
            self._name(value_of(function, name), names)

    def _name(self, value: Any, names: set[str]) -> None:
        if isinstance(value, types.ModuleType):
            if value is collections and "defaultdict" in names:
                self._value(collections.defaultdict)
            if not is_library(value.__name__) and not _is_ours(value.__name__):
                for name in names & value.__dict__.keys():
                    if not isinstance(value.__dict__[name], types.ModuleType):
                        self._value(value.__dict__[name])
        elif value is not UNKNOWN:
            self._value(value)


def fields_of(cls: type) -> frozenset[str]:
    """The names of the fields of a dataclass or named tuple."""
    if dataclasses.is_dataclass(cls):
        names = frozenset(f.name for f in dataclasses.fields(cls))
        return names | {"sender"} if issubclass(cls, Message) else names
    return frozenset(getattr(cls, "_fields", ()))


def held(value: Any) -> Iterator[type]:
    """The record classes in a value of a state.

    >>> from plait.protocols.paxos import Read
    >>> [cls.__name__ for cls in held([1, {2: Read(3)}])]
    ['Read']
    """
    if is_record(type(value)):
        yield type(value)
    if isinstance(value, dict):
        value = (*value.keys(), *value.values())
    elif dataclasses.is_dataclass(value) and not isinstance(value, Pid | Shared):
        value = tuple(getattr(value, f.name, None) for f in dataclasses.fields(value))
    if isinstance(value, tuple | list | set | frozenset | collections.deque):
        for item in value:
            yield from held(item)


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _is_written(value: Any) -> bool:
    """Whether this is code of the user, and not made by @dataclass, NamedTuple or Enum."""
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    if isinstance(value, type):
        return not is_library(value.__module__)
    if not isinstance(value, types.FunctionType):
        return (callable(value) or hasattr(type(value), "__get__")) and not isinstance(value, _BUILTIN_CODE)
    file = value.__code__.co_filename
    if file.startswith(_STDLIB) and "site-packages" not in file:
        return False
    made = file == "<string>" or file.startswith("<namedtuple")
    return not made and not _is_ours(value.__module__ or "")


def is_library(module: Any) -> bool:
    """Whether a module is part of Python. A model in a file `queue.py` is not."""
    if not isinstance(module, str) or module.partition(".")[0] not in sys.stdlib_module_names:
        return False
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is None or (file.startswith(_STDLIB) and "site-packages" not in file)


def _is_ours(module: str) -> bool:
    return module.startswith(("plait.model.", "plait.kernel."))
