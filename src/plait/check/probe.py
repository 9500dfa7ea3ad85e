"""Probing a handler: the same code, but every set iterates in the opposite order.

A handler that lets the order of a set reach its outcome (a sent tuple, the first of several maxima) is not a function of
its inputs: the order depends on the interpreter's hash seed. Running it once with ordinary sets and once as a probe shows
the difference in one process. Sets in the state and in messages are made as probes by `decode(…, probe=True)`; sets that
the handler makes itself are caught by rewriting its source (displays, comprehensions, `set(…)`, `frozenset(…)`).
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
import types
from collections.abc import Callable, Iterator
from typing import Any


class ProbeSet(set[Any]):
    """A set that iterates backwards."""

    def __iter__(self) -> Iterator[Any]:
        return iter(list(super().__iter__())[::-1])

    def pop(self) -> Any:
        last = next(iter(self))
        self.remove(last)
        return last


class ProbeFrozenSet(frozenset[Any]):
    """A frozenset that iterates backwards."""

    def __iter__(self) -> Iterator[Any]:
        return iter(list(super().__iter__())[::-1])


def _wrapping(kind: type, name: str) -> Callable[..., Any]:
    plain = getattr(kind.__base__, name)

    def method(self: Any, *others: Any) -> Any:
        result = plain(self, *others)
        return result if result is NotImplemented else kind(result)

    return method


_OPERATORS = ("or", "and", "sub", "xor", "ror", "rand", "rsub", "rxor")
_METHODS = ("union", "intersection", "difference", "symmetric_difference", "copy")
for _kind in (ProbeSet, ProbeFrozenSet):
    for _name in (*(f"__{operator}__" for operator in _OPERATORS), *_METHODS):
        setattr(_kind, _name, _wrapping(_kind, _name))


class _Rewriter(ast.NodeTransformer):
    """Wrap every set made in the source into a probe."""

    def _wrap(self, node: ast.expr) -> ast.expr:
        call = ast.Call(ast.Name("__plait_set__", ast.Load()), [node], [])
        return ast.copy_location(call, node)

    def visit_Set(self, node: ast.Set) -> ast.expr:
        self.generic_visit(node)
        return self._wrap(node)

    def visit_SetComp(self, node: ast.SetComp) -> ast.expr:
        self.generic_visit(node)
        return self._wrap(node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in ("set", "frozenset"):
            node.func.id = f"__plait_{node.func.id}__"
        return node


@functools.cache
def probing(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with probe sets; the function itself where its source cannot be had."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return function
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        return function
    definition.decorator_list = []
    _Rewriter().visit(definition)
    free = ["__plait_set__", "__plait_frozenset__", *function.__code__.co_freevars]
    # An outer function whose parameters are the free variables makes them cells of the inner one.
    outer = ast.FunctionDef(
        name="__plait_outer__",
        args=ast.arguments([], [ast.arg(n) for n in free], None, [], [], None, []),
        body=[definition, ast.Return(ast.Name(definition.name, ast.Load()))],
        decorator_list=[],
    )
    module = ast.fix_missing_locations(ast.Module([outer], []))
    code = compile(module, function.__code__.co_filename, "exec")
    inner = next(
        c
        for o in code.co_consts
        if isinstance(o, types.CodeType)
        for c in o.co_consts
        if isinstance(c, types.CodeType) and c.co_name == definition.name
    )
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells["__plait_set__"] = types.CellType(ProbeSet)
    cells["__plait_frozenset__"] = types.CellType(ProbeFrozenSet)
    closure = tuple(cells[name] for name in inner.co_freevars)
    copy = types.FunctionType(inner, function.__globals__, function.__name__, function.__defaults__, closure)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy
