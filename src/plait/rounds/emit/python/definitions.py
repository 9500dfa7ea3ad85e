"""The definitions of a protocol, cut out of its modules: the classes, functions and constants that it uses, and no others.

From the classes of the processes and the functions of the properties, each name that is used is followed to its
definition: the text of a class or function, an assignment, or an import. Names of Plait must be names that the emitted
file defines itself.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import enum
import inspect
import sys
import textwrap
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from plait.ir.definition import definition
from plait.kernel.errors import ModelError
from plait.kernel.pid import Pid
from plait.kernel.places import place

Regroup = Callable[[type, ast.ClassDef, list[str]], list[tuple[int, int, list[str]]]]
"""Edits of the lines of a class: first line, last line, replacement."""


class Module:
    """The text of a module, and the statements that bind its names."""

    def __init__(self, module: types.ModuleType) -> None:
        try:
            text = getattr(module, "__plait_source__", None) or inspect.getsource(module)
        except (OSError, TypeError):
            raise ModelError(
                f"the source of {module.__name__} cannot be found", hint="give a model in a Python file"
            ) from None
        self.module, self.lines = module, text.split("\n")
        self.statements: dict[str, ast.stmt] = {}
        for node in ast.parse(text).body:
            for name in _bound(node):
                self.statements.setdefault(name, node)

    def place(self, node: ast.AST) -> str:
        """The file and line of a node."""
        return place(getattr(self.module, "__file__", None) or self.module.__name__, getattr(node, "lineno", 1))


class Definitions:
    """The definitions so far, in the order in which they must stand."""

    def __init__(self, provided: Iterable[str], regroup: Regroup) -> None:
        self._provided, self._regroup = frozenset(provided), regroup
        self._modules: dict[str, Module] = {}
        self._found: dict[str, Any] = {}
        """The names that are defined, with their values."""
        self.used: set[str] = set()
        """The names of Plait that are used."""
        self.imports: list[str] = []
        self.texts: list[str] = []

    @property
    def names(self) -> frozenset[str]:
        """The names that the definitions define."""
        return frozenset(self._found)

    # -- names -----------------------------------------------------------------------------------------------------

    def module(self, name: str) -> Module:
        """A module by its name."""
        if name not in self._modules:
            self._modules[name] = Module(sys.modules[name])
        return self._modules[name]

    def require(self, name: str, value: Any, module: Module, node: ast.AST) -> None:
        """Define a name that is used in a module."""
        if name in self._found:
            if self._found[name] is not value and self._found[name] != value:
                raise ModelError(
                    f"{name} has two meanings in the modules of the protocol ({module.place(node)})",
                    hint="rename one of them: the program is one file",
                )
            return
        home = getattr(value, "__module__", None)
        if isinstance(home, str) and home.partition(".")[0] == "plait" and not home.startswith("plait.protocols."):
            if name not in self._provided or getattr(value, "__name__", name) != name:
                raise ModelError(
                    f"the protocol uses {name} of Plait ({module.place(node)}), which plain Python does not have",
                    hint="write the part without it, or use --to plait",
                )
            self.used.add(name)
            return
        statement = module.statements.get(name)
        if statement is None:
            raise ModelError(
                f"the definition of {name} cannot be found ({module.place(node)})",
                hint="define it at the top of the module, with a statement of its own",
            )
        if isinstance(statement, ast.ImportFrom) and self._ours(statement.module or ""):
            if not any(a.name == name and a.asname is None for a in statement.names):
                raise ModelError(
                    f"{name} is imported under another name ({module.place(statement)})", hint="leave as out"
                )
            self.require(name, value, self.module(str(statement.module)), statement)
            return
        self._found[name] = value
        if isinstance(statement, ast.Import | ast.ImportFrom):
            self._import(statement, name)
        elif isinstance(statement, ast.ClassDef):
            self._class(value, statement, module)
        else:
            self._follow(statement, vars(module.module), module)
            self.texts.append("\n".join(module.lines[_first(statement) - 1 : statement.end_lineno]))

    def _ours(self, name: str) -> bool:
        """Whether a module is part of the protocol, and not a library."""
        if name.startswith("plait.protocols."):
            return True
        module = sys.modules.get(name)
        file = getattr(module, "__file__", None) or ""
        return bool(file) and name.partition(".")[0] not in sys.stdlib_module_names and "site-packages" not in file

    def _import(self, node: ast.Import | ast.ImportFrom, name: str) -> None:
        alias = next(a for a in node.names if (a.asname or a.name.partition(".")[0]) == name)
        text = f"import {alias.name}" if isinstance(node, ast.Import) else f"from {node.module} import {alias.name}"
        text += f" as {alias.asname}" if alias.asname else ""
        if text not in self.imports:
            self.imports.append(text)

    def _class(self, cls: type, node: ast.ClassDef, module: Module) -> None:
        self._follow(node, vars(module.module), module)
        first, last = _first(node) - 1, node.end_lineno or node.lineno
        lines = list(module.lines)
        for start, end, replacement in sorted(self._regroup(cls, node, module.lines), reverse=True):
            lines[start:end] = replacement
            last += len(replacement) - (end - start)
        self.texts.append("\n".join(lines[first:last]))

    def _follow(self, node: ast.AST, namespace: dict[str, Any], module: Module) -> None:
        """Define the names that a node uses, except in annotations of functions: these are not evaluated."""
        for name in _names(node):
            if name in namespace:
                if inspect.ismodule(namespace[name]) and self._ours(namespace[name].__name__):
                    raise ModelError(
                        f"the module {name} is used as a whole ({module.place(node)})",
                        hint="import the names that are used: from … import …",
                    )
                self.require(name, namespace[name], module, node)

    # -- roots -----------------------------------------------------------------------------------------------------

    def add_class(self, cls: type) -> None:
        """Define a class of a process or a message."""
        if "<locals>" in cls.__qualname__:
            raise ModelError(f"{cls.__qualname__} is defined in a function", hint="define it at the top of a module")
        module = self.module(cls.__module__)
        node = module.statements.get(cls.__name__)
        if node is None or getattr(module.module, cls.__name__, None) is not cls:
            raise ModelError(
                f"the definition of {cls.__name__} cannot be found", hint="define it at the top of a module"
            )
        self.require(cls.__name__, cls, module, node)

    def add_function(self, name: str, function: Any) -> str:
        """Define a function of a property or an assumption. Returns an expression for it."""
        found = definition(function) if isinstance(function, types.FunctionType) else None
        if found is None:
            raise ModelError(f"the source of {name} cannot be found", hint="write it as a function in a Python file")
        module = self.module(function.__module__)
        for part in found.body if isinstance(found, ast.FunctionDef) else [found.body]:  # without its decorators
            self._follow(part, function.__globals__, module)
        for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self.add_constant(variable, cell.cell_contents, module, found)
        if isinstance(found, ast.Lambda):
            return ast.unparse(found)
        text = textwrap.dedent("\n".join(module.lines[found.lineno - 1 : found.end_lineno]))
        if found.name in self._found and self._found[found.name] is not function:
            raise ModelError(
                f"{found.name} has two meanings in the protocol ({module.place(found)})", hint="rename one of them"
            )
        self._found[found.name] = function
        if text not in self.texts:
            self.texts.append(text)
        return found.name

    def add_constant(self, name: str, value: Any, module: Module, node: ast.AST) -> None:
        """Define a variable of the function around a property by its value."""
        if isinstance(value, types.FunctionType):
            if self.add_function(name, value) != name:
                self.texts.append(f"{name} = {self.add_function(name, value)}")
            return
        if name in self._found and self._found[name] != value:
            raise ModelError(
                f"{name} has two meanings in the protocol ({module.place(node)})", hint="rename one of them"
            )
        if name not in self._found and not (isinstance(value, type) and value.__name__ == name):
            self.texts.append(f"{name} = {self.literal(value, name)}")
            self._found[name] = value
        elif isinstance(value, type):
            self.literal(value, name)

    def literal(self, value: Any, what: str) -> str:
        """A value as Python writes it."""
        kind = type(value)
        if value is None or value is Ellipsis or kind in (bool, int, float, str, bytes, complex):
            return repr(value)
        if isinstance(value, Pid):
            return f"Pid({value.role!r}, {value.index})"
        if isinstance(value, type) and hasattr(builtins, value.__name__):
            return value.__name__
        if isinstance(value, type):
            self.add_class(value)
            return value.__name__
        if isinstance(value, enum.Enum) and not isinstance(value, enum.Flag):
            return f"{self.literal(kind, what)}.{value.name}"
        if kind in (list, tuple, set, frozenset):
            items = [self.literal(v, what) for v in (sorted(value, key=repr) if kind in (set, frozenset) else value)]
            if kind is tuple:
                return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
            if kind is list:
                return f"[{', '.join(items)}]"
            return f"{kind.__name__}([{', '.join(items)}])" if items else f"{kind.__name__}()"
        if kind is dict:
            return f"{{{', '.join(f'{self.literal(k, what)}: {self.literal(v, what)}' for k, v in value.items())}}}"
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return f"{self.literal(kind, what)}({', '.join(self.literal(v, what) for v in value)})"
        if dataclasses.is_dataclass(value) and all(f.init for f in dataclasses.fields(value)):
            fields = [f"{f.name}={self.literal(getattr(value, f.name), what)}" for f in dataclasses.fields(value)]
            return f"{self.literal(kind, what)}({', '.join(fields)})"
        raise ModelError(
            f"{what} has the value {value!r} of type {kind.__name__}, which cannot be written as text",
            hint="use numbers, texts, tuples, lists, sets, dicts, enums, named tuples or dataclasses",
        )


def _first(node: ast.stmt) -> int:
    """The first line of a statement, with its decorators."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])


