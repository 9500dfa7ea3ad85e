"""What a call may do: an effect of the process, a function with source, or an entry of the white list (see `dataflow`)."""

from __future__ import annotations

import types
from typing import Any

from plait.check.source import purity
from plait.check.source.dataflow import Node, Value, is_process, union
from plait.check.source.expressions import Expressions
from plait.ir import builtins, nodes
from plait.ir.nodes import Expression
from plait.model.message import Message


class Calls(Expressions):
    """Evaluates the calls of one function."""

    # -- effects ---------------------------------------------------------------------------------------------------

    def _effect(self, what: str, parts: list[Expression | None], node: object) -> Value:
        if self.deferred:
            raise self.not_understood(node, f"a step {what} in a lambda or a generator")
        value = union([self.expr(part, consumed=True) for part in parts if part is not None])
        self.sink(value.deps, what, node)
        return value

    def _send(self, node: nodes.Send | nodes.Broadcast) -> Value:
        made = node.message
        cls = self.lowering.classes.order[made.class_] if isinstance(made, nodes.Construct) else object
        known = cls if issubclass(cls, Message) else None
        self.flow.sent.append(known)
        parts: list[Expression | None] = [node.to, made] if isinstance(node, nodes.Send) else [made, node.myself]
        return Value(self._effect("sends" if known is None else f"sends {known.__name__}", parts, node).deps)

    _broadcast = _send

    def _announce(self, node: nodes.Announce) -> Value:
        return Value(self._effect("announces", [node.event], node).deps)

    def _choose(self, node: nodes.Choose) -> Value:
        return self._effect("chooses", [node.options], node)

    def _spawn(self, node: nodes.Spawn) -> Value:
        spawned = self.lowering.classes.order[node.class_]
        for name, value in zip(self.lowering.classes.fields(spawned), node.fields, strict=True):
            for cls in self.flow.graph.process_classes:
                if name in cls.__plait_fields__ and (issubclass(cls, spawned) or issubclass(spawned, cls)):
                    self.flow.graph.typed(cls, name, self.builtin(value))
        return Value(self._effect("spawns", [*node.fields], node).deps)

    # -- functions and classes -------------------------------------------------------------------------------------

    def _callfunction(self, node: nodes.CallFunction) -> Value:
        values = []
        for kind, argument in zip(self.flow.graph.kinds(node.function), node.arguments, strict=True):
            own = is_process(kind)
            if own and (self.deferred or not self.is_self(argument)):
                name = self.flow.graph.name(node.function)
                raise self.not_understood(node, f"{name} is called in a lambda or a generator")
            values.append(Value() if own else self.expr(argument))
        return self.follow(node.function, values, node)

    def _isinstance(self, node: nodes.IsInstance) -> Value:
        return Value(self.expr(node.value).deps)

    def _construct(self, node: nodes.Construct) -> Value:
        cls = self.lowering.classes.order[node.class_]
        value = union([self.expr(v) for v in node.fields])
        if not purity.is_plain_record(cls) or cls not in self.flow.graph.classes.records:
            raise self.not_understood(node, f"the analysis does not support {cls.__name__}(…)")
        return value

    def _callbuiltin(self, node: nodes.CallBuiltin) -> Value:
        """A callee of the white list."""
        name, keywords = node.name, node.keywords
        position, _ = builtins.CALLED.get(name, (None, None))
        starred = any(isinstance(a, nodes.Starred) for a in node.arguments)
        if name == "print" and keywords.keys() <= {"sep", "end"}:
            value = union([self.expr(v) for v in keywords.values()])
            self.sink(value.deps, "print may raise", node)
            for argument in node.arguments:
                self.expr(argument, consumed=True)
            self.again(value, node.arguments)
            return Value()
        if name in purity.FRESH and (name == "repr") <= len(node.arguments) <= 1 and not keywords:
            return Value(union([self.expr(a) for a in node.arguments]).deps)
        listed = name in purity.ITERATING or name in purity.READING or name in purity.CHANGING
        calls = position is not None or "key" in keywords
        if not listed or (calls and name not in purity.CALLING) or (name == "iter" and len(node.arguments) != 1):
            raise self.not_understood(node, f"the analysis does not support {name}(…)")
        if position is not None and (starred or not node.arguments):
            raise self.not_understood(node, f"the analysis does not support {name}(…) with these arguments")
        self.eager(name, node.arguments)
        data = [a for i, a in enumerate(node.arguments) if i != position]
        value = union([self.expr(a, consumed=True) for a in data])
        value = value | union([self.expr(v) for k, v in keywords.items() if k != "key"])
        functions = [] if position is None else [node.arguments[position]]
        for function in (*functions, *(v for k, v in keywords.items() if k == "key")):
            if isinstance(function, nodes.Constant) and self.value_of(function) is None and name != "map":
                continue
            value = value | self.called(function, value, {"map": len(data), "functools.reduce": 2}.get(name, 1))
        self.again(value, data)
        if starred or keywords or not self._never_raises(name, data):
            self.sink(value.deps, f"{name} may raise", node)
        if name in purity.CHANGING:
            self.change(value, value.deps, node)
            self.join_all(value.alias)
        return Value(value.deps) if name in ("len", "range", "int", "float", "hash", "ord", "chr") else value

    def _never_raises(self, callee: str, arguments: list[Expression]) -> bool:
        kinds = [self.builtin(a) for a in arguments]
        if callee == "reversed":
            return len(kinds) == 1 and kinds[0] in purity.SEQUENCES
        if callee in purity.ITERATING and "." not in callee:
            counts = {"list": (0, 1), "tuple": (0, 1), "zip": (0, 9), "map": (1, 9)}
            least, most = counts.get(callee, (1, 1))
            return all(map(self.iterable, arguments)) and least <= len(arguments) <= most
        if callee == "range":
            return 1 <= len(kinds) <= 2 and all(k is int for k in kinds)
        if len(arguments) > 1:
            return False
        if callee == "len":
            return bool(kinds) and (kinds[0] in purity.CONTAINERS or self.is_messages(arguments[0]))
        if callee in ("set", "frozenset", "dict"):
            accepted: Any = (dict,) if callee == "dict" else (*purity.SETS, dict, str, bytes)
            return not kinds or kinds[0] in accepted
        return callee == "int" and kinds == [int]

    # -- methods of values -----------------------------------------------------------------------------------------

    def _callmethod(self, node: nodes.CallMethod) -> Value:
        """A method of a value: of a builtin container, or of a record."""
        name, _, shape = node.name.partition("/")
        kind = self.builtin(node.value)
        listed = not shape and (name in purity.MAY_READ or name in purity.MAY_WRITE)
        owners = self.owners(node.value, name)
        records = [] if kind is not None else self.flow.graph.classes.attribute(name, owners)
        listed = listed and owners is None
        if not listed and not records:
            raise self.not_understood(node, f"the analysis does not support .{name}(…)")
        if listed and not node.keywords.keys() <= {"reverse"}:
            raise self.not_understood(node, f"the analysis does not support .{name}(…) with these arguments")
        receiver = self.expr(node.value)
        self.eager(name, node.arguments)
        values = [self.expr(a, consumed=not records) for a in node.arguments]
        every = union([*values, *(self.expr(v) for v in node.keywords.values())])
        value = receiver | every
        kinds = None if kind is None else (purity.READS.get(kind, {}) | purity.WRITES.get(kind, {})).get(name)
        if owners is not None:
            pass  # the method of a shared object
        elif kinds is None or not _has(kinds, node):
            self.sink(value.deps, f".{name}(…) may raise", node)
        else:
            for argument, given, wanted in zip(node.arguments, values, kinds, strict=False):
                if not self.suits(argument, wanted):
                    self.sink(given.deps, f".{name}(…) may raise", node)
        if listed and name not in purity.MAY_READ:
            self.change(receiver, every.deps, node)
            self.join_all(value.alias)
        for cls, found in records:
            starred = any(isinstance(a, nodes.Starred) for a in node.arguments)
            if starred or node.keywords or not isinstance(found, types.FunctionType | staticmethod):
                raise self.not_understood(node, f".{name} is called, which is a value")
            number = self.lowering.classes.method(cls, node.name, len(values))
            value = value | self.follow(number, [receiver, *values], node)
        return value

    def join_all(self, found: frozenset[Node]) -> None:
        if found:
            first, *rest = found
            for node in rest:
                self.flow.join(first, node)


def _has(kinds: tuple[str, ...], node: nodes.CallMethod) -> bool:
    """Whether a method of a builtin type has the right number of arguments."""
    least = 1 if node.name in ("get", "setdefault") else len(kinds)
    starred = any(isinstance(a, nodes.Starred) for a in node.arguments)
    return not node.keywords and not starred and least <= len(node.arguments) <= len(kinds)
