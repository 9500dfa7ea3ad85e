"""The builtin type of an expression, as far as it is certain (a part of `plait.check.source.dataflow`).

The type of a field is the builtin type in its annotation, if all values that it ever gets have this type: the values
of the first state, and the value of each assignment in the source. `Graph.untyped` collects the other fields;
`dependences` then starts again without their types. So no annotation of a field is trusted. Annotations of messages are:
the search sees every message, and checks these types (`plait.check.reduce.relevance`).
"""

from __future__ import annotations

import collections
import inspect
from collections.abc import Sequence
from typing import Any

from plait.check.source import purity
from plait.check.source.dataflow import Flow, annotated, is_process
from plait.ir import nodes
from plait.ir.frame import walk
from plait.ir.nodes import Expression
from plait.ir.scope import Instance
from plait.model.shared import Shared

_SHAPES: dict[type, type] = {nodes.ListDisplay: list, nodes.ListComprehension: list, nodes.TupleDisplay: tuple}
_SHAPES |= {nodes.SetDisplay: set, nodes.SetComprehension: set, nodes.DictDisplay: dict, nodes.DictComprehension: dict}
_SHAPES |= {nodes.JoinedString: str, nodes.Compare: bool}


class TypeInference:
    """What is known about the values of one function."""

    def __init__(self, flow: Flow, key: Any) -> None:
        self.flow, self.key = flow, key
        self.lowering = flow.graph.lowering
        self.tree = flow.graph.function(key[0])
        self.process = [slot for slot, kind in enumerate(flow.graph.kinds(key[0])) if is_process(kind)]
        """The parameters for the process."""
        self.shared: dict[int, type[Shared]] = {
            slot: kind.cls
            for slot, kind in enumerate(flow.graph.kinds(key[0]))
            if isinstance(kind, Instance) and issubclass(kind.cls, Shared)
        }
        """The parameters for shared objects, in their methods."""
        self.message: tuple[int, bool] | None = None
        """The parameter for the delivered message, and whether it is a tuple of messages."""
        self._bindings = collections.Counter(range(self.tree.parameters))
        """The number of places that bind a variable."""
        self._values: dict[int, list[Expression | None]] = {}
        self._over: dict[int, list[Expression]] = {}
        """What a variable iterates over."""
        for node in walk(self.tree.body):
            if isinstance(node, nodes.LocalTarget | nodes.Assigned):
                self._bindings[node.slot] += 1
            if isinstance(node, nodes.Lambda):
                self._bindings.update(node.parameters)
            if isinstance(node, nodes.Assigned):
                self._values.setdefault(node.slot, []).append(node.value)
            if isinstance(node, nodes.For | nodes.Clause) and isinstance(node.target, nodes.LocalTarget):
                self._over.setdefault(node.target.slot, []).append(node.iterable)
            if isinstance(node, nodes.Assign | nodes.AugmentedAssign):
                plain = isinstance(node, nodes.Assign) or node.operator in ("+", "-", "|", "&")
                for target in node.targets if isinstance(node, nodes.Assign) else [node.target]:
                    if isinstance(target, nodes.LocalTarget):
                        self._values.setdefault(target.slot, []).append(node.value if plain else None)

    def is_self(self, node: Expression) -> bool:
        return isinstance(node, nodes.Local) and node.slot in self.process

    def value_of(self, node: nodes.Constant) -> Any:
        return self.lowering.values[node.content]

    def builtin(self, node: Expression | None, seen: frozenset[int] = frozenset()) -> type | None:
        """The builtin type of a value, or None if it is not certain. A bool counts as an int."""
        found = None if node is None else self._builtin(node, seen)
        return int if found is bool else found

    def _builtin(self, node: Expression, seen: frozenset[int]) -> type | None:
        if type(node) in _SHAPES:
            return _SHAPES[type(node)]
        match node:
            case nodes.Attribute(of, name) if self.is_self(of):
                return self.flow.graph.type_of(self.flow.cls, name)
            case nodes.Attribute(of, name) if self.is_message(of) and self.flow.message is not None:
                found = annotated(self.flow.message, name)
                if found is not None:
                    self.flow.graph.relied.add((self.flow.message, name))
                return found
            case nodes.Attribute(of, name):
                return self.flow.graph.shared_type(name, self.owners(of, name))
            case nodes.Constant():
                kind = type(self.value_of(node))
                return kind if kind in purity.BUILTIN else None
            case nodes.UnaryOperation(operator, operand):
                kinds = (self.builtin(operand, seen),)
                return bool if operator == "not" else kinds[0] if operator != "~" and kinds[0] in (int, float) else None
            case nodes.Assigned(_, value):
                return self.builtin(value, seen)
            case nodes.BinaryOperation(operator, left, right):
                types = self.builtin(left, seen), self.builtin(right, seen)
                if operator in ("%", "//"):
                    return int if types == (int, int) else None
                return purity.result_of(operator, *types)
            case nodes.Conditional(_, body, orelse):
                return self._common((body, orelse), seen)
            case nodes.And(operands) | nodes.Or(operands):
                return self._common(operands, seen)
            case nodes.Subscript(value, nodes.Slice()):
                sliced = self.builtin(value, seen)
                return sliced if sliced in purity.SEQUENCES else None
            case nodes.Choose(nodes.ListDisplay([_, *_] as items) | nodes.TupleDisplay([_, *_] as items)):
                return self._common(items, seen)
            case nodes.CallMethod(value, "copy"):
                copied = self.builtin(value, seen)
                return copied if copied in (list, set, dict, frozenset) else None
            case nodes.CallBuiltin("len"):
                return int
            case nodes.CallBuiltin("sorted"):
                return list
            case nodes.CallBuiltin(name, arguments) if name != "int" or arguments:
                return purity.BY_NAME.get(name)
            case nodes.Local(slot) if slot not in seen:
                values = self._values.get(slot, [])
                # Otherwise it is also a parameter, or bound in another way.
                return self._common(values, seen | {slot}) if len(values) == self._bindings[slot] else None
        return None

    def owners(self, node: Expression, name: str) -> frozenset[type[Shared]] | None:
        """The classes of shared objects that a value refers to, if it certainly refers to one with this field or method."""
        found = self._referred(node)
        if found is None or any(
            inspect.getattr_static(cls, name, None) is None and name not in cls.__plait_fields__ for cls in found
        ):
            return None
        return found

    def _referred(self, node: Expression) -> frozenset[type[Shared]] | None:
        match node:
            case nodes.Local(slot) if slot in self.shared and self._bindings[slot] == 1:
                return frozenset({self.shared[slot]})
            case nodes.Local(slot) if len(self._values.get(slot, [])) == self._bindings[slot] == 1:
                value = self._values[slot][0]
                return None if value is None else self._referred(value)
            case nodes.Attribute(of, name):
                holders = frozenset({self.flow.cls}) if self.is_self(of) else self._referred(of)
                some = [self.flow.graph.references.get((cls, name)) for cls in holders or ()]
                return frozenset().union(*some) if some and None not in some else None  # type: ignore[arg-type]
        return None

    def _common(self, values: Sequence[Expression | None], seen: frozenset[int]) -> type | None:
        found = {self.builtin(v, seen) for v in values}
        return found.pop() if len(found) == 1 else None

    def hashable(self, node: Expression) -> bool:
        """Whether a value is certainly hashable."""
        if isinstance(node, nodes.TupleDisplay):
            return all(map(self.hashable, node.items))
        if isinstance(node, nodes.Constant):
            return purity.is_hashable(self.value_of(node))
        return self.is_pid(node) or self.builtin(node) in purity.HASHABLE

    def iterable(self, node: Expression) -> bool:
        """Whether a value can certainly be iterated over. An argument of a list or call may be an iterator itself."""
        match node:
            case nodes.CallBuiltin(name) if name in purity.LAZY or name == "range":
                return True  # if the call does not raise
            case nodes.CallMethod(value, "keys" | "values" | "items"):
                return self.builtin(value) is dict
        return isinstance(node, nodes.Generator) or self.is_messages(node) or self.builtin(node) in purity.CONTAINERS

    def is_list(self, node: Expression) -> bool:
        """Whether a loop over this never raises, whatever its body changes."""
        return self.builtin(node) in purity.SEQUENCES

    def suits(self, node: Expression, kind: str) -> bool:
        """Whether an argument is certainly of a kind that `purity` names."""
        if kind == "hashable":
            return self.hashable(node)
        if kind == "iterable":
            return self.iterable(node)
        accepted = {"set": purity.SETS, "int": (int,), "str": (str,), "dict": (dict,)}
        return kind == "any" or self.builtin(node) in accepted[kind]

    def is_pid(self, node: Expression) -> bool:
        sender = isinstance(node, nodes.Attribute) and node.name == "sender" and self.is_message(node.value)
        return sender or isinstance(node, nodes.SelfId)

    def is_messages(self, node: Expression) -> bool:
        """Whether this is certainly the tuple of delivered messages."""
        return isinstance(node, nodes.Local) and self.message == (node.slot, True) and self._bindings[node.slot] == 1

    def is_message(self, node: Expression) -> bool:
        """Whether this is certainly a delivered message."""
        if self.message is None:
            return False
        message, several = self.message
        if self._bindings[message] > 1:
            return False
        match node:
            case nodes.Subscript(nodes.Local(slot), nodes.Constant() as index):
                return several and slot == message and self.value_of(index) in (0, -1)
            case nodes.Local(slot) if several:
                # A loop variable over the messages, with no other binding.
                over = self._over.get(slot, [])
                return len(over) == self._bindings[slot] > 0 and all(o == nodes.Local(message) for o in over)
            case nodes.Local(slot):
                return slot == message
        return False
