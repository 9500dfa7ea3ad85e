"""What a call may do: an effect of the process, a function with source, or an entry of the white list (see `dataflow`)."""

from __future__ import annotations

import ast
import builtins
import enum
import functools
import types
from collections.abc import Callable
from typing import Any

from plait.check.source import purity
from plait.check.source.classes import is_library
from plait.check.source.dataflow import Node, Value, union
from plait.check.source.expressions import Expressions, accepts
from plait.ir.definition import UNKNOWN, static_value, value_of
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
            plain = "super" not in self.local and value_of(self.function, "super") is builtins.super
            owner = value_of(self.function, "__class__") if plain else None
            if not isinstance(owner, type) or owner not in self.flow.cls.__mro__:
                raise self.not_understood(node, "super() refers to an unknown class")
            return self._method(func.attr, self.flow.attribute(func.attr, owner), node)
        callee = static_value(self.function, func, self.local)
        if callee is not UNKNOWN:
            return self._function(callee, node)
        if isinstance(func, ast.Attribute):
            return self._method_of(func, node)
        raise self.not_understood(node, f"{_short(func)} is called, which is a value")

    def arguments(self, node: ast.Call, *, consumed: bool = False) -> tuple[list[Value], dict[str | None, Value]]:
        """The values of the arguments. After an unpacked argument, the positions are not known."""
        values = [self.expr(a, consumed=consumed) for a in node.args]
        keywords: dict[str | None, Value] = {k.arg: self.expr(k.value, consumed=consumed) for k in node.keywords}
        if any(isinstance(a, ast.Starred) for a in node.args):
            keywords[None] = keywords.get(None, Value()) | union(values)
        return values, keywords

    def _method(self, name: str, found: Any, node: ast.Call) -> Value:
        """A method of the process."""
        if found is not None and found is Process.__dict__.get(name) and callable(getattr(Process, name, None)):
            return self._effect(name, node)
        if isinstance(found, staticmethod) and isinstance(found.__func__, types.FunctionType):
            return self._followed(found.__func__, False, node)
        if isinstance(found, types.FunctionType):
            return self._followed(found, True, node)
        raise self.not_understood(node, f"the analysis does not support self.{name}(…)")

    def _followed(self, function: types.FunctionType, bound: bool, node: ast.Call) -> Value:
        """A call of a function with source."""
        values, keywords = self.arguments(node)
        if not _fits(function, node, int(bound)):
            self.sink(union([*values, *keywords.values()]).deps, f"{function.__name__}(…) may raise", node)
        return self.follow(function, bound, values, keywords, node)

    def _effect(self, name: str, node: ast.Call) -> Value:
        values, keywords = self.arguments(node, consumed=True)
        value = union([*values, *keywords.values()])
        if name in ("ids", "pid"):
            self.sink(value.deps, f"{name} may raise", node)
            return Value(value.deps)
        if name not in EFFECTS:
            raise self.not_understood(node, f"the analysis does not support self.{name}(…)")
        if self.deferred:
            raise self.not_understood(node, f"self.{name}(…) is called in a lambda or a generator")
        what = {"announce": "announces", "choose": "chooses", "spawn": "spawns"}.get(name, "sends")
        if name == "spawn":
            self._spawned(node)
        if what == "sends":
            sent = node.args[1] if len(node.args) > 1 else None
            made = static_value(self.function, sent.func, self.local) if isinstance(sent, ast.Call) else None
            known = made if isinstance(made, type) and issubclass(made, Message) else None
            self.flow.sent.append(known)
            what += f" {known.__name__}" if known is not None else ""
        self.sink(value.deps, what, node)
        return value if name == "choose" else Value(value.deps)

    def _spawned(self, node: ast.Call) -> None:
        """The fields of a spawned process get values."""
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self.not_understood(node, "self.spawn(…) unpacks its fields")
            for cls in self.flow.graph.process_classes:
                if keyword.arg in cls.__plait_fields__:
                    self.flow.graph.typed(cls, keyword.arg, self.builtin(keyword.value))

    # -- functions and classes -------------------------------------------------------------------------------------

    def _function(self, callee: Any, node: ast.Call) -> Value:
        """A call of a global function or class."""
        if isinstance(callee, staticmethod):
            callee = callee.__func__
        if callee is Process.__dict__["pid"]:
            value = union(self.arguments(node)[0])
            self.sink(value.deps, "pid may raise", node)
            return Value(value.deps)
        if isinstance(callee, types.FunctionType) and not is_library(callee.__module__):
            return self._followed(callee, False, node)
        if not purity.is_hashable(callee):
            raise self._not_listed(node)
        if callee in (isinstance, issubclass) and len(node.args) == 2 and not node.keywords:
            return self._instance(node)
        if callee is print and all(k.arg in ("sep", "end") for k in node.keywords):
            _, keywords = self.arguments(node, consumed=True)
            self.sink(union(keywords.values()).deps, "print may raise", node)
            self.again(union(keywords.values()), node.args)
            return Value()
        if callee in purity.FRESH and (callee is repr) <= len(node.args) <= 1 and not node.keywords:
            return Value(union(self.arguments(node)[0]).deps)
        if callee in purity.ITERATING or callee in purity.READING or callee in purity.CHANGING:
            return self._listed(callee, node)
        if isinstance(callee, type):
            return self._constructor(callee, node)
        raise self._not_listed(node)

    def _not_listed(self, node: ast.Call) -> Exception:
        return self.not_understood(node, f"the analysis does not support {_short(node.func)}(…)")

    def _instance(self, node: ast.Call) -> Value:
        """isinstance(value, class)."""
        tested = node.args[1]
        for part in ast.walk(tested):
            cls = static_value(self.function, part, self.local) if isinstance(part, ast.Name | ast.Attribute) else type
            plain = isinstance(cls, types.ModuleType) or type(cls) in (type, enum.EnumType)
            if not plain and not (isinstance(cls, type) and cls.__module__ == "collections.abc"):
                raise self.not_understood(node, f"{ast.unparse(tested)} is no class")
            if not isinstance(part, ast.Name | ast.Attribute | ast.Tuple | ast.expr_context):
                raise self.not_understood(node, f"{ast.unparse(tested)} is no class")
        return Value(self.expr(node.args[0]).deps)

    def _listed(self, callee: Callable[..., Any], node: ast.Call) -> Value:
        """A callee of the white list."""
        position, name = purity.CALLING.get(callee, (None, None))
        named = [k for k in node.keywords if k.arg in ("key", None)]
        starred = any(isinstance(a, ast.Starred) for a in node.args)
        if any(k.arg != name or k.arg is None for k in named) or (callee is iter and len(node.args) != 1):
            raise self._not_listed(node)
        if position is not None and (starred or not node.args):
            raise self._not_listed(node)
        if callee in purity.EAGER:
            self._eager.update(a for a in node.args[:1] if isinstance(a, ast.GeneratorExp))
        data = [a for i, a in enumerate(node.args) if i != position]
        value = union(self.expr(a, consumed=True) for a in data)
        value = value | union(self.expr(k.value) for k in node.keywords if k.arg != "key")
        for function in (
            *(node.args[position : position + 1] if position is not None else ()),
            *(k.value for k in named),
        ):
            value = value | self.called(function, value, {map: len(data), functools.reduce: 2}.get(callee, 1))
        self.again(value, data)
        if starred or node.keywords or not self._never_raises(callee, data):
            self.sink(value.deps, f"{callee.__name__} may raise", node)
        if callee in purity.CHANGING:
            self.change(value, value.deps, node)
            self.join_all(value.alias)
        return Value(value.deps) if callee in (len, range, int, float, hash, ord, chr) else value

    def _never_raises(self, callee: Any, arguments: list[ast.expr]) -> bool:
        kinds = [self.builtin(a) for a in arguments]
        if callee is reversed:
            return len(kinds) == 1 and kinds[0] in purity.SEQUENCES
        if callee in purity.ITERATING and callee.__module__ == "builtins":
            once = (1, 1)
            counts = {list: (0, 1), tuple: (0, 1), zip: (0, 9), map: (1, 9)}
            least, most = counts.get(callee, once)
            return all(map(self.iterable, arguments)) and least <= len(arguments) <= most
        if callee is range:
            return 1 <= len(kinds) <= 2 and all(k is int for k in kinds)
        if len(arguments) > 1:
            return False
        if callee is len:
            name = isinstance(arguments[0], ast.Name) and arguments[0].id if arguments else ""
            return bool(kinds) and (kinds[0] in purity.CONTAINERS or (name, True) == self.message)
        if callee in (*purity.SETS, dict):
            return not kinds or kinds[0] in ((dict,) if callee is dict else (*purity.SETS, dict, str, bytes))
        return callee is int and kinds == [int]

    def _constructor(self, cls: type, node: ast.Call) -> Value:
        """A call of a class that stores its arguments."""
        values, keywords = self.arguments(node)
        value = union([*values, *keywords.values()])
        plain = purity.is_plain_record(cls) and cls in self.flow.graph.classes.records
        failure = issubclass(cls, BaseException) and not any(
            name in base.__dict__
            for base in cls.__mro__
            if not is_library(base.__module__)
            for name in ("__init__", "__new__")
        )
        if not plain and not failure and not issubclass(cls, enum.Enum):
            raise self._not_listed(node)
        if not plain or not _fits(cls, node, 0):
            self.sink(value.deps, f"{cls.__name__}(…) may raise", node)
        return value

    # -- methods of values -----------------------------------------------------------------------------------------

    def _method_of(self, func: ast.Attribute, node: ast.Call) -> Value:
        """A method of a value: of a builtin container, or of a record."""
        name, kind = func.attr, self.builtin(func.value)
        listed = name in purity.MAY_READ or name in purity.MAY_WRITE
        records = [] if kind is not None else self.flow.graph.classes.attribute(name)
        if not listed and not records:
            raise self.not_understood(node, f"the analysis does not support .{name}(…)")
        if listed and any(k.arg not in ("reverse", "maxsplit") for k in node.keywords) and not records:
            raise self.not_understood(node, f"the analysis does not support .{name}(…) with these arguments")
        receiver = self.expr(func.value)
        if name in purity.EAGER:
            self._eager.update(a for a in node.args[:1] if isinstance(a, ast.GeneratorExp))
        values, keywords = self.arguments(node, consumed=not records)
        value = receiver | union([*values, *keywords.values()])
        kinds = None if kind is None else (purity.READS.get(kind, {}) | purity.WRITES.get(kind, {})).get(name)
        if kinds is None or not _has(kinds, name, node):
            self.sink(value.deps, f".{name}(…) may raise", node)
        else:
            for argument, given, wanted in zip(node.args, values, kinds, strict=False):
                if not self.suits(argument, wanted):
                    self.sink(given.deps, f".{name}(…) may raise", node)
        if listed and name not in purity.MAY_READ:
            self.change(receiver, union([*values, *keywords.values()]).deps, node)
            self.join_all(value.alias)
        for found in records:
            value = value | self._record_method(found, receiver, values, keywords, node)
        return value

    def _record_method(
        self, found: Any, receiver: Value, values: list[Value], keywords: dict[str | None, Value], node: ast.Call
    ) -> Value:
        if isinstance(found, staticmethod) and isinstance(found.__func__, types.FunctionType):
            return self.follow(found.__func__, False, values, keywords, node)
        if isinstance(found, types.FunctionType):
            return self.follow(found, False, [receiver, *values], keywords, node)
        raise self.not_understood(node, f"{_short(node.func)} is called, which is a value")

    def join_all(self, nodes: frozenset[Node]) -> None:
        if nodes:
            first, *rest = nodes
            for node in rest:
                self.flow.join(first, node)


def _has(kinds: tuple[str, ...], name: str, node: ast.Call) -> bool:
    """Whether a method of a builtin type has the right number of arguments."""
    least = 1 if name in ("get", "setdefault") else len(kinds)
    starred = any(isinstance(a, ast.Starred) for a in node.args)
    return not node.keywords and not starred and least <= len(node.args) <= len(kinds)


def _is_super(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args


def _short(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) < 40 else "an expression"


def _fits(function: Callable[..., Any], node: ast.Call, more: int) -> bool:
    """Whether a function certainly accepts the number and the names of these arguments."""
    if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
        return False
    return accepts(function, more + len(node.args), [k.arg or "" for k in node.keywords])
