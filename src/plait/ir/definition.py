"""The source of a function as a syntax tree, and the values of the names in it."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import enum
import functools
import inspect
import linecache
import os
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

from plait.kernel import STARTED
from plait.kernel.pid import Pid

Definition = ast.FunctionDef | ast.Lambda
UNKNOWN = object()
"""The value of a name cannot be determined."""
MUTATORS = frozenset(
    [
        "add",
        "append",
        "appendleft",
        "clear",
        "discard",
        "extend",
        "extendleft",
        "insert",
        "move_to_end",
        "pop",
        "popitem",
        "popleft",
        "remove",
        "reverse",
        "rotate",
        "setdefault",
        "sort",
        "subtract",
        "update",
        "difference_update",
        "intersection_update",
        "symmetric_difference_update",
        "appendleft",
        "popleft",
        "extendleft",
        "rotate",
    ]
)
"""Methods that change the object that they are called on."""
_SLACK = 5.0
"""Seconds. A module is read before it imports Plait."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Source(NamedTuple):
    """A file of Python source: its functions by name and first line, and the names that functions assign outside."""

    tree: ast.Module
    functions: dict[tuple[str, int], list[Definition]]
    rebound: frozenset[str]
    """The names of all `global` and `nonlocal` statements."""
    changed: frozenset[str]
    """The names of variables whose value a function of the file changes in place, as `seen.add(x)` does."""


def members(cls: type, name: str, after: type | None = None) -> Any:
    """The attribute of a class, as it stands in the class body; of a class after `after` in the order of resolution."""
    skip = after is not None
    for base in cls.__mro__:
        if skip:
            skip = base is not after
        elif name in base.__dict__:
            return base.__dict__[name]
    return UNKNOWN


def definition(function: types.FunctionType) -> Definition | None:
    """The syntax tree of a function (its own code, not that of a function that it wraps); None without source."""
    source = source_of(function.__code__)
    return None if source is None else definition_in(source, function.__code__)


def definition_in(source: Source, code: types.CodeType) -> Definition | None:
    """The syntax tree of a function of a source file; None if it is not there, or if the file has changed."""
    found = source.functions.get((code.co_name, code.co_firstlineno), [])
    found = [node for node in found if _is_of(node, code)]
    if len(found) > 1:
        # The code of a nested lambda is in the range of both lambdas.
        found.sort(key=lambda node: _span(node)[1])
        found.sort(key=lambda node: _span(node)[0], reverse=True)
    return found[0] if found and _same_code(source.tree, code) else None


def source_of(code: types.CodeType) -> Source | None:
    """The source file of a function; None if there is none."""
    try:
        linecache.checkcache(code.co_filename)
        lines = linecache.getlines(code.co_filename) or inspect.findsource(code)[0]
        return _parsed("".join(lines), code.co_filename)
    except (OSError, TypeError, SyntaxError, ValueError, IndexError):
        return None


@functools.lru_cache(maxsize=64)
def _parsed(text: str, filename: str) -> Source:
    tree = ast.parse(text, filename)
    functions: dict[tuple[str, int], list[Definition]] = {}
    rebound: set[str] = set()
    changed: set[str] = set()
    todo: list[Any] = [tree]
    while todo:
        node = todo.pop()
        kind = type(node)
        if kind is ast.FunctionDef:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            functions.setdefault((node.name, first), []).append(node)
        elif kind is ast.Lambda:
            functions.setdefault(("<lambda>", node.lineno), []).append(node)
        elif kind is ast.Global or kind is ast.Nonlocal:
            rebound.update(node.names)
        elif kind is ast.Attribute:
            if node.attr in MUTATORS and type(node.value) is ast.Name:
                changed.add(node.value.id)
        elif kind is ast.Subscript and type(node.ctx) is not ast.Load and type(node.value) is ast.Name:
            changed.add(node.value.id)
        for name in node._fields:
            inner = getattr(node, name, None)
            if type(inner) is list:
                todo.extend(part for part in inner if isinstance(part, ast.AST))
            elif isinstance(inner, ast.AST) and type(inner) is not ast.Load:
                todo.append(inner)
    return Source(tree, functions, frozenset(rebound), frozenset(changed))


@functools.lru_cache(maxsize=64)
def _codes(tree: ast.Module) -> dict[tuple[str, int], list[types.CodeType]]:
    """The code of every function of a module, by name and first line."""
    found: dict[tuple[str, int], list[types.CodeType]] = {}
    for code in codes(compile(tree, "<source>", "exec", dont_inherit=True)):
        found.setdefault((code.co_name, code.co_firstlineno), []).append(code)
    return found


def _same_code(tree: ast.Module, code: types.CodeType) -> bool:
    """Whether the function was compiled from this source. (pytest rewrites assertions, which changes the code.)"""
    if _is_old(code.co_filename):
        return True
    if any(_said(known) == _said(code) for known in _codes(tree).get((code.co_name, code.co_firstlineno), [])):
        return True
    names = {n for c in codes(code) for n in (*c.co_varnames, *c.co_names)}
    return any(name.startswith("@py_") for name in names)


