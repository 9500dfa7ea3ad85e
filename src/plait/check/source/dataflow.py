"""The flow of values through one handler: which fields, tests and effects may depend on which (see `dependence`).

The analysis ignores the order of statements: a variable stands for all values that are ever assigned to it. Control is
flow too: a branch depends on its test. If the test may leave the function or the loop, the rest depends on it as well.
Values that may share a list, dict, set or record are one *alias class*: a change of one value changes all of them. The
analysis follows methods of the process and functions with source, for the concrete class.

An exception is observable. So an operation that may raise makes its operands relevant.

The fields of shared objects are nodes, too. Which object a reference means is not followed: a node stands for the fields
of this name of all objects of a class. If the class of a reference is not certain, an attribute may be a field of any
shared class that has it.

The analysis is a white list. Three laws make it sound:

1. *Every callee is known.* `plait.ir` has lowered the code, and refuses what it does not understand. A call names a function
   of the program, a method of a record, or an entry of `plait.check.source.purity`. A value is never called: who passes or
   stores a function, reads a frame, or evaluates text uses a callee that is not on the list. The same holds for each kind
   of statement and expression: a node without a rule is not understood.
2. *Operators run no code of the user.* A model with records that have special methods of their own is not analysed
   (`plait.check.source.classes`).
3. *Variables hold data.* An iterator is used where it is made, so that no hidden position is a part of the state.

Whatever breaks a law raises EscapeError, and then every field of the class is relevant, and every shared field.
"""

from __future__ import annotations

import collections
import inspect
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from plait.check.source import purity
from plait.check.source.classes import Classes
from plait.ir.nodes import Function
from plait.ir.program import Lowering
from plait.ir.scope import Instance, Kind, exists
from plait.kernel.pid import Pid
from plait.model.clock import Clock
from plait.model.message import Message
from plait.model.process import Process
from plait.model.shared import Shared
from plait.model.system import System

Owner = type[Process] | type[Shared]
"""The class of a field: of a process, or of a shared object."""
Field = tuple[Owner, str]
References = dict[Field, frozenset[type[Shared]]]
"""Fields that always hold a reference to a shared object, with the classes of these objects."""

Node = tuple[Any, ...]
"""("field", class, name), ("var", flow, function, name), ("test" | "entry" | "result", …, label) or ("sink", …, label).

("which", flow, node) decides which object a variable, field or result is."""
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
    identity: frozenset[Node] | None = None
    """The nodes that decide which object this is; None: all of `deps`. In `(xs if k else ys).append(1)`, k decides."""

    @property
    def which(self) -> frozenset[Node]:
        """The nodes that decide which object this is."""
        return self.deps if self.identity is None else self.identity

    def part(self) -> Value:
        """An item or attribute of this value: the content decides which object it is."""
        return Value(self.deps, self.alias)

    def __or__(self, other: Value) -> Value:
        return Value(self.deps | other.deps, self.alias | other.alias)


def union(values: Iterable[Value]) -> Value:
    """The union of values."""
    result = Value()
    for value in values:
        result = result | value
    return result


class Loop(NamedTuple):
    """A loop that is being walked: its items, and how many changes and calls there were before it."""

    items: Value
    is_list: bool
    place: str
    start: int
    calls: int