def _bound(node: ast.stmt) -> Iterator[str]:
    """The names that a statement of a module binds."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (a.asname or a.name.partition(".")[0] for a in node.names)
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            yield from (n.id for n in ast.walk(target) if isinstance(n, ast.Name))
    elif type(node).__name__ == "TypeAlias":  # of Python 3.12
        yield node.name.id  # type: ignore[attr-defined]


_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _names(node: ast.AST) -> list[str]:
    """The names that a node reads from the module around it, in order, each once. Annotations count for fields only."""
    return list(dict.fromkeys(_read(node, frozenset())))


def _read(node: ast.AST, local: frozenset[str]) -> Iterator[str]:
    below: list[ast.AST] = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Load) and node.id not in local:
            yield node.id
    elif isinstance(node, ast.FunctionDef | ast.Lambda):
        for part in [*getattr(node, "decorator_list", []), *node.args.defaults, *filter(None, node.args.kw_defaults)]:
            yield from _read(part, local)
        below = list(node.body) if isinstance(node, ast.FunctionDef) else [node.body]
        local |= {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
        local |= {name for part in below for name in _stored(part)}
    elif isinstance(node, _COMPREHENSIONS):
        targets = [n for g in node.generators for n in ast.walk(g.target)]
        local |= {n.id for n in targets if isinstance(n, ast.Name)}
    elif isinstance(node, ast.AnnAssign):
        below = [node.annotation, *([node.value] if node.value is not None else [])]
    for part in below:
        yield from _read(part, local)


def _stored(node: ast.AST) -> Iterator[str]:
    """The variables that a statement of a function assigns."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from _bound(node)
    elif isinstance(node, ast.ExceptHandler) and node.name:
        yield node.name
    if not isinstance(node, (*_COMPREHENSIONS, ast.FunctionDef, ast.ClassDef, ast.Lambda)):
        for part in ast.iter_child_nodes(node):
            yield from _stored(part)
