"""Probing a handler: the same code, but every set iterates in the opposite order.

A handler that lets the order of a set reach its outcome (a sent tuple, the first of several maxima) is not a function
of its inputs: the order depends on the interpreter's hash seed. Running it once with ordinary sets and once as a probe
shows the difference in one process. Sets in the state and in messages are made as probes by `decode(…, probe=True)`;
sets that the handler makes itself are caught by rewriting its source (displays, comprehensions, `set(…)`,
`frozenset(…)`, and the operators that make a set of dictionary keys). What a handler calls is not rewritten.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any


def _backwards(probe: Any) -> Iterator[Any]:
    """The elements in the opposite order of the plain set that this one stands for.

    Copying a set may change its order. So a probe keeps the plain set that it was copied from, while they are equal.
    """
    plain = probe.__dict__["plain"]
    kind: Any = type(probe).__base__
    return iter(list(plain if plain is not None and kind.__eq__(plain, probe) else kind.__iter__(probe))[::-1])


def _plain(items: Any) -> Any:
    return items if type(items) in (set, frozenset) else None


class ProbeSet(set[Any]):
    """A set that iterates backwards."""

    def __init__(self, items: Iterable[Any] = ()) -> None:
        super().__init__(items)
        self.plain = _plain(items)

    __iter__ = _backwards

    def __repr__(self) -> str:
        return "{" + ", ".join(map(repr, self)) + "}" if self else "set()"

    def pop(self) -> Any:
        last = next(iter(self))
        self.remove(last)
        return last


class ProbeFrozenSet(frozenset[Any]):
    """A frozenset that iterates backwards."""

    def __init__(self, items: Iterable[Any] = ()) -> None:
        self.plain = _plain(items)

    __iter__ = _backwards

    def __repr__(self) -> str:
        return "frozenset(" + ("{" + ", ".join(map(repr, self)) + "}" if self else "") + ")"


def _wrapping(kind: type, name: str) -> Callable[..., Any]:
    plain = getattr(kind.__base__, name)

    def method(self: Any, *others: Any) -> Any:
        result = plain(self, *others)
        return result if result is NotImplemented else kind(result)

    return method


_OPERATORS = "__or__ __and__ __sub__ __xor__ __ror__ __rand__ __rsub__ __rxor__"
_METHODS = "union intersection difference symmetric_difference copy"
for _kind in (ProbeSet, ProbeFrozenSet):
    for _name in (*_OPERATORS.split(), *_METHODS.split()):
        setattr(_kind, _name, _wrapping(_kind, _name))


def probe(value: Any) -> Any:
    """A set as a probe; any other value unchanged."""
    return ProbeSet(value) if type(value) is set else ProbeFrozenSet(value) if type(value) is frozenset else value


_MADE = {"__plait_set__": ProbeSet, "__plait_frozenset__": ProbeFrozenSet, "__plait_probe__": probe}


class _Rewriter(ast.NodeTransformer):
    """Make every set of the source a probe, and mangle private names, as the class of the function does."""

    def __init__(self, owner: str, shadowed: set[str]) -> None:
        self._owner = owner.lstrip("_")
        self._builtins = {"set", "frozenset"} - shadowed

    def _wrap(self, node: ast.expr) -> ast.expr:
        self.generic_visit(node)
        return ast.copy_location(ast.Call(ast.Name("__plait_probe__", ast.Load()), [node], []), node)

    def visit_Set(self, node: ast.Set) -> ast.expr:
        return self._wrap(node)

    def visit_SetComp(self, node: ast.SetComp) -> ast.expr:
        return self._wrap(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        if isinstance(node.op, ast.BitOr | ast.BitAnd | ast.BitXor | ast.Sub):
            return self._wrap(node)
        self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in self._builtins:
            node.func.id = f"__plait_{node.func.id}__"
        return node

    def visit_MatchValue(self, node: ast.MatchValue) -> ast.pattern:
        return node  # a literal

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        node.attr = self._mangled(node.attr)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        node.id = self._mangled(node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.arg = self._mangled(node.arg)
        return node

    def _mangled(self, name: str) -> str:
        private = self._owner and name.startswith("__") and not name.endswith("__")
        return f"_{self._owner}{name}" if private else name


@functools.cache
def probing(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with probe sets; the function itself if its source is not available."""
    if not isinstance(function, types.FunctionType):
        return function
    code = function.__code__
    try:
        # The source of the code, not of the function: functools.wraps would give the wrapped function.
        definition = ast.parse(textwrap.dedent(inspect.getsource(code))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return function
    if not isinstance(definition, ast.FunctionDef) or definition.name != code.co_name:
        return function
    definition.decorator_list = []
    if hasattr(definition, "type_params"):
        definition.type_params = []
    scopes = function.__qualname__.split(".")
    owner = scopes[-2] if len(scopes) > 1 and scopes[-2] != "<locals>" else ""
    _Rewriter(owner, {*code.co_varnames, *code.co_cellvars, *code.co_freevars, *function.__globals__}).visit(definition)
    # The free variables are parameters of an outer function, so they are cells of the inner one.
    outer = ast.FunctionDef(
        name="__plait_outer__",
        args=ast.arguments([], [ast.arg(n) for n in (*_MADE, *code.co_freevars)], None, [], [], None, []),
        body=[definition, ast.Return(ast.Name(definition.name, ast.Load()))],
        decorator_list=[],
    )
    module = ast.fix_missing_locations(ast.Module([outer], []))
    ast.increment_lineno(module, code.co_firstlineno - 1)
    inner = _code_of(definition.name, _code_of(outer.name, compile(module, code.co_filename, "exec")))
    cells = {name: types.CellType(made) for name, made in _MADE.items()}
    cells.update(zip(code.co_freevars, function.__closure__ or (), strict=True))
    wrapped = getattr(function, "__wrapped__", None)
    for name in code.co_freevars if isinstance(wrapped, types.FunctionType) else ():
        if cells[name].cell_contents is wrapped:
            cells[name] = types.CellType(probing(wrapped))
    closure = tuple(cells[name] for name in inner.co_freevars)
    copy = types.FunctionType(inner, function.__globals__, function.__name__, function.__defaults__, closure)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def _code_of(name: str, code: types.CodeType) -> types.CodeType:
    return next(c for c in code.co_consts if isinstance(c, types.CodeType) and c.co_name == name)
