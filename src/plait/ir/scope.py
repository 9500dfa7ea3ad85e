"""Scopes: which slot of a frame a name stands for, and what is known about its value before anything runs.

A function has one frame. Its comprehensions, lambdas and nested functions have scopes of their own, whose variables are
further slots of the same frame. A *kind* is what lowering knows about a parameter: that it is the view, an instance of
exactly one class (`self`), a class, a function.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable
from typing import Any


@dataclasses.dataclass(frozen=True)
class Instance:
    """A value of exactly this class: the process itself, a monitor, a record whose method runs."""

    cls: type


@dataclasses.dataclass(frozen=True)
class Viewed:
    """A process of exactly this class that a property looks at. Its attributes are found when the property runs."""

    cls: type


@dataclasses.dataclass(frozen=True, eq=False)
class Static:
    """A class, function or module, which is no value at run time."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


@dataclasses.dataclass(frozen=True)
class ViewKind:
    """The view of a property. It is no value at run time."""


@dataclasses.dataclass(frozen=True)
class CallableKind:
    """A function as a value, which may only be called, or given to another function."""


VIEW, CALLABLE = ViewKind(), CallableKind()
Kind = Instance | Viewed | Static | ViewKind | CallableKind


def exists(kind: Kind | None) -> bool:
    """Whether a parameter of this kind has a value at run time."""
    return not isinstance(kind, Static | ViewKind)


@dataclasses.dataclass(eq=False)
class LocalFunction:
    """A lambda or a nested function that is the only value of a variable."""

    node: ast.FunctionDef | ast.Lambda
    refers_to: list[LocalFunction] = dataclasses.field(default_factory=list)
    """Other such functions that its body calls, or gives to a function."""


class Scope:
    """The variables of a function, a nested function, a lambda or a comprehension."""

    __slots__ = ("functions", "kinds", "outer", "parent", "slots", "unbound")

    def __init__(self, parent: Scope | None) -> None:
        self.parent = parent
        self.slots: dict[str, int] = {}
        self.kinds: dict[str, Kind] = {}
        self.functions: dict[str, LocalFunction] = {}
        self.unbound: set[str] = set()
        """Variables of a comprehension that have no value yet in the clause that is lowered."""
        self.outer: frozenset[str] = frozenset()
        """Names of `nonlocal` statements."""


class Bindings:
    """The names that a function binds, in its own scope, and how often."""

    def __init__(self, nodes: Iterable[ast.AST]) -> None:
        self.counts: dict[str, int] = {}
        self.functions: dict[str, ast.FunctionDef | ast.Lambda] = {}
        """Names that are bound to a lambda or a nested function."""
        self.outer: set[str] = set()
        for node in nodes:
            self._visit(node, False)

    def _bind(self, name: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1

    def _visit(self, node: ast.AST, inner: bool) -> None:
        """`inner`: inside a comprehension, of which only `:=` binds names here."""
        kind = type(node)
        if kind is ast.Name:
            if not inner and type(node.ctx) is not ast.Load:  # type: ignore[attr-defined]
                self._bind(node.id)  # type: ignore[attr-defined]
            return
        if kind is ast.Constant:
            return
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            if not isinstance(node, ast.Lambda):
                self._bind(node.name)
                if isinstance(node, ast.FunctionDef):
                    self.functions[node.name] = node
            if not isinstance(node, ast.ClassDef):
                for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
                    self._visit(default, inner)
            return
        if isinstance(node, ast.NamedExpr):
            self._bind(node.target.id)
            self._visit(node.value, inner)
            return
        if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            inner = True
        elif isinstance(node, ast.Global | ast.Nonlocal):
            self.outer.update(node.names)
        elif isinstance(node, ast.MatchAs | ast.MatchStar | ast.ExceptHandler):
            if node.name:
                self._bind(node.name)
        elif isinstance(node, ast.MatchMapping):
            if node.rest:
                self._bind(node.rest)
        elif isinstance(node, ast.alias):
            self._bind(node.asname or node.name.split(".")[0])
        elif kind is ast.Assign and type(node.value) is ast.Lambda and type(node.targets[0]) is ast.Name:  # type: ignore[attr-defined]
            self.functions[node.targets[0].id] = node.value  # type: ignore[attr-defined]
        for name in node._fields:
            child = getattr(node, name, None)
            if type(child) is list:
                for part in child:
                    if isinstance(part, ast.AST):
                        self._visit(part, inner)
            elif isinstance(child, ast.AST):
                self._visit(child, inner)
