"""What an expression may depend on (a part of `plait.check.source.dataflow`)."""

from __future__ import annotations

import abc
import ast
import collections
import dataclasses
import types
from typing import Any

from plait.check.source import purity
from plait.check.source.dataflow import GLOBAL, EscapeError, Flow, Node, Value, parameters_of, union
from plait.check.source.definition import UNKNOWN, Definition, bindings, is_constant, static_value, value_of
from plait.model.process import Process


class Expressions(abc.ABC):
    """Evaluates the expressions of one function."""

    def __init__(
        self, flow: Flow, function: types.FunctionType, node: Definition, key: Any, process: str | None
    ) -> None:
        self.flow, self.function, self.node, self.key, self.process = flow, function, node, key, process
        self.strict, self.deferred = int(key[1]), int(key[2])
        """Nesting of try blocks, where an exception is a branch; nesting of lambdas and generators, which run later."""
        self.name = function.__qualname__.replace("<locals>.", "")
        self.local = set(bindings(node))
        self.bound: set[str] = {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
        """Variables that certainly have a value."""
        self.context: list[Node] = []
        """The tests that decide whether the run reaches this place."""
        self.message: tuple[str, bool] | None = None
        """The parameter for the delivered message, and whether it is a tuple of messages."""
        self._assigned: dict[str, list[ast.expr | None]] = {}
        for inner in ast.walk(node):
            if isinstance(inner, ast.Assign | ast.AugAssign | ast.AnnAssign):
                for target in inner.targets if isinstance(inner, ast.Assign) else [inner.target]:
                    if isinstance(target, ast.Name):
                        self._assigned.setdefault(target.id, []).append(inner.value)
        self._eager: set[ast.expr] = set()
        """Generators that run at once."""
        self._bindings = collections.Counter(bindings(node))
        """The number of places that bind a name."""

    # -- places, tests, sinks --------------------------------------------------------------------------------------

    def place(self, node: ast.AST) -> str:
        return f"{self.name} (line {getattr(node, 'lineno', '?')})"

    def here(self) -> frozenset[Node]:
        return frozenset(self.context)

    def test(self, deps: frozenset[Node], node: ast.AST) -> Node:
        """A branch that depends on these nodes."""
        made = ("test", self.flow.number, self.key, getattr(node, "col_offset", 0), f"a test in {self.place(node)}")
        self.flow.graph.flow(deps, made)
        return made

    def sink(self, deps: frozenset[Node], what: str, node: ast.AST) -> None:
        minor = what.endswith(("may raise", "block", "value", "forever"))
        self.flow.graph.sink(deps | self.here(), f"{what} in {self.place(node)}", minor=minor)

    def change(self, alias: frozenset[Node], sources: frozenset[Node], node: ast.AST) -> None:
        if self.deferred:
            raise EscapeError(f"{self.place(node)} changes a value in a lambda or a generator")
        self.flow.change(alias, sources | self.here(), self.place(node))

    def variable(self, name: str) -> Node:
        return ("var", self.flow.number, self.key, name)

    def not_understood(self, node: ast.AST, what: str) -> EscapeError:
        return EscapeError(f"{self.place(node)}: {what}")

    # -- what is known about values -----------------------------------------------------------------------------------

    def is_self(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id == self.process

    def own_field(self, node: ast.expr) -> str | None:
        """The name of the field, if the expression is a field of the process itself."""
        if isinstance(node, ast.Attribute) and self.is_self(node.value) and node.attr in self.flow.cls.__plait_fields__:
            return node.attr
        return None

    def builtin(self, node: ast.expr, seen: frozenset[str] = frozenset()) -> type | None:
        """The builtin type of a value, if it is known; object if it is one of several."""
        field = self.own_field(node)
        if field is not None:
            return self._field_type(field)
        if isinstance(node, ast.Constant):
            return type(node.value) if node.value is not None and node.value is not ... else None
        shapes: dict[type, type] = {
            ast.List: list,
            ast.ListComp: list,
            ast.Tuple: tuple,
            ast.Set: set,
            ast.SetComp: set,
            ast.Dict: dict,
        }
        shapes |= {ast.DictComp: dict, ast.Compare: bool, ast.JoinedStr: str}
        if type(node) in shapes:
            return shapes[type(node)]
        if isinstance(node, ast.NamedExpr):
            return self.builtin(node.value, seen)
        if isinstance(node, ast.BinOp):
            known = self.builtin(node.left, seen) and self.builtin(node.right, seen)
            return object if known else None
        if isinstance(node, ast.Call):
            callee = static_value(self.function, node.func, self.local)
            if callee in (len, sum, abs, int):
                return int
            return callee if isinstance(callee, type) and callee in purity.BUILTIN else None
        if isinstance(node, ast.Attribute) and self.is_message(node.value):
            return object  # the same in both runs
        if isinstance(node, ast.Name) and node.id in self.local and node.id not in seen:
            values = self._assigned.get(node.id, [])
            if len(values) != self._bindings[node.id]:
                return None  # it is also a parameter, or bound in another way
            found = {self.builtin(v, seen | {node.id}) if v is not None else None for v in values}
            return None if None in found or not found else found.pop() if len(found) == 1 else object
        return None

    def _field_type(self, field: str) -> type | None:
        """The type in the annotation. A default of another type (mostly None) shows that it is not strict."""
        owner = next(c for c in self.flow.cls.__mro__ if field in c.__dict__.get("__annotations__", {}))
        found = purity.is_builtin_type(owner.__annotations__[field], owner.__module__)
        declared = next(f for f in dataclasses.fields(self.flow.cls) if f.name == field)  # type: ignore[arg-type]
        if found is None or declared.default is dataclasses.MISSING:
            return found
        return found if isinstance(declared.default, (int, float) if found is float else found) else None

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

    # -- expressions -----------------------------------------------------------------------------------------------

    def expr(self, node: ast.expr) -> Value:
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise self.not_understood(node, f"the analysis does not support {type(node).__name__}")
        value: Value = method(node)
        if self.strict:
            self.sink(value.deps, "a try or with block", node)
        return value

    def _constant(self, node: ast.Constant) -> Value:
        return Value()

    def _name(self, node: ast.Name) -> Value:
        if node.id == self.process:
            raise self.not_understood(node, f"{node.id} is used as a value")
        if node.id in self.local:
            own = frozenset({self.variable(node.id)})
            if node.id not in self.bound:
                self.sink(own, f"{node.id} may have no value", node)
            return Value(own, own)
        return self._outside(value_of(self.function, node.id), node)

    def _outside(self, value: Any, node: ast.expr) -> Value:
        """A name or attribute that is not part of the state."""
        if value is UNKNOWN:
            self.sink(frozenset(), "an unknown name", node)
        elif not is_constant(value) and not isinstance(value, staticmethod | classmethod):
            return Value(alias=frozenset({GLOBAL}))
        return Value()

    def _attribute(self, node: ast.Attribute) -> Value:
        if self.is_self(node.value):
            return self._own(node)
        found = static_value(self.function, node, self.local)
        if found is not UNKNOWN:
            return self._outside(found, node)
        base = self.expr(node.value)
        sound = self.is_message(node.value) and purity.is_message_field(self.flow.message, node.attr)
        if not sound and not (node.attr in ("role", "index") and self._is_pid(node.value)):
            self.sink(base.deps, f".{node.attr} may raise", node)
        return base

    def _is_pid(self, node: ast.expr) -> bool:
        if not isinstance(node, ast.Attribute):
            return False
        own = self.is_self(node.value) and node.attr == "id"
        return own or (self.is_message(node.value) and node.attr == "sender")

    def _own(self, node: ast.Attribute) -> Value:
        name = node.attr
        if name in self.flow.cls.__plait_fields__:
            field = frozenset({("field", self.flow.cls, name)})
            return Value(field, field)
        found = self.flow.attribute(name)
        if found is Process.__dict__["id"]:
            return Value()
        if isinstance(found, property) and isinstance(found.fget, types.FunctionType):
            return self.follow(found.fget, True, [], {}, node)
        if found is None or name.startswith("__") or not is_constant(found) or isinstance(found, types.FunctionType):
            raise self.not_understood(node, f"self.{name} is not a field")
        return Value()

    def _subscript(self, node: ast.Subscript) -> Value:
        base, index = self.expr(node.value), self.expr(node.slice)
        sliced = isinstance(node.slice, ast.Slice) and self.builtin(node.value) in (list, tuple, str, bytes, object)
        parts = (node.slice.lower, node.slice.upper, node.slice.step) if isinstance(node.slice, ast.Slice) else ()
        if not (sliced and all(p is None or _is_number(p) for p in parts)) and not self.is_message(node):
            self.sink(base.deps | index.deps, "a subscript may raise", node)
        return Value(base.deps | index.deps, base.alias)

    def _slice(self, node: ast.Slice) -> Value:
        return union(self.expr(p) for p in (node.lower, node.upper, node.step) if p is not None)

    def _binop(self, node: ast.BinOp) -> Value:
        value = self.expr(node.left) | self.expr(node.right)
        if not self.safe_operation(node.op, node.left, node.right):
            self.sink(value.deps, "an operator may raise", node)
        return value

    def safe_operation(self, op: ast.operator, left: ast.expr, right: ast.expr) -> bool:
        """Whether an operator never raises on values of these types."""
        types_ = self.builtin(left), self.builtin(right)
        if None in types_:
            return False
        if isinstance(op, ast.Mod | ast.FloorDiv):
            return types_[0] is not str and isinstance(right, ast.Constant) and bool(right.value) and _is_number(right)
        return isinstance(op, purity.SAFE_BINARY)

    def _unaryop(self, node: ast.UnaryOp) -> Value:
        value = self.expr(node.operand)
        if isinstance(node.op, ast.Not):
            return Value(value.deps)
        if self.builtin(node.operand) is None:
            self.sink(value.deps, "an operator may raise", node)
        return value

    def _boolop(self, node: ast.BoolOp) -> Value:
        value, depth = Value(), len(self.context)
        for part in node.values:
            value = value | self.expr(part)
            self.context.append(self.test(value.deps, node))
        del self.context[depth:]
        return value

    def _compare(self, node: ast.Compare) -> Value:
        operands, depth = [node.left, *node.comparators], len(self.context)
        deps = self.expr(node.left).deps
        for operand in node.comparators:
            deps |= self.expr(operand).deps
            self.context.append(self.test(deps, node))  # a chain ends at the first false comparison
        del self.context[depth:]
        ordered = any(isinstance(op, purity.ORDERINGS) for op in node.ops)
        if ordered and any(self.builtin(o) is None for o in operands):
            self.sink(deps, "an ordering may raise", node)
        return Value(deps)

    def _ifexp(self, node: ast.IfExp) -> Value:
        tested = self.expr(node.test)
        self.context.append(self.test(tested.deps, node.test))
        value = self.expr(node.body) | self.expr(node.orelse)
        self.context.pop()
        return Value(value.deps | tested.deps, value.alias)

    def _namedexpr(self, node: ast.NamedExpr) -> Value:
        value = self.expr(node.value)
        self.flow.store(self.variable(node.target.id), value, self.here())
        # The tests in the context decide whether an operand of `and` is evaluated.
        if not self.context or self.context[-1][0] != "test":
            self.bound.add(node.target.id)
        return value

    def _joinedstr(self, node: ast.JoinedStr) -> Value:
        return Value(union(self.expr(v) for v in node.values).deps)

    def _formattedvalue(self, node: ast.FormattedValue) -> Value:
        value = self.expr(node.value)
        if node.format_spec is not None:
            value = value | self.expr(node.format_spec)
            self.sink(value.deps, "a format may raise", node)
        return Value(value.deps)

    def _starred(self, node: ast.Starred) -> Value:
        return self.expr(node.value)

    def _elements(self, node: ast.Tuple | ast.List | ast.Set) -> Value:
        return union(self.expr(e) for e in node.elts)

    _tuple = _list = _set = _elements

    def _dict(self, node: ast.Dict) -> Value:
        return union(self.expr(e) for e in (*node.keys, *node.values) if e is not None)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
        depth, bound, value = len(self.context), set(self.bound), Value()
        lazy = isinstance(node, ast.GeneratorExp) and node not in self._eager
        for part in node.generators:
            if part.is_async:
                raise self.not_understood(node, "the analysis does not support async")
            items = self.expr(part.iter)
            self.deferred += lazy
            self.each(part.target, items, part.iter)
            self.context.append(self.test(items.deps, part.iter))
            value = Value(value.deps | items.deps)
            for condition in part.ifs:
                deps = self.expr(condition).deps
                self.context.append(self.test(deps, condition))
                value = Value(value.deps | deps)
            self.deferred -= lazy
        self.deferred += lazy
        for _ in range(2):  # any() and all() may stop early
            for element in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
                value = value | self.expr(element)
            self.context.append(self.test(value.deps, node))
        self.deferred -= lazy
        del self.context[depth:]
        self.bound = bound
        return value

    _listcomp = _setcomp = _generatorexp = _dictcomp = _comprehension

    def _lambda(self, node: ast.Lambda, given: Value | None = None) -> Value:
        """A lambda that is an argument of a call is called with the other arguments."""
        if given is None or node.args.defaults or node.args.kw_defaults:
            raise self.not_understood(node, "a function is stored")
        bound = set(self.bound)
        for name in parameters_of(node):
            if name == self.process:
                raise self.not_understood(node, f"a parameter of a lambda has the name {name}")
            self.flow.store(self.variable(name), given, self.here())
            self.bound.add(name)
        self.deferred += 1
        value = self.expr(node.body)
        self.deferred -= 1
        self.bound = bound
        return value | given

    def each(self, target: ast.expr, items: Value, iterated: ast.expr) -> None:
        """The variable of a loop. Items of a dictionary and pairs of enumerate() can always be unpacked."""
        pairs = False
        if isinstance(iterated, ast.Call):
            func = iterated.func
            pairs = static_value(self.function, func, self.local) is enumerate
            if isinstance(func, ast.Attribute) and func.attr == "items":
                pairs = self.builtin(func.value) in (dict, collections.Counter)
        if pairs and isinstance(target, ast.Tuple) and len(target.elts) == 2:
            for one in target.elts:
                self.assign(one, items, None)
        else:
            self.assign(target, items, None)

    @abc.abstractmethod
    def assign(self, target: ast.expr, value: Value, source: ast.expr | None) -> None:
        """Store a value. `source` is the expression of the value, if it is known."""

    def follow(
        self,
        function: types.FunctionType,
        bound: bool,
        values: list[Value],
        keywords: dict[str | None, Value],
        node: ast.AST,
    ) -> Value:
        """A call of a function with source."""
        if self.deferred and bound:
            raise self.not_understood(node, f"{function.__name__} is called in a lambda or a generator")
        modes = {"strict": bool(self.strict), "deferred": bool(self.deferred)}
        return self.flow.call(function, bound, values, keywords, self.here(), **modes)


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and isinstance(node.value, int)
