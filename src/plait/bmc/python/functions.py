"""Functions of the user: their source, their variables, and which of these a nested function captures.

Sources, names and parameters are read with the front end of the native models (`plait.ir`).
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import types
from collections.abc import Hashable, Iterator
from typing import Any

import msgspec
from msgspec import structs

from plait.bmc.program.source import Place
from plait.bmc.python.assignment import read_early
from plait.bmc.python.values import Value
from plait.ir.definition import UNKNOWN, definition_in, source_of, value_of
from plait.ir.scope import Bindings
from plait.kernel.errors import ModelError

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclasses.dataclass(eq=False)
class Function:
    """A function with its source."""

    node: Definition
    origin: types.FunctionType
    """The function of the module; of a nested function, the outermost one around it."""
    file: str
    text: str
    locals: frozenset[str]
    captured: frozenset[str]
    """Variables that nested functions use: they live in cells, which several threads can share."""
    globals: frozenset[str]
    inner_free: frozenset[str] = frozenset()
    """The names that nested functions take from outside, also those of comprehensions."""
    nested: dict[ast.AST, Function] = dataclasses.field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name, for traces."""
        return "lambda" if isinstance(self.node, ast.Lambda) else self.node.name

    @functools.cached_property
    def free(self) -> frozenset[str]:
        """The names that it may take from outside."""
        return frozenset(_free(self.node))

    @property
    def parameters(self) -> list[str]:
        """The names of the parameters."""
        a = self.node.args
        found = [x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
        return found + [x.arg for x in (a.vararg, a.kwarg) if x is not None]

    @property
    def defaults(self) -> list[tuple[str, ast.expr]]:
        """The parameters with a default argument."""
        a = self.node.args
        positional = [x.arg for x in (*a.posonlyargs, *a.args)]
        found = list(zip(positional[len(positional) - len(a.defaults) :], a.defaults, strict=True))
        return found + [(x.arg, d) for x, d in zip(a.kwonlyargs, a.kw_defaults, strict=True) if d is not None]

    @functools.cached_property
    def early(self) -> frozenset[str]:
        """The variables that it may read before they are assigned."""
        body = self.node.body
        return read_early(body, self.locals, self.parameters) if isinstance(body, list) else frozenset()

    @property
    def suspends(self) -> bool:
        """Whether it is an asynchronous function."""
        return isinstance(self.node, ast.AsyncFunctionDef)

    def place(self, node: ast.AST) -> Place:
        """The place of a node, with the text of its first line."""
        line = getattr(node, "lineno", self.node.lineno)
        lines = self.text.splitlines()
        shown = lines[line - 1].strip() if line <= len(lines) else ""
        return Place(line, getattr(node, "col_offset", 0) + 1, shown, self.file)

    def error(self, node: ast.AST, message: str, hint: str | None = None) -> ModelError:
        """An error at a node."""
        place = self.place(node)
        shown = f"\n    {place.text}" if place.text else ""
        return ModelError(f"{self.file}, line {place.line}, column {place.column}: {message}{shown}", hint=hint)

    def inner(self, node: Definition) -> Function:
        """A nested function."""
        if node not in self.nested:
            self.nested[node] = described(node, self.origin, self.file, self.text)
        return self.nested[node]


class Closure(msgspec.Struct, eq=False):
    """A nested function as a value: its variables are those of the frame around it."""

    function: Function
    frame: Frame


class Frame(msgspec.Struct, eq=False):
    """A call of a function, in one context: each variable of it has one type and one place."""

    function: Function
    context: Hashable
    """Where calls and new objects are: another one for each round of a loop that is unrolled."""
    home: Hashable
    """Where its variables are."""
    outer: Frame | None = None
    """The frame of the function around it."""
    owner: type | None = None
    """The class of a method, for `super()`."""
    repeated: tuple[Hashable, ...] = ()
    """The loops around the call, that are not unrolled: all its calls share these variables."""
    fixed: dict[str, Value] = msgspec.field(default_factory=dict)
    """Variables that have one value at this point of the translation: of a loop that is unrolled."""
    renamed: dict[str, Hashable] = msgspec.field(default_factory=dict)
    """Variables of comprehensions."""
    loop: ast.AST | None = None
    """The innermost loop that is unrolled."""
    defaults: dict[Hashable, Value] = msgspec.field(default_factory=dict)
    """Default arguments of nested functions that are constants."""

    def inside(self, renamed: dict[str, Hashable]) -> Frame:
        """The frame inside of a comprehension with these variables."""
        fixed = {name: value for name, value in self.fixed.items() if name not in renamed}
        return structs.replace(self, renamed={**self.renamed, **renamed}, fixed=fixed)

    def default(self, node: ast.AST, name: str) -> Hashable:
        """The key of a default argument of a nested function."""
        return ("default", self.context, node, name)

    @property
    def captured(self) -> frozenset[str]:
        """The variables that nested functions use: they see a later assignment, also one of a comprehension."""
        found = self.function.captured - frozenset(self.renamed)
        return found | (frozenset(self.renamed) & self.function.inner_free)

    def key(self, name: str) -> Hashable:
        """The key of a variable."""
        return self.renamed.get(name, (self.home, name))

    def shares(self, name: str) -> bool:
        """Whether several threads can share a variable."""
        return name in self.captured

    def holder(self, name: str) -> Frame | None:
        """The frame that has a variable. None: it is global."""
        frame: Frame | None = self
        while frame is not None:
            if name in frame.fixed or name in frame.renamed:
                return frame
            if name in frame.function.locals:
                return frame
            if name in frame.function.globals:
                return None
            frame = frame.outer
        return None

    def outside(self, name: str) -> Any:
        """The value of a global name or of a built-in, UNKNOWN if there is none."""
        return value_of(self.function.origin, name)


def described(node: Definition, origin: types.FunctionType, file: str, text: str) -> Function:
    """A function from its syntax tree."""
    body: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else list(node.body)
    bindings = Bindings(body)
    a = node.args
    parameters = [x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
    parameters += [x.arg for x in (a.vararg, a.kwarg) if x is not None]
    named = {name for part in body for n in _own(part) if isinstance(n, ast.Global) for name in n.names}
    own = frozenset({*bindings.counts, *parameters} - bindings.outer)
    captured: set[str] = set()
    for part in body:
        for inner in _own(part):
            if isinstance(inner, _NESTED):
                captured |= _free(inner)
    return Function(node, origin, file, text, own, frozenset(captured & own), frozenset(named), frozenset(captured))


def uses_exception(function: Function) -> bool:
    """Whether a method `__exit__` reads its arguments, or may return something true."""
    given = set(function.parameters[1:])
    for node in ast.walk(function.node):
        if isinstance(node, ast.Name) and node.id in given:
            return True
        result = node.value if isinstance(node, ast.Return) else None
        if result is not None and (not isinstance(result, ast.Constant) or bool(result.value)):
            return True
    return False


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """A node and the nodes in it, without the bodies of nested functions."""
    yield node
    if isinstance(node, _NESTED):
        return
    for child in ast.iter_child_nodes(node):
        yield from _own(child)


def _free(node: Definition) -> set[str]:
    """The names that a nested function may take from outside."""
    found = described_names(node)
    bindings = Bindings([node.body] if isinstance(node, ast.Lambda) else node.body)
    a = node.args
    bound = {x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)} | (set(bindings.counts) - bindings.outer)
    return found - bound


def described_names(node: ast.AST) -> set[str]:
    """All names in a syntax tree."""
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return names | {name for n in ast.walk(node) if isinstance(n, ast.Nonlocal) for name in n.names}


def function_of(origin: types.FunctionType) -> Function | None:
    """A function of a module, with its source. None: it has no source."""
    code = origin.__code__
    source = source_of(code)
    if source is None:
        return None
    found: Definition | None = definition_in(source, code)
    if found is None and code.co_flags & inspect.CO_COROUTINE:
        coroutines = (n for n in ast.walk(source.tree) if isinstance(n, ast.AsyncFunctionDef))
        found = next((n for n in coroutines if _is_coroutine(n, code)), None)
    if found is None:
        return None
    lines, _ = inspect.findsource(code)
    return described(found, origin, code.co_filename, "".join(lines))


def _is_coroutine(node: ast.AsyncFunctionDef, code: types.CodeType) -> bool:
    return node.name == code.co_name and code.co_firstlineno == min(
        [node.lineno, *(d.lineno for d in node.decorator_list)]
    )


__all__ = ["UNKNOWN", "Closure", "Definition", "Frame", "Function", "described", "function_of"]
