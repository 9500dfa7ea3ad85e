"""The twin of a function: the same code, but every set that it makes or meets iterates backwards.

The whole file is parsed, rewritten and compiled again, and the code objects of the twin are found by their places. So
methods, lambdas, nested functions, private names and `super()` mean the same as in the original. The twin has the same
parameters and free variables, so that it can replace the code of the function (`plait.check.tabulate.probing`).

What is rewritten:

- an expression that makes a set (a display, a comprehension, `|`, `&`, `^`, `-`), and the names `set`, `frozenset`
  and `hash`, which may be passed on: `defaultdict(set)`;
- an expression that is iterated (`for`, unpacking, `yield from`, a formatted string): it may be a plain set;
- the function of a call: a built-in function iterates its arguments, and a function of the user's has a twin, too.
"""

from __future__ import annotations
import __future__

import ast
import copy
import functools
import linecache
import types
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

VALUE, CALLEE = "__plait_probe__", "__plait_callee__"
"""The names of the two functions that the twins call."""
_TYPES = {"set", "frozenset", "hash"}
_MAKING = {"keys", "items", "union", "intersection", "difference", "symmetric_difference"}
"""Methods whose results are sets, or give sets by operators."""
_OF_THE_FRAME = {"super", "locals", "globals", "vars", "dir", "eval", "exec", "breakpoint"}
"""Functions that look at the frame that calls them."""
_WITHOUT_ORDER = {"len", "isinstance", "issubclass", "range", "bool", "int", "abs", "hasattr", "callable", "type"}
"""Functions that iterate nothing."""


class Twin(NamedTuple):
    """The rewritten code of a function."""

    code: types.CodeType
    makes_sets: bool
    """Whether the source makes a set."""
    iterates: bool
    """Whether the source iterates something, or calls a function that may."""


Place = tuple[str, int, int]
"""The qualified name of a function, its first line, and for a lambda the column of its body."""


@functools.cache
def twin(code: types.CodeType) -> Twin | None:
    """The twin of the code of a function. None if its source is not available."""
    line, future = code.co_firstlineno, code.co_flags & _FUTURE
    for number, statement in enumerate(_statements(code.co_filename)):
        if _first_line(statement) <= line <= (statement.end_lineno or 0):
            found = _twins(code.co_filename, number, future).get(_place(code))
            # Otherwise, the file has changed since it was imported.
            return found if found is not None and _interface(found.code) == _interface(code) else None
    return None


_FUTURE = functools.reduce(
    int.__or__, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)
_NESTED = 0x10


def _interface(code: types.CodeType) -> tuple[Any, ...]:
    arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return code.co_freevars, arguments, code.co_posonlyargcount, code.co_flags & ~_NESTED


@functools.cache
def _statements(file: str) -> list[ast.stmt]:
    """The statements of a file. Each is rewritten when one of its functions is needed."""
    try:
        return ast.parse("".join(linecache.getlines(file))).body
    except (SyntaxError, ValueError, RecursionError):
        return []


def _first_line(statement: ast.stmt) -> int:
    decorators = getattr(statement, "decorator_list", ())
    first: int = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
    return first


@functools.cache
def _twins(file: str, number: int, future: int) -> dict[Place, Twin]:
    """The twins of all functions of a statement at the top level of a file."""
    rewriter = _Rewriter()
    statement = rewriter.visit(copy.deepcopy(_statements(file)[number]))
    module = ast.fix_missing_locations(ast.Module([statement], []))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = compile(module, file, "exec", flags=future, dont_inherit=True)
    found: dict[Place, Twin] = {}
    for inner in _codes(code):
        lines = [line for _, _, line in inner.co_lines() if line is not None]
        inside = range(min(lines, default=0), max(lines, default=-1) + 1)
        makes, iterates = ({line for line in of if line in inside} for of in (rewriter.makes_sets, rewriter.iterates))
        found[_place(inner)] = Twin(inner, bool(makes), bool(iterates))
    return found


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield inner
            yield from _codes(inner)


def _place(code: types.CodeType) -> Place:
    column = 0
    if code.co_name == "<lambda>":
        starts = [(line, start) for line, _, start, end in code.co_positions() if line and end]
        column = min(starts, default=(0, 0))[1] or 0
    return code.co_qualname, code.co_firstlineno, column


