"""Which functions of the user's a handler, a guard, a property or a monitor reaches, as far as this can be read.

`Reach` follows the names that a function uses to globals, attributes of classes, closures, defaults and containers.
A function that comes out of `getattr`, of a library or of a computed key is found when it is called
(`plait.check.tabulate.probing`).

A function counts as the user's unless it belongs to Plait or to the core of the standard library. The zoo and other
packages count as the user's.
"""

from __future__ import annotations

import contextlib
import functools
import pathlib
import sys
import sysconfig
import types
from collections.abc import Iterable, Iterator
from typing import Any

from plait.check.tabulate import rewriting

_OURS = pathlib.Path(__file__).parents[2]
_LIBRARY = tuple({folder for kind in ("stdlib", "platstdlib") if (folder := sysconfig.get_path(kind))})
_TRUSTED = (
    *("abc", "bisect", "collections", "contextlib", "copy", "copyreg", "dataclasses", "datetime", "decimal", "enum"),
    *(
        "fractions",
        "functools",
        "heapq",
        "importlib",
        "inspect",
        "itertools",
        "json",
        "linecache",
        "logging",
        "numbers",
    ),
    *("operator", "os", "pathlib", "pprint", "random", "re", "reprlib", "string", "textwrap", "threading", "time"),
    *("traceback", "types", "typing", "unittest", "warnings", "weakref"),
)
"""Modules of the standard library whose results do not depend on the order of a set of their own."""
_MOST_ITEMS = 10_000
"""Functions in larger containers are found when they are called."""
_ATOMS = {int, float, complex, bool, str, bytes, type(None), types.BuiltinFunctionType, types.ModuleType}
_BY_NAME = {"getattr", "globals", "locals", "vars", "eval", "exec", "__dict__", "__import__", "import_module"}
"""Names that find functions which the source does not name."""
_MAKING = {"__init__", "__new__", "__post_init__", "__init_subclass__"}
CACHED: Any = type(functools.cache(len))
"""The type of what `functools.cache` and `functools.lru_cache` make."""
_INSIDE = ("fget", "fset", "fdel", "func", "args", "keywords", "__func__", "__wrapped__")
_METHODS = (types.FunctionType, staticmethod, classmethod)
_HOLDERS = (property, staticmethod, classmethod, functools.cached_property, functools.partial, CACHED)


@functools.cache
def is_users_file(file: str) -> bool:
    """Whether the functions of a file of source have twins: all but those of Plait and of the trusted library."""
    path = pathlib.Path(file)
    if path.is_relative_to(_OURS):
        return path.relative_to(_OURS).parts[0] == "protocols"
    for folder in _LIBRARY:
        if path.is_relative_to(folder):
            module = path.relative_to(folder).parts[0].removesuffix(".py")
            return module not in _TRUSTED
    return True


@functools.cache
def is_users_class(cls: type) -> bool:
    """Whether a class belongs to the model."""
    room = str(cls.__module__).split(".")
    return room[:2] == ["plait", "protocols"] if room[0] == "plait" else room[0] not in sys.stdlib_module_names


class Reach:
    """The functions that are reached from some values. `candidates`: classes whose instances may be met."""

    def __init__(self, *roots: Any, candidates: Iterable[type] = ()) -> None:
        self.code: dict[types.FunctionType, tuple[types.CodeType, types.CodeType]] = {}
        """The functions, each with its own code and that of its twin."""
        self.classes: dict[type, bool] = {}
        """The classes whose methods are followed by name; whether instances may be made here."""
        self.makes_sets = False
        """Whether a function makes a set, or uses one that exists."""
        self.iterates = False
        """Whether a function iterates something, or calls a function that may."""
        self._names: set[str] = set()
        self._any_name = False
        """Whether a function finds attributes by names that are computed."""
        self._known: dict[int, Any] = {}
        for cls in candidates:
            self.add(*self._class(cls, makes=False))
        self.add(*roots)

    @property
    def depends_on_order(self) -> bool:
        """Whether the order of a set that the functions make, or find in the model, could matter."""
        return self.makes_sets and self.iterates

    def add(self, *values: Any) -> None:
        """Follow these values to functions."""
        stack = list(values)
        while stack:
            value = stack.pop()
            kind = type(value)
            if kind in _ATOMS or id(value) in self._known:
                continue
            if kind is types.MethodType:  # made for each call, so it is not remembered
                stack += (value.__func__, type(value.__self__))
                continue
            self._known[id(value)] = value
            stack += self._inside(value, kind)

    def _inside(self, value: Any, kind: type) -> Iterable[Any]:
        if kind in (list, tuple, set, frozenset):
            self.makes_sets |= kind in (set, frozenset)
            return value if len(value) <= _MOST_ITEMS else ()
        if kind in (dict, types.MappingProxyType):
            return value.values() if len(value) <= _MOST_ITEMS else ()
        if kind is types.FunctionType:
            return self._function(value)
        if kind in _HOLDERS:
            return [getattr(value, name) for name in _INSIDE if getattr(value, name, None) is not None]
        if issubclass(kind, type):
            return self._class(value) if is_users_class(value) else ()
        if is_users_class(kind):  # type: ignore[arg-type]
            return (kind, getattr(value, "__dict__", None))
        if kind.__module__.startswith("plait.model"):  # a Handler, a Property
            return (getattr(value, "__dict__", None),)
        held = getattr(value, "__dict__", None)  # an object of a library that wraps a function
        return [held[name] for name in ("__wrapped__", "func") if name in held] if isinstance(held, dict) else ()

    def _class(self, cls: type, *, makes: bool = True) -> list[Any]:
        if self.classes.get(cls, False) >= makes and cls in self.classes:
            return []
        self.classes[cls] = makes
        inside = []
        for base in cls.__mro__:
            for name, value in vars(base).items() if is_users_class(base) else ():
                special = name.startswith("__") and type(value) in _METHODS and (makes or name not in _MAKING)
                if special or self._any_name or name in self._names:
                    inside.append(value)
        return inside

    def _named(self, names: set[str]) -> Iterator[Any]:
        """The attributes of the classes that have these names."""
        for cls in self.classes:
            for base in cls.__mro__:
                if is_users_class(base):  # its bases may belong to Plait or to a library
                    there = vars(base)
                    yield from (there[name] for name in names & there.keys())

    def _function(self, function: types.FunctionType) -> list[Any]:
        inside: list[Any] = [function.__defaults__, function.__kwdefaults__, function.__dict__]
        for cell in function.__closure__ or ():
            with contextlib.suppress(ValueError):  # not filled yet
                inside.append(cell.cell_contents)
        code = function.__code__
        if not is_users_file(code.co_filename):
            return [value for value in inside if type(value) not in (set, frozenset)]
        self.makes_sets |= any(value is set or value is frozenset for value in inside)
        found = rewriting.twin(code)
        if found is None:
            return inside
        self.code[function] = (code, found.code)
        self.makes_sets |= found.makes_sets
        self.iterates |= found.iterates
        used = rewriting.names(code)
        if used & _BY_NAME:
            self.makes_sets = self.iterates = self._any_name = True
            used |= {name for cls in self.classes for base in cls.__mro__ for name in vars(base)}
        there = function.__globals__
        for name in used & there.keys():
            inside.append(there[name])
            if isinstance(there[name], types.ModuleType) and is_users_file(
                getattr(there[name], "__file__", None) or ""
            ):
                inside += [vars(there[name])[inner] for inner in used & vars(there[name]).keys()]
        inside += self._named(used - self._names)
        self._names |= used
        return inside
