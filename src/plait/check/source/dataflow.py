"""The flow of values through one handler: which fields, tests and effects may depend on which (see `dependence`).

The analysis ignores the order of statements: a variable stands for all values that are ever assigned to it. Control is
flow too: a branch depends on its test. If the test may leave the function or the loop, the rest depends on it as well.
Values that may share a list, dict, set or record are one *alias class*: a change of one value changes all of them. The
analysis follows methods of the process and functions with source, for the concrete class.

An exception is observable. So an operation that may raise makes its operands relevant. The analysis assumes that
operators on builtin values and some methods of builtin containers never raise (`plait.check.source.purity`). It assumes
the same of operators of the user's own classes.
"""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from plait.check.source.definition import definition, is_constant
from plait.model.message import Message
from plait.model.process import Process

Node = tuple[Any, ...]
"""("field", class, name), ("var", flow, function, name), ("test" | "entry" | "result", …, label) or ("sink", …, label)."""
GLOBAL: Node = ("global",)
"""Stands for all mutable objects outside the state."""


class EscapeError(Exception):
    """The analysis does not support something in the class, so every field of the class may be relevant."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Value(NamedTuple):
    """The nodes that an expression may depend on, and those that it may share mutable parts with."""

    deps: frozenset[Node] = frozenset()
    alias: frozenset[Node] = frozenset()

    def __or__(self, other: Value) -> Value:
        return Value(self.deps | other.deps, self.alias | other.alias)


def union(values: Iterable[Value]) -> Value:
    """The union of values."""
    result = Value()
    for value in values:
        result = result | value
    return result


class Graph:
    """The dependence graph: for each node, the nodes that flow into it."""

    def __init__(self) -> None:
        self.sources: dict[Node, dict[Node, None]] = {}
        self.flows = 0
        """The number of flows so far. It distinguishes their variables."""

    def flow(self, sources: Iterable[Node], target: Node) -> None:
        """The target may depend on these nodes."""
        self.sources.setdefault(target, {}).update((s, None) for s in sources if s != target)

    def sink(self, sources: Iterable[Node], label: str, *, minor: bool = False) -> None:
        """An observable effect may depend on these nodes. A `minor` effect is reported only if there is no other."""
        self.flow(sources, ("sink", minor, label))

    def label(self, node: Node) -> str:
        """The text for a node."""
        if node[0] == "field":
            return f"{node[1].__name__}.{node[2]}"
        if node[0] == "var":
            return f"{node[3]} in {node[2][0].__qualname__.replace('<locals>.', '')}"
        return str(node[-1])


class Flow:
    """The data flow of one call of a handler or guard of a class, with the functions that it calls."""

    def __init__(self, graph: Graph, cls: type[Process], label: str, message: type[Message] | None, many: bool) -> None:
        self.graph, self.cls, self.label = graph, cls, label
        self.message, self.many = message, many
        """The type of the delivered message, and whether a tuple of messages is delivered."""
        graph.flows += 1
        self.number = graph.flows
        self.sent: list[type[Message] | None] = []
        """Message classes that may be sent; None is an unknown class."""
        self._parents: dict[Node, Node] = {}
        self._changes: list[tuple[frozenset[Node], frozenset[Node], str]] = []
        self._written: set[Node] = set()
        self._walked: set[Any] = set()
        self._active: list[Any] = []

    def start(self, function: Callable[..., Any]) -> Value:
        """Follow the handler or guard itself."""
        if not isinstance(function, types.FunctionType):
            raise EscapeError(f"{self.label} is not a plain function")
        return self.call(function, True, [], {}, frozenset(), root=True)

    def call(
        self,
        function: types.FunctionType,
        bound: bool,
        arguments: list[Value],
        keywords: dict[str | None, Value],
        context: frozenset[Node],
        *,
        root: bool = False,
        strict: bool = False,
        deferred: bool = False,
    ) -> Value:
        """Follow a call. `bound`: the first parameter is the process. The keyword None: unpacked arguments."""
        from plait.check.source.statements import Body

        node = definition(function)
        name = function.__qualname__.replace("<locals>.", "")
        if node is None:
            raise EscapeError(f"the source of {name} is not available")
        defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
        if not is_constant(tuple(defaults)):
            raise EscapeError(f"{name} has a mutable default value")
        parameters = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
        if bound and not parameters:
            raise EscapeError(f"{name} has no parameter for its process")
        key = (function, strict, deferred)
        process = parameters.pop(0) if bound else None
        entry: Node = ("entry", self.number, key, f"a call of {name}")
        result: Node = ("result", self.number, key, f"the result of {name}")
        self.graph.flow(context, entry)
        every = union([*arguments, *keywords.values()])
        others = [a.arg for a in (*node.args.kwonlyargs, node.args.vararg, node.args.kwarg) if a is not None]
        for i, parameter in enumerate([*parameters, *others]):
            given = every
            if None not in keywords and parameter in parameters and i < len(arguments):
                given = arguments[i]
            elif None not in keywords and parameter in keywords:
                given = keywords[parameter]
            self.store(("var", self.number, key, parameter), given, frozenset())
        if key in self._active:
            self.graph.sink([entry, *every.deps], f"{name} calls itself and may run forever")
        elif key not in self._walked:
            self._walked.add(key)
            self._active.append(key)
            try:
                Body(self, function, node, key, process, entry, result, root).run()
            finally:
                self._active.pop()
        value = frozenset({result})
        return Value(value, value)

    def store(self, target: Node, value: Value, context: frozenset[Node]) -> None:
        """A variable or field gets a value."""
        self.graph.flow(value.deps | context, target)
        if target[0] == "field":
            self._written.add(target)
        for other in value.alias:
            self.join(target, other)

    def change(self, alias: frozenset[Node], sources: frozenset[Node], place: str) -> None:
        """A value is changed in place. Values that share parts with it change too: `finish` finds them."""
        self._changes.append((alias, sources, place))

    def join(self, a: Node, b: Node) -> None:
        """Two nodes may share a mutable value."""
        a, b = self._find(a), self._find(b)
        if a != b:
            self._parents[a] = b

    def _find(self, node: Node) -> Node:
        while (parent := self._parents.setdefault(node, node)) != node:
            self._parents[node] = self._parents[parent]
            node = parent
        return node

    def finish(self) -> set[Node]:
        """Apply the changes to whole alias classes. Return the fields that may be written."""
        members: dict[Node, list[Node]] = {}
        for node in list(self._parents):
            members.setdefault(self._find(node), []).append(node)
        for alias, sources, place in self._changes:
            for root in {self._find(node) for node in alias}:
                changed = members.get(root, [root])
                if GLOBAL in changed or root == GLOBAL:
                    raise EscapeError(f"{place} changes an object outside the state")
                for node in changed:
                    self.graph.flow(sources, node)
                    if node[0] == "field":
                        self._written.add(node)
        return self._written

    def attribute(self, name: str, after: type | None = None) -> Any:
        """The raw attribute of the class, or None. `after`: search only the bases after this one, as super() does."""
        mro = self.cls.__mro__
        for base in mro[mro.index(after) + 1 :] if after is not None else mro:
            if name in base.__dict__:
                return inspect.getattr_static(base, name)
        return None


def parameters_of(node: ast.Lambda) -> list[str]:
    """The names of a lambda's parameters."""
    return [a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)]
