"""The frame of one function while it is lowered: its slots, and what its names stand for."""

from __future__ import annotations

import ast
import builtins
import enum
import functools
import types
import typing
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from plait.ir import builtins as library
from plait.ir import nodes
from plait.ir.definition import UNKNOWN, members, value_of
from plait.ir.reason import NotLoweredError, Reason
from plait.ir.scope import CALLABLE, VIEW, Bindings, Instance, Kind, LocalFunction, Scope, Static
from plait.model.process import Process
from plait.model.properties import Property
from plait.model.temporal import Atom

if TYPE_CHECKING:
    from plait.ir.program import Lowering

_CODE: tuple[type, ...] = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType)
_CODE += (types.MethodDescriptorType, functools.partial, functools._lru_cache_wrapper, staticmethod, classmethod)
_CODE += (Property, Atom)
NO_CONTENT = (TypeError, ValueError, OverflowError)
"""What `encode` raises on a value that no state can hold."""


def is_code(value: Any) -> bool:
    """Whether a value is code: a class, a function, a module. Such values do not exist at run time."""
    return isinstance(value, _CODE)


_IMPURE: tuple[type[nodes.Node], ...] = (
    nodes.CallFunction,
    nodes.CallValue,
    nodes.CallMethod,
    nodes.Assigned,
    nodes.Send,
    nodes.Broadcast,
)
_IMPURE += (nodes.Announce, nodes.Choose, nodes.Spawn)


def walk(tree: object) -> Iterator[nodes.Node]:
    """All nodes of a tree, or of a list of trees."""
    if isinstance(tree, list | dict):
        for part in tree.values() if isinstance(tree, dict) else tree:
            yield from walk(part)
    elif isinstance(tree, nodes.Node):
        yield tree
        for name in tree.__struct_fields__:
            yield from walk(getattr(tree, name))


def is_pure(node: Any) -> bool:
    """Whether it does not matter when an expression is evaluated, and how often: it calls nothing that may act, and has no
    subscript, which may insert a key into a `defaultdict`."""
    return not any(isinstance(inner, (*_IMPURE, nodes.Subscript)) for inner in walk(node))


def is_iterator(node: nodes.Expression) -> bool:
    """Whether the value of an expression is an iterator, which is consumed once."""
    return type(node) is nodes.CallBuiltin and node.name in library.ITERATORS