class Graph:
    """The dependence graph: for each node, the nodes that flow into it."""

    def __init__(
        self, system: System, lowering: Lowering, classes: Classes, untyped: set[Field], references: References
    ) -> None:
        self.lowering = lowering
        self.process_classes = tuple(dict.fromkeys(system.classes))
        self.shared_fields = [(cls, name) for cls in shared_classes(system) for name in cls.__plait_fields__]
        self.classes, self.untyped = classes, untyped
        """The record classes of the model; fields that may hold values of other types than their annotations say."""
        self.mistyped: set[Field] = set()
        """Fields that turned out to be untyped."""
        self.references = references
        self.assigned: set[Field] = set()
        """Fields that may get another value than at first."""
        self.relied: set[tuple[type[Message], str]] = set()
        """Fields of messages whose annotations the analysis trusts. The search checks them."""
        self.sources: dict[Node, dict[Node, None]] = {}
        self.flows = 0
        """The number of flows so far. It distinguishes their variables."""

    def flow(self, sources: Iterable[Node], target: Node) -> None:
        """The target may depend on these nodes."""
        self.sources.setdefault(target, {}).update((s, None) for s in sources if s != target)

    def sink(self, sources: Iterable[Node], label: str, *, minor: bool = False) -> None:
        """An observable effect may depend on these nodes. A `minor` effect is reported only if there is no other."""
        self.flow(sources, ("sink", minor, label))

    def type_of(self, cls: Owner, name: str) -> type | None:
        """The builtin type of all values of a field, or None if there is no such type."""
        return None if (cls, name) in self.untyped else annotated(cls, name)

    def typed(self, cls: Owner, name: str, kind: type | None) -> None:
        """A field gets a value of this type (None: unknown)."""
        self.assigned.add((cls, name))
        if self.type_of(cls, name) is not kind:
            self.mistyped.add((cls, name))

    def shared_nodes(self, name: str, owners: frozenset[type[Shared]] | None) -> frozenset[Node]:
        """The fields of shared objects that an attribute may be: of objects of these classes, or of some value."""
        return frozenset(
            ("field", cls, field)
            for cls, field in self.shared_fields
            if field == name and (owners is None or cls in owners)
        )

    def shared_type(self, name: str, owners: frozenset[type[Shared]] | None) -> type | None:
        """The builtin type of an attribute of such objects, or of some value, if only shared objects have it."""
        shared = self.shared_nodes(name, owners)
        if owners is None and (len(shared) < len(self.classes.attribute(name)) or name in _ATTRIBUTES):
            return None
        found = {self.type_of(cls, name) for _, cls, name in shared}
        return found.pop() if len(found) == 1 else None

    def label(self, node: Node) -> str:
        """The text for a node."""
        if node[0] == "field":
            return f"{node[1].__name__}.{node[2]}"
        if node[0] == "which":
            return self.label(node[2])
        if node[0] == "var":
            return f"{self.lowering.bodies[node[2][0]].names[node[3]]} in {self.name(node[2][0])}"
        return str(node[-1])

    def function(self, number: int) -> Function:
        """A function of the program."""
        found, reason = self.lowering.functions[number], self.lowering.reasons.get(number)
        if self.lowering.definition(self.lowering.bodies[number].function) is None:
            raise EscapeError(f"the source of {self.name(number)} is not available")
        if found is None or reason is not None:
            raise EscapeError(f"{self.name(number)}: the analysis does not support {reason}")
        return found

    def name(self, number: int) -> str:
        """The name of a function of the program."""
        return self.lowering.bodies[number].function.__qualname__.replace("<locals>.", "")

    def kinds(self, number: int) -> list[Kind | None]:
        """What is known about the parameters of a function."""
        return [kind for _, kind in self.lowering.bodies[number].supplied if exists(kind)]


