"""What a call may do: an effect of the process, a function with source, a builtin, or unknown (see `dataflow`)."""

from __future__ import annotations

import ast
import sys
import types
from typing import Any

from plait.check.source import purity
from plait.check.source.dataflow import GLOBAL, EscapeError, Node, Value, union
from plait.check.source.definition import UNKNOWN, static_value, value_of
from plait.check.source.expressions import Expressions
from plait.model.message import Message
from plait.model.process import Process

EFFECTS = ("send", "broadcast", "announce", "choose", "spawn")
"""Methods of Process with an observable effect."""


class Calls(Expressions):
    """Evaluates the calls of one function."""

    def _call(self, node: ast.Call) -> Value:
        func = node.func
        if isinstance(func, ast.Attribute) and self.is_self(func.value):
            return self._method(func.attr, self.flow.attribute(func.attr), node)
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Call) and _is_super(func.value):
            owner = value_of(self.function, "__class__") if "super" not in self.local else None
            if not isinstance(owner, type) or owner not in self.flow.cls.__mro__:
                raise self.not_understood(node, "super() refers to an unknown class")
            return self._method(func.attr, self.flow.attribute(func.attr, owner), node)
        callee = static_value(self.function, func, self.local)
        if callee is not UNKNOWN:
            return self._function(callee, node)
        if isinstance(func, ast.Attribute):
            return self._method_of(func, node)
        return self._unknown(self.expr(func) | union(self.arguments(node)[0]), node)

    def arguments(self, node: ast.Call, receiver: Value | None = None) -> tuple[list[Value], dict[str | None, Value]]:
        """The values of the arguments. After an unpacked argument, the positions are not known."""
        plain = [self.expr(a) for a in node.args if not isinstance(a, ast.Lambda)]
        named = {k.arg: self.expr(k.value) for k in node.keywords if not isinstance(k.value, ast.Lambda)}
        given = union([*plain, *named.values(), *([receiver] if receiver else [])])
        values, rest = [], iter(plain)
        for argument in node.args:
            values.append(self._lambda(argument, given) if isinstance(argument, ast.Lambda) else next(rest))
        keywords: dict[str | None, Value] = dict(named)
        keywords |= {k.arg: self._lambda(k.value, given) for k in node.keywords if isinstance(k.value, ast.Lambda)}
        if any(isinstance(a, ast.Starred) for a in node.args):
            keywords[None] = keywords.get(None, Value()) | union(values)
        return values, keywords

    def _method(self, name: str, found: Any, node: ast.Call) -> Value:
        """A method of the process."""
        own = getattr(Process, name, None)
        if found is not None and found is Process.__dict__.get(name) and callable(own):
            return self._effect(name, node)
        if isinstance(found, staticmethod) and isinstance(found.__func__, types.FunctionType):
            return self.follow(found.__func__, False, *self.arguments(node), node)
        if isinstance(found, types.FunctionType):
            return self.follow(found, True, *self.arguments(node), node)
        raise self.not_understood(node, f"the analysis does not support self.{name}(…)")

    def _effect(self, name: str, node: ast.Call) -> Value:
        values, keywords = self.arguments(node)
        value = union([*values, *keywords.values()])
        if name in ("ids", "pid"):
            return Value(value.deps)
        if name not in EFFECTS:
            raise self.not_understood(node, f"the analysis does not support self.{name}(…)")
        if self.deferred:
            raise self.not_understood(node, f"self.{name}(…) is called in a lambda or a generator")
        what = {"announce": "announces", "choose": "chooses", "spawn": "spawns"}.get(name, "sends")
        if what == "sends":
            sent = node.args[1] if len(node.args) > 1 else None
            made = static_value(self.function, sent.func, self.local) if isinstance(sent, ast.Call) else None
            known = made if isinstance(made, type) and issubclass(made, Message) else None
            self.flow.sent.append(known)
            what += f" {known.__name__}" if known is not None else ""
        self.sink(value.deps, what, node)
        return value if name == "choose" else Value(value.deps)

    def _function(self, callee: Any, node: ast.Call) -> Value:
        """A call of a global function or class."""
        if not purity.is_hashable(callee):
            return self._unknown(union(self.arguments(node)[0]), node)
        if callee in purity.EAGER:
            self._eager.update(a for a in node.args[:1] if isinstance(a, ast.GeneratorExp))
        values, keywords = self.arguments(node)
        value = union([*values, *keywords.values()])
        if callee in purity.FRESH:
            return Value(value.deps)
        if callee in purity.PASSING and not node.keywords:
            return value
        if callee in purity.PASSING or callee in purity.RAISING:
            self.sink(value.deps, f"{callee.__name__} may raise", node)
            return value
        if callee is Process.__dict__["pid"]:
            return Value(value.deps)
        if isinstance(callee, type) and purity.is_plain_record(callee):
            return value
        if isinstance(callee, staticmethod):
            callee = callee.__func__
        if isinstance(callee, types.FunctionType) and callee.__module__.split(".")[0] not in sys.stdlib_module_names:
            try:
                return self.follow(callee, False, values, keywords, node)
            except EscapeError:
                pass  # the callee can use its arguments, nothing else
        return self._unknown(value, node)

    def _method_of(self, func: ast.Attribute, node: ast.Call) -> Value:
        """A method of a value. The methods of builtin containers are known."""
        receiver = self.expr(func.value)
        values, keywords = self.arguments(node, receiver)
        value = union([*values, *keywords.values()])
        if self.builtin(func.value) in (None, object):
            return self._unknown(receiver | value, node)
        if func.attr in purity.LOOKING:
            return receiver | value
        if func.attr in purity.STORING or func.attr in purity.CLEARING:
            self.change(receiver.alias, value.deps, node)
            if func.attr in purity.STORING:
                self.join_all(receiver.alias | value.alias)
            return receiver | value
        return self._unknown(receiver | value, node)

    def _unknown(self, value: Value, node: ast.Call) -> Value:
        """A call that may raise, and may change and keep all its arguments."""
        name = ast.unparse(node.func)
        self.sink(value.deps, f"{name if len(name) < 40 else 'a call'}(…) may raise", node)
        alias = value.alias - {GLOBAL}
        if alias:
            self.change(alias, value.deps, node)
            self.join_all(alias)
        return value

    def join_all(self, nodes: frozenset[Node]) -> None:
        first, *rest = nodes or {GLOBAL}
        for node in rest:
            self.flow.join(first, node)


def _is_super(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args
