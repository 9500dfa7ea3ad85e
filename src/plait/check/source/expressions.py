"""What an expression may depend on (a part of `plait.check.source.dataflow`)."""

from __future__ import annotations

import abc
from collections.abc import Iterable
from typing import Any

from plait.check.source import purity
from plait.check.source.dataflow import GLOBAL, EscapeError, Flow, Node, Value, union
from plait.check.source.inference import TypeInference
from plait.ir import nodes
from plait.ir.definition import is_constant, is_data
from plait.ir.nodes import Expression, Target


class Expressions(TypeInference, abc.ABC):
    """Evaluates the expressions of one function."""

    def __init__(self, flow: Flow, key: Any) -> None:
        super().__init__(flow, key)
        self.strict, self.deferred = int(key[1]), int(key[2])
        """Nesting of try blocks, where an exception is a branch; nesting of lambdas and generators, which run later."""
        self.name = flow.graph.name(key[0])
        self.line = self.tree.line
        self.bound = set(range(self.tree.parameters))
        """Variables that certainly have a value."""
        self.bound_if_true: dict[int, set[int]] = {}
        """The same after an `and` that was true, by the identity of the node."""
        self.context: list[Node] = []
        """The tests that decide whether the run reaches this place."""
        self._eager: set[int] = set()
        """Generators that run at once, by their identity."""

    # -- places, tests, sinks --------------------------------------------------------------------------------------

    def line_of(self, node: object) -> int:
        return self.lowering.lines.get(id(node), (self.line,))[0]

    def place(self, node: object) -> str:
        return f"{self.name} (line {self.line_of(node)})"

    def here(self) -> frozenset[Node]:
        return frozenset(self.context)

    def test(self, deps: frozenset[Node], node: object) -> Node:
        """A branch that depends on these nodes."""
        made = ("test", self.flow.number, self.key, id(node), f"a test in {self.place(node)}")
        self.flow.graph.flow(deps, made)
        return made

    def sink(self, deps: frozenset[Node], what: str, node: object) -> None:
        if what.endswith("may raise") and id(node) in self.lowering.certain:
            return
        minor = what.endswith(("may raise", "block", "value", "forever"))
        self.flow.graph.sink(deps | self.here(), f"{what} in {self.place(node)}", minor=minor)

    def change(self, changed: Value, sources: frozenset[Node], node: object) -> None:
        """A value is changed in place."""
        if self.deferred:
            raise EscapeError(f"{self.place(node)} changes a value in a lambda or a generator")
        self.flow.change(changed.alias, changed.which | sources | self.here(), self.place(node))

    def variable(self, slot: int) -> Node:
        return ("var", self.flow.number, self.key, slot)

    def not_understood(self, node: object, what: str) -> EscapeError:
        return EscapeError(f"{self.place(node)}: {what}")

    # -- expressions -----------------------------------------------------------------------------------------------

    def expr(self, node: Expression, *, consumed: bool = False) -> Value:
        """The value of an expression. `consumed`: an iterator is welcome, because it is used up at once.

        No variable, field or container ever holds an iterator: using it would change it.
        """
        if not consumed and self.is_lazy(node):
            raise self.not_understood(node, "an iterator is stored")
        self.line = self.line_of(node)
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise self.not_understood(node, f"the analysis does not support {type(node).__name__}")
        value: Value = method(node)
        if self.strict:
            self.sink(value.deps, "a try or with block", node)
        return value

    def is_lazy(self, node: Expression) -> bool:
        """Whether the value is an iterator, which runs code while it is used."""
        return isinstance(node, nodes.Generator) or (isinstance(node, nodes.CallBuiltin) and node.name in purity.LAZY)

    def iterated(self, node: Expression) -> Value:
        """The items of an expression that is iterated over at once."""
        value = self.expr(node, consumed=True)
        if not self.iterable(node):
            self.sink(value.deps, "iterating may raise", node)
        return value.part()

    def again(self, value: Value, parts: list[Expression]) -> None:
        """Evaluate iterators a second time, as what runs only if the values so far do not stop them: any(), zip(), `in`."""
        self.context.append(self.test(value.deps, parts[0] if parts else None))
        for node in filter(self.is_lazy, parts):
            self.expr(node, consumed=True)
        self.context.pop()

    def hashed(self, parts: Iterable[Expression], place: object) -> Value:
        """Values become members of a set, or keys."""
        found = Value()
        for node in parts:
            value = self.expr(node)
            if isinstance(node, nodes.Starred) or not self.hashable(node):
                self.sink(value.deps, "hashing may raise", place)
            found = found | value
        return found

    def _constant(self, node: nodes.Constant) -> Value:
        return Value() if is_constant(self.value_of(node)) else Value(alias=frozenset({GLOBAL}))

    def _selfid(self, node: nodes.SelfId) -> Value:
        return Value()

    def _local(self, node: nodes.Local) -> Value:
        if self.is_self(node):
            raise self.not_understood(node, "the process is used as a value")
        value = self.flow.read(self.variable(node.slot))
        if node.slot not in self.bound:
            name = self.lowering.bodies[self.key[0]].names[node.slot]
            self.sink(value.deps, f"{name} may have no value", node)
        return value

    def _attribute(self, node: nodes.Attribute) -> Value:
        if self.is_self(node.value):
            return self.flow.read(("field", self.flow.cls, node.name))
        base = self.expr(node.value).part()
        if self.is_message(node.value) and purity.is_message_field(self.flow.message, node.name):
            return base
        if node.name in ("role", "index") and self.is_pid(node.value):
            return base
        if self.is_clock(node.value):
            return Value(base.deps)
        owners = self.owners(node.value, node.name)
        if owners is None:
            self.sink(base.deps, f".{node.name} may raise", node)
        candidates = self.flow.graph.classes.attribute(node.name, owners)
        if not candidates and node.name not in ("role", "index", "real", "imag", "sender"):
            raise self.not_understood(node, f"no record has a field {node.name}")
        shared = self.flow.graph.shared_nodes(node.name, owners)
        # A reference is no part of what it refers to: only the field of the shared object may be changed.
        which = frozenset(("which", self.flow.number, one) for one in shared)
        result = Value(base.deps | shared, shared, base.deps | which)
        if not shared or len(shared) < len(candidates):
            result = result | base
        else:
            self.flow.refer(base.alias, self.place(node))
        for cls, found in candidates:
            if isinstance(found, property):
                result = result | self.follow(self.lowering.classes.properties.get((cls, node.name)), [base], node)
            elif not isinstance(found, str) and not (is_constant(found) and is_data(found)):
                raise self.not_understood(node, f".{node.name} is no data")
        return result

    def is_clock(self, node: Expression) -> bool:
        """Whether this is a clock of the process. Only comparisons and operations of clocks read and set its parts."""
        own = isinstance(node, nodes.Attribute) and self.is_self(node.value)
        return own and node.name in self.flow.cls.__plait_clocks__  # type: ignore[union-attr]

    def _subscript(self, node: nodes.Subscript) -> Value:
        base, index = self.expr(node.value), self.expr(node.index)
        parts = (node.index.lower, node.index.upper, node.index.step) if isinstance(node.index, nodes.Slice) else ()
        sliced = parts and self.builtin(node.value) in purity.SEQUENCES
        if not (sliced and all(p is None or self._number(p) is not None for p in parts)) and not self.is_message(node):
            self.sink(base.deps | index.deps, "a subscript may raise", node)
        return Value(base.deps | index.deps, base.alias)

    def _slice(self, node: nodes.Slice) -> Value:
        return union(self.expr(p) for p in (node.lower, node.upper, node.step) if p is not None)

    def _number(self, node: Expression) -> int | None:
        """The value of an integer constant."""
        value = self.value_of(node) if isinstance(node, nodes.Constant) else None
        return value if isinstance(value, int) else None

    def _binaryoperation(self, node: nodes.BinaryOperation) -> Value:
        value = self.expr(node.left) | self.expr(node.right)
        self.operated(node, value)
        return value

    def operated(self, node: nodes.BinaryOperation, value: Value) -> None:
        """An operator is applied. It may raise on values of some types."""
        kinds = self.builtin(node.left), self.builtin(node.right)
        if node.operator in ("%", "//"):
            safe = kinds[0] in (int, float) and bool(self._number(node.right))
        else:
            safe = purity.result_of(node.operator, *kinds) is not None
        if not safe:
            self.sink(value.deps, "an operator may raise", node)

    def _unaryoperation(self, node: nodes.UnaryOperation) -> Value:
        value = self.expr(node.operand)
        if node.operator == "not":
            return Value(value.deps)
        if self.builtin(node.operand) is not int:
            self.sink(value.deps, "an operator may raise", node)
        return value

    def _and(self, node: nodes.And | nodes.Or) -> Value:
        value, depth, bound = Value(), len(self.context), None
        for part in node.operands:
            value = value | self.expr(part)
            self.context.append(self.test(value.deps, node))
            bound = set(self.bound) if bound is None else bound
        del self.context[depth:]
        if isinstance(node, nodes.And):
            self.bound_if_true[id(node)] = self.bound
        self.bound = bound or set()
        return value

    _or = _and

    def _compare(self, node: nodes.Compare) -> Value:
        depth, deps, left, bound = len(self.context), self.expr(node.left).deps, node.left, None
        for op, right in zip(node.operators, node.rights, strict=True):
            deps |= self.expr(right, consumed=op.endswith("in")).deps
            self.again(Value(deps), [right])
            bound = set(self.bound) if bound is None else bound
            if op in purity.ORDERINGS and not purity.may_be_ordered(self.builtin(left), self.builtin(right)):
                self.sink(deps, "an ordering may raise", node)
            elif op.endswith("in") and not self._may_contain(right, left):
                self.sink(deps, "a test of membership may raise", node)
            self.context.append(self.test(deps, node))  # a chain ends at the first false comparison
            left = right
        del self.context[depth:]
        self.bound = bound or set()
        return Value(deps)

    def _may_contain(self, container: Expression, item: Expression) -> bool:
        """Whether `in` never raises."""
        kind = self.builtin(container)
        if kind in (*purity.SETS, dict):
            return self.hashable(item)
        return kind in (list, tuple) or (kind is str and self.builtin(item) is str) or self.is_lazy(container)

    def _conditional(self, node: nodes.Conditional) -> Value:
        tested = self.expr(node.test)
        self.context.append(self.test(tested.deps, node.test))
        before = set(self.bound)
        self.bound = before | self.bound_if_true.get(id(node.test), set())
        body = self.expr(node.body)
        first, self.bound = self.bound, before
        orelse = self.expr(node.orelse)
        self.bound = self.bound & first
        self.context.pop()
        which = tested.deps | body.which | orelse.which
        return Value(tested.deps | body.deps | orelse.deps, body.alias | orelse.alias, which)

    def _assigned(self, node: nodes.Assigned) -> Value:
        if self.deferred:
            raise self.not_understood(node, "a variable is set in a lambda or a generator")
        value = self.expr(node.value)
        self.assign(nodes.LocalTarget(node.slot), value, node.value)
        return value

    def _joinedstring(self, node: nodes.JoinedString) -> Value:
        return Value(union(self.expr(p) for p in node.parts).deps)

    def _formattedvalue(self, node: nodes.FormattedValue) -> Value:
        value = self.expr(node.value)
        if node.format is not None:
            value = value | self.expr(node.format)
            self.sink(value.deps, "a format may raise", node)
        return Value(value.deps)

    def _starred(self, node: nodes.Starred) -> Value:
        return self.iterated(node.value)

    def _tupledisplay(self, node: nodes.TupleDisplay | nodes.ListDisplay) -> Value:
        return union([self.expr(e) for e in node.items])

    _listdisplay = _tupledisplay

    def _setdisplay(self, node: nodes.SetDisplay) -> Value:
        return self.hashed(node.items, node)

    def _dictdisplay(self, node: nodes.DictDisplay) -> Value:
        value = self.hashed([k for k in node.keys if k is not None], node) | union(self.expr(e) for e in node.values)
        if any(k is None and self.builtin(v) is not dict for k, v in zip(node.keys, node.values, strict=True)):
            self.sink(value.deps, "unpacking may raise", node)
        return value

    def _comprehension(self, node: Any) -> Value:
        depth, bound, value, loops = len(self.context), set(self.bound), Value(), []
        lazy = isinstance(node, nodes.Generator) and id(node) not in self._eager
        for part in node.clauses:
            items = self.iterated(part.iterable)
            loops.append(self.flow.loop(items, self.is_list(part.iterable), self.place(part.iterable)))
            self.deferred += lazy
            self.each(part.target, items, part.iterable)
            self.context.append(self.test(items.deps, part))
            value = Value(value.deps | items.deps)
            for condition in part.conditions:
                deps = self.expr(condition).deps
                self.context.append(self.test(deps, condition))
                value = Value(value.deps | deps)
            self.deferred -= lazy
        self.deferred += lazy
        if isinstance(node, nodes.DictComprehension):
            value = value | self.hashed([node.key], node) | self.expr(node.value)
        elif isinstance(node, nodes.SetComprehension):
            value = value | self.hashed([node.element], node)
        else:
            value = value | self.expr(node.element)
        self.deferred -= lazy
        for loop in loops:
            self.flow.end(loop)
        del self.context[depth:]
        self.bound = bound
        return value

    _listcomprehension = _setcomprehension = _generator = _dictcomprehension = _comprehension

    def eager(self, callee: str, arguments: list[Expression]) -> None:
        """A callee may run a generator at once."""
        if callee in purity.EAGER:
            self._eager.update(id(a) for a in arguments[:1] if isinstance(a, nodes.Generator))

    def called(self, node: Expression, given: Value, count: int) -> Value:
        """A function that a builtin calls with so many of these values (`map`, `sorted`).

        It must be known, and change nothing.
        """
        self.deferred += 1
        try:
            match node:
                case nodes.Lambda(parameters, [], [nodes.Return(body)]) if body is not None:
                    if len(parameters) != count:
                        self.sink(given.deps, "calling a lambda may raise", node)
                    bound = set(self.bound)
                    for slot in parameters:
                        self.assign(nodes.LocalTarget(slot), given, None)
                    value = self.expr(body) | given
                    self.bound = bound
                    return value
                case nodes.FunctionValue(number, None):
                    return self.follow(number, [given] * self.flow.graph.function(number).parameters, node)
                case nodes.BuiltinValue(name) if name in purity.FRESH:
                    return Value(given.deps)
                case nodes.BuiltinValue(name) if name in purity.READING and name not in purity.CALLING:
                    self.sink(given.deps, f"{name} may raise", node)
                    return given
        finally:
            self.deferred -= 1
        raise self.not_understood(node, "a value is passed as a function")

    def each(self, target: Target, items: Value, iterated: Expression) -> None:
        """The variable of a loop. Items of a dictionary and pairs of enumerate() can always be unpacked."""
        match target, iterated:
            case nodes.TupleTarget([_, _] as targets), nodes.CallBuiltin("enumerate"):
                pairs = True
            case nodes.TupleTarget([_, _] as targets), nodes.CallMethod(value, "items"):
                pairs = self.builtin(value) is dict
            case _:
                pairs = False
        for one in targets if pairs else [target]:
            self.assign(one, items, None)

    @abc.abstractmethod
    def assign(self, target: Target, value: Value, source: Expression | None) -> None:
        """Store a value. `source` is the expression of the value, if it is known."""

    def follow(self, number: int | None, values: list[Value], node: object) -> Value:
        """A call of a function of the program."""
        if number is None:
            raise self.not_understood(node, "a method is called that is not known")
        modes = {"strict": bool(self.strict), "deferred": bool(self.deferred)}
        return self.flow.call(number, values, self.here(), **modes)
