"""What only handlers and properties do: send, choose, spawn; ids of processes; instances of classes."""

from __future__ import annotations

import abc
import ast
import enum
import types
from typing import Any

from plait.ir import builtins, nodes
from plait.ir.builtins import COLLECTIONS, library_class
from plait.ir.classes import special_method
from plait.ir.definition import UNKNOWN
from plait.ir.expressions import Expressions
from plait.ir.frame import is_code, is_pure
from plait.ir.nodes import Expression
from plait.ir.scope import VIEW, Instance
from plait.kernel.pid import Pid
from plait.model.process import Process


class Effects(Expressions):
    """Lowers the operations of a process."""

    def _bound(self, names: tuple[str, ...], node: ast.Call, least: int) -> dict[str, ast.expr]:
        """The arguments of an operation by name."""
        found: dict[str, ast.expr] = {}
        for i, argument in enumerate(node.args):
            if isinstance(argument, ast.Starred) or i >= len(names):
                raise self.refused(node, f"arguments of {ast.unparse(node.func)}(…)")
            found[names[i]] = argument
        for keyword in node.keywords:
            if keyword.arg not in names or keyword.arg in found:
                raise self.refused(node, f"arguments of {ast.unparse(node.func)}(…)")
            found[keyword.arg] = keyword.value
        if any(name not in found for name in names[:least]):
            raise self.refused(node, f"arguments of {ast.unparse(node.func)}(…)")
        return found

    def effect(self, name: str, node: ast.Call) -> Expression:
        """An operation of the process itself."""
        if name == "ids":
            role = self.static(self._bound(("role",), node, 1)["role"])
            pids = self.lowering.system.pids
            return self.constant(tuple(pids[i] for i in self.positions(role, node)), node)
        self.lowering.acts(self)
        if name == "send":
            given = self._bound(("to", "message"), node, 2)
            to = self.consumed(given["to"])
            return nodes.Send(to, self.expr(given["message"]))
        if name == "broadcast":
            given = self._bound(("role", "message", "myself"), node, 2)
            positions = self.positions(self.static(given["role"]), node)
            message = self.expr(given["message"])
            return nodes.Broadcast(list(positions), message, self.expr(given["myself"]) if "myself" in given else None)
        if name == "announce":
            return nodes.Announce(self.expr(self._bound(("event",), node, 1)["event"]))
        if name == "choose":
            return nodes.Choose(self.consumed(self._bound(("options",), node, 1)["options"]))
        if name == "spawn":
            return self._spawn(node)
        raise self.refused(node, f"self.{name}(…)")

    def _spawn(self, node: ast.Call) -> Expression:
        role = self.static(node.args[0]) if len(node.args) == 1 else UNKNOWN
        if not (isinstance(role, type) and issubclass(role, Process)):
            raise self.refused(node, "self.spawn(…) of a role that is computed")
        special = special_method(role)
        if special is not None:
            raise self.refused(node, f"{role.__name__}, which defines {special}")
        given = {k.arg or "": self.expr(k.value) for k in node.keywords}
        first, given = self._in_order(given, self.lowering.classes.fields(role))
        fields = self.lowering.classes.filled(role, given, self, node)
        spawned = nodes.Spawn(self.lowering.classes.number(role), fields)
        return spawned if first is None else nodes.Conditional(first, spawned, spawned)

    def _view_method(self, name: str, node: ast.Call) -> Expression:
        if name == "get" and len(node.args) == 1 and not node.keywords:
            return self.role(self.static(node.args[0]), node)
        raise self.refused(node, f".{name}(…) of the view")

    def size_of_role(self, node: ast.expr) -> int | None:
        """The number of processes in `s[Role]`; None if it is something else, or if processes may be spawned."""
        if not isinstance(node, ast.Subscript) or self.kind(node.value) is not VIEW:
            return None
        role = self.static(node.slice)
        if not (isinstance(role, type) and issubclass(role, Process)):
            return None
        system = self.lowering.system
        found = system.members(role, spares=True)
        return len(found) if found and found == system.members(role) else None

    # -- ids -------------------------------------------------------------------------------------------------------

    def pid_of(self, cls: type, node: ast.Call) -> Expression:
        """`Role.pid(index)`"""
        return self.pid_named(cls.__name__, self._bound(("index",), node, 1)["index"], node)

    def pid_named(self, role: str, index: ast.expr, node: ast.Call) -> Expression:
        """The id of a process of a role by its index. If that is computed, it must be one of the system."""
        if isinstance(index, ast.Constant) and type(index.value) is int:
            return self.constant(Pid(role, index.value), node)
        known = {pid.index: pid for pid in self.lowering.system.pids if pid.role == role}
        slot = self.slot()
        number = nodes.IsInstance(nodes.Assigned(slot, self.expr(index)), ["int"], [])
        plain = nodes.UnaryOperation("not", nodes.IsInstance(nodes.Local(slot), ["bool"], []))
        found = nodes.Subscript(self.constant(known, node), nodes.Local(slot))
        return nodes.Conditional(nodes.And([number, plain]), found, self.fails(node))

    # -- classes ---------------------------------------------------------------------------------------------------

    def made(self, cls: type, given: dict[str, Expression], node: ast.AST) -> Expression:
        """An instance of a class, from the arguments of its constructor, in the order in which they are evaluated."""
        first, given = self._in_order(given, self.lowering.classes.fields(cls))
        fields = self.lowering.classes.filled(cls, given, self, node)
        instance = nodes.Construct(self.lowering.classes.number(cls), fields)
        return instance if first is None else nodes.Conditional(first, instance, instance)

    def _in_order(
        self, given: dict[str, Expression], names: tuple[str, ...]
    ) -> tuple[Expression | None, dict[str, Expression]]:
        """The arguments of a constructor. If their order is another one, and matters, a tuple evaluates them before."""
        if [n for n in names if n in given] == list(given) or all(map(is_pure, given.values())):
            return None, given
        slots = {name: self.slot() for name in given}
        first = nodes.TupleDisplay([nodes.Assigned(slots[name], value) for name, value in given.items()])
        return first, {name: nodes.Local(slot) for name, slot in slots.items()}

    def is_instance(self, node: ast.Call) -> Expression:
        """`isinstance(value, classes)`"""
        if len(node.args) != 2 or node.keywords:
            raise self.refused(node, "isinstance(…)")
        classes = self.classes_of(node.args[1])
        kind = self.kind(node.args[0])
        if isinstance(kind, Instance):
            return self.constant(issubclass(kind.cls, tuple(classes)), node)
        return self.instance_test(self.expr(node.args[0]), classes, node)

    def classes_of(self, node: ast.expr) -> list[type]:
        """The classes of the second argument of `isinstance`."""
        if isinstance(node, ast.Tuple):
            return [cls for part in node.elts for cls in self.classes_of(part)]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return [*self.classes_of(node.left), *self.classes_of(node.right)]
        if isinstance(node, ast.Constant) and node.value is None:
            return [type(None)]
        found = self.static(node)
        return self._flat(found, node)

    def _flat(self, found: Any, node: ast.expr) -> list[type]:
        if isinstance(found, tuple):
            return [cls for part in found for cls in self._flat(part, node)]
        if isinstance(found, types.UnionType):
            return [cls for part in found.__args__ for cls in self._flat(part, node)]
        if not isinstance(found, type) or isinstance(found, types.GenericAlias):
            raise self.refused(node, f"isinstance(…, {ast.unparse(node)})")
        return [found]

    def instance_test(self, value: Expression, classes: list[type], node: ast.AST) -> Expression:
        """Whether a value is an instance of one of these classes."""
        known, numbers = [], []
        for cls in classes:
            if cls in builtins.TYPES:
                known.append(builtins.TYPES[cls])
            elif (name := library_class(cls)) is not None:
                known.append(name)
            elif cls is Pid:
                known.append("Pid")
            elif (
                cls is object
                or cls.__module__ == "collections.abc"
                or type(cls) not in _PLAIN
                or not is_code(cls)
                or any(issubclass(kind, cls) for kind in (*builtins.TYPES, *COLLECTIONS))
            ):
                raise self.refused(node, f"isinstance(…, {cls.__name__})")
            else:
                numbers.append(self.lowering.classes.number(cls))
        return nodes.IsInstance(value, known, numbers)


_PLAIN = (type, enum.EnumType, abc.ABCMeta)