def _is_old(file: str) -> bool:
    """Whether a file has not changed since it was imported. Compiling it again takes as long as parsing it."""
    try:
        return os.stat(file).st_mtime + _SLACK < STARTED  # noqa: PTH116
    except OSError:
        return False


def _said(constant: Any) -> Any:
    """What a code object or a constant in it says, apart from places in the source and names of variables.

    >>> _said(1) == _said(True), _said((lambda: 1).__code__) == _said((lambda: 1).__code__)
    (False, True)
    """
    if isinstance(constant, types.CodeType):
        names = (constant.co_names, constant.co_freevars)
        return constant.co_code, names, [_said(inner) for inner in constant.co_consts]
    if isinstance(constant, tuple):
        return [_said(inner) for inner in constant]
    if isinstance(constant, frozenset):
        return type(constant), {(type(inner), repr(inner)) for inner in constant}
    return type(constant), repr(constant)


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object and those of the functions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)


def _is_of(node: Definition, code: types.CodeType) -> bool:
    arguments = node.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    names += [a.arg for a in (arguments.vararg, arguments.kwarg) if a is not None]
    if len(names) != code.co_argcount + code.co_kwonlyargcount + bool(arguments.vararg) + bool(arguments.kwarg):
        return False
    if list(code.co_varnames[: len(names)]) != names:
        return False
    if isinstance(node, ast.FunctionDef):
        return True
    start, end = _span(node)
    for line, last, column, stop in code.co_positions():
        if line is None or last is None or column is None or stop is None or (line, column) >= (last, stop):
            continue  # an instruction without a source position
        if not (start <= (line, column) and (last, stop) <= end):
            return False
    return True


def _span(node: ast.AST) -> tuple[tuple[int, int], tuple[int, int]]:
    return (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)  # type: ignore[attr-defined]


def value_of(function: types.FunctionType, name: str) -> Any:
    """The value of a name that is not local to a function."""
    if name.startswith("__") and not name.endswith("__"):
        return UNKNOWN  # in a class, it stands for another name
    for free, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if free == name:
            try:
                return cell.cell_contents
            except ValueError:
                return UNKNOWN
    if name in function.__globals__:
        return function.__globals__[name]
    return getattr(builtins, name, UNKNOWN)


def static_value(function: types.FunctionType, node: ast.expr, local: set[str]) -> Any:
    """The value of an expression of names and attributes of modules and classes; UNKNOWN if it depends on the state."""
    if isinstance(node, ast.Name):
        return UNKNOWN if node.id in local else value_of(function, node.id)
    if isinstance(node, ast.Attribute):
        owner = static_value(function, node.value, local)
        if isinstance(owner, type) and issubclass(owner, enum.Enum) and node.attr in owner.__members__:
            return owner.__members__[node.attr]
        if isinstance(owner, types.ModuleType | type):
            try:
                return (
                    inspect.getattr_static(owner, node.attr) if isinstance(owner, type) else owner.__dict__[node.attr]
                )
            except (AttributeError, KeyError):
                return UNKNOWN
    return UNKNOWN


def is_constant(value: Any) -> bool:
    """Whether a value is immutable."""
    if isinstance(value, tuple | frozenset):
        return all(map(is_constant, value))
    data = (int, float, str, bytes, enum.Enum, Pid, type(None))
    code = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)
    return isinstance(value, data + code)


def is_data(value: Any) -> bool:
    """Whether a value is data: numbers, strings, process ids, enums, classes, and containers and records of them.

    >>> is_data([(1, "a")]), is_data([len]), is_data(object())
    (True, False, False)
    """
    if isinstance(value, dict):
        return type(value) is dict and is_data([*value.keys(), *value.values()])
    if isinstance(value, tuple | list | set | frozenset):
        return type(value) in (tuple, list, set, frozenset) and all(map(is_data, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return all(is_data(getattr(value, f.name, None)) for f in dataclasses.fields(value))
    return isinstance(value, (int, float, str, bytes, enum.Enum, Pid, type(None), type))


def bindings(node: Definition) -> Iterator[str]:
    """The names that a function binds, once per place: with parameters, comprehensions and lambdas."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load):
            yield inner.id
        elif isinstance(inner, ast.arg):
            yield inner.arg
        elif isinstance(inner, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and inner.name:
            yield inner.name
        elif isinstance(inner, ast.MatchMapping) and inner.rest:
            yield inner.rest
        elif isinstance(inner, ast.alias):
            yield inner.asname or inner.name.split(".")[0]
        elif isinstance(inner, ast.FunctionDef | ast.ClassDef) and inner is not node:
            yield inner.name


def leaves(node: ast.AST) -> bool:
    """Whether a statement may leave its block by return, break, continue or raise."""
    if isinstance(node, ast.Return | ast.Break | ast.Continue | ast.Raise):
        return True
    return any(leaves(child) for child in ast.iter_child_nodes(node) if not isinstance(child, _FUNCTIONS))
