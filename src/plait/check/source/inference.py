"""The builtin type of an expression, as far as it is certain (a part of `plait.check.source.dataflow`).

The type of a field is the builtin type in its annotation, if all values that it ever gets have this type: the values
of the first state, and the value of each assignment in the source. `Graph.untyped` collects the other fields;
`dependences` then starts again without their types. So no annotation of a field is trusted. Annotations of messages are:
the search sees every message, and checks these types (`plait.check.reduce.relevance`).
"""

from __future__ import annotations

import ast
import collections
import types
from typing import Any

from plait.check.source import purity
from plait.check.source.dataflow import Flow, annotated
from plait.ir.definition import Definition, bindings, static_value
from plait.model.process import Process


class TypeInference:
    """What is known about the values of one function."""

    def __init__(
        self, flow: Flow, function: types.FunctionType, node: Definition, key: Any, process: str | None
    ) -> None:
        self.flow, self.function, self.node, self.key, self.process = flow, function, node, key, process
        self.local = set(bindings(node))
        self.message: tuple[str, bool] | None = None
        """The parameter for the delivered message, and whether it is a tuple of messages."""
        self._bindings = collections.Counter(bindings(node))
        """The number of places that bind a name."""
        self._assigned: dict[str, list[ast.expr | None]] = {}
        for inner in ast.walk(node):
            if isinstance(inner, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.NamedExpr):
                for target in inner.targets if isinstance(inner, ast.Assign) else [inner.target]:
                    if isinstance(target, ast.Name):
                        plain = not isinstance(inner, ast.AugAssign) or isinstance(
                            inner.op, ast.Add | ast.Sub | ast.BitOr | ast.BitAnd
                        )
                        self._assigned.setdefault(target.id, []).append(inner.value if plain else None)

    def is_self(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id == self.process

    def own_field(self, node: ast.expr) -> str | None:
        """The name of the field, if the expression is a field of the process itself."""
        if isinstance(node, ast.Attribute) and self.is_self(node.value) and node.attr in self.flow.cls.__plait_fields__:
            return node.attr
        return None

    def builtin(self, node: ast.expr, seen: frozenset[str] = frozenset()) -> type | None:
        """The builtin type of a value, or None if it is not certain. A bool counts as an int."""
        found = self._builtin(node, seen)
        return int if found is bool else found

    def _builtin(self, node: ast.expr, seen: frozenset[str]) -> type | None:
        field = self.own_field(node)
        if field is not None:
            return self.flow.graph.type_of(self.flow.cls, field)
        if isinstance(node, ast.Attribute) and self.is_message(node.value) and self.flow.message is not None:
            found = annotated(self.flow.message, node.attr)
            if found is not None:
                self.flow.graph.relied.add((self.flow.message, node.attr))
            return found
        if isinstance(node, ast.Constant):
            return type(node.value) if type(node.value) in purity.BUILTIN else None
        shapes: dict[type, type] = {ast.List: list, ast.ListComp: list, ast.Tuple: tuple, ast.Set: set}
        shapes |= {ast.SetComp: set, ast.Dict: dict, ast.DictComp: dict, ast.JoinedStr: str}
        if type(node) in shapes:
            return shapes[type(node)]
        if isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
            return bool
        if isinstance(node, ast.UnaryOp):
            operand = self.builtin(node.operand, seen)
            return operand if operand in (int, float) and not isinstance(node.op, ast.Invert) else None
        if isinstance(node, ast.NamedExpr):
            return self.builtin(node.value, seen)
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.Mod | ast.FloorDiv):
                whole = self.builtin(node.left, seen) is int and self.builtin(node.right, seen) is int
                return int if whole else None
            return purity.result_of(node.op, self.builtin(node.left, seen), self.builtin(node.right, seen))
        if isinstance(node, ast.IfExp | ast.BoolOp):
            parts = (node.body, node.orelse) if isinstance(node, ast.IfExp) else node.values
            return self._common(parts, seen)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            sliced = self.builtin(node.value, seen)
            return sliced if sliced in purity.SEQUENCES else None
        if isinstance(node, ast.Call):
            return self._called(node, seen)
        if isinstance(node, ast.Name) and node.id in self.local and node.id not in seen:
            values = self._assigned.get(node.id, [])
            if len(values) != self._bindings[node.id]:
                return None  # it is also a parameter, or bound in another way
            return self._common(values, seen | {node.id})
        return None

    def _common(self, values: collections.abc.Sequence[ast.expr | None], seen: frozenset[str]) -> type | None:
        found = {self.builtin(v, seen) if v is not None else None for v in values}
        return found.pop() if len(found) == 1 else None

    def _called(self, node: ast.Call, seen: frozenset[str]) -> type | None:
        func = node.func
        if isinstance(func, ast.Attribute) and self.is_self(func.value):
            chosen = node.args[0] if func.attr == "choose" and len(node.args) == 1 else None
            inherited = self.flow.attribute(func.attr) is Process.__dict__["choose"]
            if inherited and isinstance(chosen, ast.List | ast.Tuple) and chosen.elts:
                return self._common(chosen.elts, seen)
            return None
        if isinstance(func, ast.Attribute) and func.attr == "copy":
            copied = self.builtin(func.value, seen)
            return copied if copied in (list, set, dict, frozenset) else None
        callee = static_value(self.function, func, self.local)
        if not purity.is_hashable(callee):
            return None
        if callee is len or (callee is int and node.args):
            return int
        if callee is sorted:
            return list
        return callee if isinstance(callee, type) and callee in purity.BUILTIN else None

    def hashable(self, node: ast.expr) -> bool:
        """Whether a value is certainly hashable."""
        if isinstance(node, ast.Tuple):
            return all(map(self.hashable, node.elts))
        if isinstance(node, ast.Constant) or self.is_pid(node):
            return True
        return self.builtin(node) in purity.HASHABLE

    def iterable(self, node: ast.expr) -> bool:
        """Whether a value can certainly be iterated over. An argument of a list or call may be an iterator itself."""
        if isinstance(node, ast.Call):
            callee = static_value(self.function, node.func, self.local)
            if purity.is_hashable(callee) and callee in (*purity.LAZY, range):
                return True  # if the call does not raise
            if isinstance(node.func, ast.Attribute) and node.func.attr in ("keys", "values", "items"):
                return self.builtin(node.func.value) is dict
        if isinstance(node, ast.Name) and self.message == (node.id, True):
            return self._bindings[node.id] == 1
        return isinstance(node, ast.GeneratorExp) or self.builtin(node) in purity.CONTAINERS

    def is_list(self, node: ast.expr) -> bool:
        """Whether a loop over this never raises, whatever its body changes."""
        return self.builtin(node) in purity.SEQUENCES

    def suits(self, node: ast.expr, kind: str) -> bool:
        """Whether an argument is certainly of a kind that `purity` names."""
        if kind == "hashable":
            return self.hashable(node)
        if kind == "iterable":
            return self.iterable(node)
        accepted = {"set": purity.SETS, "int": (int,), "str": (str,), "dict": (dict,)}
        return kind == "any" or self.builtin(node) in accepted[kind]

    def is_pid(self, node: ast.expr) -> bool:
        if not isinstance(node, ast.Attribute):
            return False
        own = self.is_self(node.value) and node.attr == "id" and "id" not in self.flow.cls.__plait_fields__
        return own or (self.is_message(node.value) and node.attr == "sender")

    def is_message(self, node: ast.expr) -> bool:
        """Whether this is certainly a delivered message."""
        if self.message is None:
            return False
        name, several = self.message
        if self._bindings[name] > 1:
            return False
        if isinstance(node, ast.Subscript) and several and isinstance(node.slice, ast.Constant):
            return node.slice.value in (0, -1) and isinstance(node.value, ast.Name) and node.value.id == name
        if not isinstance(node, ast.Name) or not several:
            return isinstance(node, ast.Name) and node.id == name
        # A loop variable over the messages, with no other binding.
        loops = [n for n in ast.walk(self.node) if isinstance(n, ast.For | ast.comprehension)]
        over = [n for n in loops if isinstance(n.iter, ast.Name) and n.iter.id == name]
        mine = [n for n in over if isinstance(n.target, ast.Name) and n.target.id == node.id]
        return len(mine) == self._bindings[node.id] > 0