class Flow:
    """The data flow of one call of a handler or guard of a class, with the functions that it calls."""

    def __init__(self, graph: Graph, cls: type[Process], message: type[Message] | None, many: bool) -> None:
        self.graph, self.cls = graph, cls
        self.message, self.many = message, many
        """The type of the delivered message, and whether a tuple of messages is delivered."""
        graph.flows += 1
        self.number = graph.flows
        self.sent: list[type[Message] | None] = []
        """Message classes that may be sent; None is an unknown class."""
        self._parents: dict[Node, Node] = {}
        self._changes: list[tuple[frozenset[Node], frozenset[Node], str]] = []
        self._references: list[tuple[frozenset[Node], str]] = []
        self._loops: list[tuple[Loop, list[frozenset[Node]]]] = []
        self._calls = 0
        self._written: set[Node] = set()
        self._walked: set[Any] = set()
        self._active: list[Any] = []

    def call(
        self,
        number: int,
        arguments: list[Value],
        context: frozenset[Node],
        *,
        root: bool = False,
        strict: bool = False,
        deferred: bool = False,
    ) -> Value:
        """Follow a call of a function of the program."""
        from plait.check.source.statements import Body

        self._calls += 1
        name = self.graph.name(number)
        self.graph.function(number)
        key = (number, strict, deferred)
        entry: Node = ("entry", self.number, key, f"a call of {name}")
        result: Node = ("result", self.number, key, f"the result of {name}")
        self.graph.flow(context, entry)
        for slot, given in enumerate(arguments):
            self.store(("var", self.number, key, slot), given, frozenset())
        if key in self._active:
            self.graph.sink([entry, *union(arguments).deps], f"{name} calls itself and may run forever")
        elif key not in self._walked:
            self._walked.add(key)
            self._active.append(key)
            try:
                Body(self, key, entry, result, root).run()
            finally:
                self._active.pop()
        return self.read(result)

    def read(self, node: Node) -> Value:
        """The value of a variable or field, or the result of a function."""
        own = frozenset({node})
        return Value(own, own, frozenset({("which", self.number, node)}))

    def store(self, target: Node, value: Value, context: frozenset[Node]) -> None:
        """A variable or field gets a value."""
        self.graph.flow(value.deps | context, target)
        self.graph.flow(value.which | context, ("which", self.number, target))
        if target[0] == "field":
            self._written.add(target)
        for other in value.alias:
            self.join(target, other)

    def change(self, alias: frozenset[Node], sources: frozenset[Node], place: str) -> None:
        """A value is changed in place. Values that share parts with it change too: `finish` finds them."""
        self._changes.append((alias, sources, place))

    def refer(self, alias: frozenset[Node], place: str) -> None:
        """A value is used as a reference to a shared object of the state."""
        self._references.append((alias, place))

    def loop(self, items: Value, is_list: bool, place: str) -> Loop:
        """A loop over these items begins. `end` takes the result."""
        return Loop(items, is_list, place, len(self._changes), self._calls)

    def end(self, loop: Loop) -> None:
        """A loop ends. It may raise or run forever if its body changes what it iterates over."""
        # A function is followed once. Its changes may have been recorded before this loop.
        inside = self._changes[loop.start if self._calls == loop.calls else 0 :]
        self._loops.append((loop, [alias for alias, _, _ in inside]))

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
        for alias, place in self._references:
            if any(GLOBAL in members.get(self._find(node), [node]) for node in alias):
                raise EscapeError(f"{place} uses an object outside the state")
        for loop, aliases in self._loops:
            touched: frozenset[Node] = frozenset().union(*aliases)
            if loop.is_list:  # it never raises, and runs forever only if it adds to itself
                hit = touched & loop.items.alias
            else:
                hit = frozenset(map(self._find, touched)) & frozenset(map(self._find, loop.items.alias))
            if hit:
                what = f"the loop in {loop.place} changes what it iterates over, and may raise"
                self.graph.sink(loop.items.deps, what, minor=True)
        return self._written


_TYPES = (*purity.BUILTIN, range, slice, Pid, Clock, Fraction, Decimal, collections.deque, Message)
_ATTRIBUTES = {n for t in _TYPES for n in dir(t) if not callable(inspect.getattr_static(t, n))}
"""Attributes of other values than records and shared objects. Their methods need no care: as values, they have no use."""


def shared_classes(system: System) -> tuple[type[Shared], ...]:
    """The classes of shared objects."""
    return tuple(dict.fromkeys(map(type, system.shared)))


def annotated(cls: type, name: str) -> type | None:
    """The builtin type in the annotation of a field. A bool counts as an int."""
    owner = next((c for c in cls.__mro__ if name in c.__dict__.get("__annotations__", {})), None)
    if owner is None:
        return None
    found = purity.is_builtin_type(owner.__annotations__[name], owner.__module__)
    return int if found is bool else found


def is_process(kind: Kind | None) -> bool:
    """Whether a parameter is the process itself."""
    return isinstance(kind, Instance) and issubclass(kind.cls, Process)