class Frame:
    """Slots and names of one function."""

    def __init__(self, lowering: Lowering, function: types.FunctionType, number: int) -> None:
        self.lowering = lowering
        self.function = function
        self.number = number
        self.file = function.__code__.co_filename
        self.source = lowering.source(function.__code__)
        self.names: list[str] = []
        """The names of the slots, as far as they have names."""
        self.scope = Scope(None)
        self.callables: set[int] = set()
        """Slots that hold functions."""
        self.around: list[LocalFunction] = []
        """The nested functions whose body is lowered at the moment."""
        self.chosen: dict[ast.AST, nodes.Expression] | None = None
        """In a part of a property: the processes that stand for an expression such as `s[Role]`. No other use of the view
        is possible there."""
        self.generators: dict[str, ast.expr] = {}
        """Variables that stand for a generator, which the next statement consumes."""

    def refused(self, node: ast.AST, construct: str) -> NotLoweredError:
        """The error for a construct that cannot be lowered."""
        line = getattr(node, "lineno", self.function.__code__.co_firstlineno)
        return NotLoweredError(Reason(construct, self.file, line))

    @property
    def slots(self) -> int:
        return len(self.names)

    def slot(self, name: str = "a value") -> int:
        """A new slot."""
        self.names.append(name)
        return len(self.names) - 1

    def declare(self, scope: Scope, bindings: Bindings, parameters: set[str]) -> None:
        """Give slots to the variables that a function binds, in its scope."""
        scope.outer = frozenset(bindings.outer)
        for name, count in bindings.counts.items():
            if name in bindings.outer:
                continue
            if name not in scope.slots:
                scope.slots[name] = self.slot(name)
            if count == 1 and name in bindings.functions and name not in parameters:
                scope.functions[name] = LocalFunction(bindings.functions[name])
                self.callables.add(scope.slots[name])

    def holder(self, name: str) -> Scope | None:
        """The scope that has a variable of this name; None if the name is global."""
        scope: Scope | None = self.scope
        while scope is not None:
            if name in scope.slots and name not in scope.outer:
                return scope
            if name in scope.kinds:
                return scope
            scope = scope.parent
        return None

    # -- what is known before anything runs ------------------------------------------------------------------------

    def scope_of_function(self) -> Scope:
        """The scope of the function itself, not of a comprehension in it."""
        scope = self.scope
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def kind(self, node: ast.expr) -> Kind | None:
        """What is known about the value of an expression."""
        if type(node) is ast.Name:
            scope = self.holder(node.id)
            return None if scope is None else scope.kinds.get(node.id)
        if type(node) is ast.Subscript and self.kind(node.value) is VIEW:
            found = self.static(node.slice)
            monitors = self.lowering.system.monitors
            return next((Instance(type(m)) for m in monitors if isinstance(found, type) and isinstance(m, found)), None)
        return None

    def static(self, node: ast.expr) -> Any:
        """The value of a name, or of attributes of modules and classes; UNKNOWN if it depends on the state."""
        kind = type(node)
        if kind is ast.Name:
            scope = self.holder(node.id)  # type: ignore[attr-defined]
            if scope is None:
                return self._outside(node)  # type: ignore[arg-type]
            known = scope.kinds.get(node.id)  # type: ignore[attr-defined]
            return known.value if isinstance(known, Static) else UNKNOWN
        if kind is ast.Attribute:
            return self._static_attribute(node)  # type: ignore[arg-type]
        if kind is ast.Call and len(node.args) == 1 and not node.keywords:  # type: ignore[attr-defined]
            known = self.kind(node.args[0])  # type: ignore[attr-defined]
            if isinstance(known, Instance) and self.static(node.func) is type:  # type: ignore[attr-defined]
                return known.cls
        return UNKNOWN

    def _outside(self, node: ast.Name) -> Any:
        """The value of a name that is no variable of the function."""
        name = node.id
        value = value_of(self.function, name)
        if value is UNKNOWN:
            raise self.refused(node, f"the name {name}")
        if self.source is not None and name in self.source.rebound:
            raise self.refused(node, f"{name}, which a function reassigns")
        if isinstance(value, list | dict | set | deque) and self.source is not None and name in self.source.changed:
            raise self.refused(node, f"{name}, which a function changes")
        return value

    def _static_attribute(self, node: ast.Attribute) -> Any:
        name = node.attr
        known = self.kind(node.value)
        if isinstance(known, Instance):
            if name == "__class__":
                return known.cls
            if name in self.lowering.classes.fields(known.cls):
                return UNKNOWN
            found = members(known.cls, name)
            plain = not callable(found) and not hasattr(type(found), "__get__")
            return found if plain or isinstance(found, type) else UNKNOWN
        owner = self.static(node.value)
        if owner is UNKNOWN:
            return UNKNOWN
        if isinstance(owner, types.ModuleType):
            if name not in owner.__dict__:
                return UNKNOWN
            if self.lowering.rebinds(owner, name):
                raise self.refused(node, f"{ast.unparse(node)}, which a function reassigns")
            return owner.__dict__[name]
        if isinstance(owner, type):
            return self._class_attribute(owner, name, node)
        if isinstance(owner, Property | Atom) and name in ("predicate", "name"):
            return getattr(owner, name)
        if isinstance(owner, functools._lru_cache_wrapper) and name == "__wrapped__":
            return owner.__wrapped__
        return UNKNOWN

    def _class_attribute(self, owner: type, name: str, node: ast.expr) -> Any:
        if isinstance(owner, enum.EnumType) and name in owner.__members__:
            return owner.__members__[name]
        if name in ("__name__", "__qualname__", "__module__"):
            return getattr(owner, name)
        if owner.__module__ == "builtins":
            return getattr(owner, name, UNKNOWN)
        found = members(owner, name)
        if isinstance(found, staticmethod):
            return found.__func__
        if isinstance(found, classmethod):
            return types.MethodType(found.__func__, owner)
        if found is UNKNOWN or isinstance(found, property):
            raise self.refused(node, f"{owner.__name__}.{name}")
        return found

    def truth(self, node: ast.expr) -> bool | None:
        """The truth of a test that does not depend on the state, as `TYPE_CHECKING`; None if it does."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            found = self.truth(node.operand)
            return None if found is None else not found
        if isinstance(node, ast.Constant):
            return bool(node.value)
        if isinstance(node, ast.Name | ast.Attribute):
            value = self.static(node)
            return bool(value) if isinstance(value, bool | int | str | type(None)) else None
        return None

    def is_callable(self, node: ast.expr) -> bool:
        """Whether an expression is a function of this frame: a lambda, a nested function, a parameter that is one."""
        if isinstance(node, ast.Lambda):
            return True
        if not isinstance(node, ast.Name):
            return False
        scope = self.holder(node.id)
        return scope is not None and (node.id in scope.functions or scope.kinds.get(node.id) is CALLABLE)

    # -- values ----------------------------------------------------------------------------------------------------

    def constant(self, value: Any, node: ast.AST) -> nodes.Constant:
        """A value that is known now."""
        try:
            content = self.lowering.encode(value)
        except NO_CONTENT:
            shown = f"{node.id}, " if isinstance(node, ast.Name) else ""
            raise self.refused(node, f"{shown}a value of type {type(value).__name__}") from None
        if type(value) not in (int, str, bool, type(None)):
            objection = self.lowering.classes.meet(value)
            if objection is not None:
                raise self.refused(node, objection)
        self.lowering.values[content] = value
        return nodes.Constant(content)

    def number_of(self, cls: type, node: ast.AST) -> int:
        """The number of a class of values in the program."""
        reason = self.lowering.classes.objection(cls)
        if reason is not None:
            raise self.refused(node, reason)
        return self.lowering.classes.number(cls)

    def positions(self, role: Any, node: ast.AST, *, spares: bool = False) -> list[int]:
        """The positions of the processes of a role."""
        if not (isinstance(role, type) and issubclass(role, Process)):
            raise self.refused(node, "a role that is computed")
        return self.lowering.system.members(role, spares=spares)


def is_typing(value: Any, name: str) -> bool:
    """Whether a value is this function of `typing`."""
    return value is getattr(typing, name, UNKNOWN)


def unwrapped(value: Any) -> Any:
    """The function behind a static method, a property of the model or a predicate; behind a cache, if Plait has made it.

    A cache hashes arguments, returns one object several times, and does not tell 1 from True. So a function of the user
    with a cache is another function than the one behind it.
    """
    while True:
        if isinstance(value, functools._lru_cache_wrapper) and value.__module__.startswith("plait.model."):
            value = value.__wrapped__
        elif isinstance(value, staticmethod):
            value = value.__func__
        elif isinstance(value, Property | Atom):
            value = value.predicate
        else:
            return value


def is_builtin(value: Any, name: str) -> bool:
    """Whether a value is the built-in function of this name."""
    return value is getattr(builtins, name)