def names(code: types.CodeType) -> set[str]:
    """The global names and attributes that a function and the functions inside it use."""
    return set(code.co_names).union(*(inner.co_names for inner in _codes(code)))


class _Rewriter(ast.NodeTransformer):
    def __init__(self) -> None:
        self.makes_sets: list[int] = []
        """The lines that make a set."""
        self.iterates: list[int] = []
        """The lines that iterate something, or may."""

    def _wrap(self, name: str, node: ast.expr) -> ast.expr:
        return ast.copy_location(ast.Call(ast.copy_location(ast.Name(name, ast.Load()), node), [node], []), node)

    def _made(self, node: Any) -> ast.expr:
        self.generic_visit(node)
        self.makes_sets.append(node.lineno)
        return self._wrap(VALUE, node)

    def _iterated(self, node: ast.expr) -> ast.expr:
        self.iterates.append(node.lineno)
        name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        plain = isinstance(node, ast.List | ast.Tuple | ast.Dict | ast.ListComp) or name in _WITHOUT_ORDER
        return node if plain else self._wrap(VALUE, node)

    def visit_Set(self, node: ast.Set) -> ast.expr:
        return self._made(node)

    def visit_SetComp(self, node: ast.SetComp) -> ast.expr:
        return self._made(node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        node.left = self._unordered(node.left)
        node.comparators = [self._unordered(operand) for operand in node.comparators]
        return node

    def _unordered(self, node: ast.expr) -> ast.expr:
        """Rewrite an expression in a place where the order of its value does not matter."""
        if isinstance(node, ast.Set | ast.SetComp):
            self.generic_visit(node)
            return node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("set", "frozenset"):
            node.args = [self.visit(argument) for argument in node.args]
            return node
        return self.visit(node)  # type: ignore[no-any-return]

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, ast.Mod):
            node.right = self._iterated(node.right)
            return node
        return self._wrap(VALUE, node) if isinstance(node.op, ast.BitOr | ast.BitAnd | ast.BitXor | ast.Sub) else node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in _TYPES or not isinstance(node.ctx, ast.Load):
            return node
        self.makes_sets.append(node.lineno)
        return self._wrap(VALUE, node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        if node.attr in _MAKING:
            self.makes_sets.append(node.lineno)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name == "len":
            node.args = [self._unordered(argument) for argument in node.args]
            return node
        self.generic_visit(node)
        if name == "type" and len(node.args) == 1:
            return self._wrap(VALUE, node)  # the type of a plain set is compared with that of a probe
        if name not in _WITHOUT_ORDER | _OF_THE_FRAME:
            self.iterates.append(node.lineno)
            node.func = self._wrap(CALLEE, node.func)
        return node

    def visit_For(self, node: ast.For) -> ast.stmt:
        self.generic_visit(node)
        node.iter = self._iterated(node.iter)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        self.generic_visit(node)
        node.iter = self._iterated(node.iter)
        return node

    def visit_Starred(self, node: ast.Starred) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.value = self._iterated(node.value)
        return node

    def visit_YieldFrom(self, node: ast.YieldFrom) -> ast.expr:
        self.generic_visit(node)
        node.value = self._iterated(node.value)
        return node

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.expr:
        self.generic_visit(node)
        node.value = self._iterated(node.value)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        self.generic_visit(node)
        if any(isinstance(target, ast.Tuple | ast.List) for target in node.targets):
            node.value = self._iterated(node.value)
        return node

    def visit_FunctionDef(self, node: Any) -> Any:
        node.decorator_list = [self.visit(decorator) for decorator in node.decorator_list]
        if node.name == "__hash__":
            return node  # a hash must be the same for objects that were made before
        node.args = self.visit(node.args)
        node.body = [self.visit(statement) for statement in node.body]
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        return self.visit_FunctionDef(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return node

    def visit_MatchValue(self, node: ast.MatchValue) -> ast.pattern:
        return node  # a literal

    def visit_MatchClass(self, node: ast.MatchClass) -> ast.pattern:
        node.patterns = [self.visit(pattern) for pattern in node.patterns]
        node.kwd_patterns = [self.visit(pattern) for pattern in node.kwd_patterns]
        return node

    def visit_MatchMapping(self, node: ast.MatchMapping) -> ast.pattern:
        node.patterns = [self.visit(pattern) for pattern in node.patterns]
        return node
