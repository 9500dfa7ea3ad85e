"""What an expression may depend on (a part of `plait.check.source.dataflow`)."""

from __future__ import annotations

import abc
import ast
import inspect
import types
from collections.abc import Callable, Iterable
from typing import Any

from plait.check.source import purity
from plait.check.source.dataflow import GLOBAL, EscapeError, Flow, Node, Value, parameters_of, union
from plait.check.source.inference import TypeInference
from plait.ir.definition import UNKNOWN, Definition, is_constant, is_data, static_value, value_of
from plait.model.process import Process


class Expressions(TypeInference, abc.ABC):
    """Evaluates the expressions of one function."""

    def __init__(
        self, flow: Flow, function: types.FunctionType, node: Definition, key: Any, process: str | None
    ) -> None:
        super().__init__(flow, function, node, key, process)
        self.strict, self.deferred = int(key[1]), int(key[2])
        """Nesting of try blocks, where an exception is a branch; nesting of lambdas and generators, which run later."""
        self.name = function.__qualname__.replace("<locals>.", "")
        self.bound: set[str] = {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
        """Variables that certainly have a value."""
        self.context: list[Node] = []
        """The tests that decide whether the run reaches this place."""
        self._eager: set[ast.expr] = set()
        """Generators that run at once."""

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

    def change(self, changed: Value, sources: frozenset[Node], node: ast.AST) -> None:
        """A value is changed in place."""
        if self.deferred:
            raise EscapeError(f"{self.place(node)} changes a value in a lambda or a generator")
        self.flow.change(changed.alias, changed.which | sources | self.here(), self.place(node))

    def variable(self, name: str) -> Node:
        return ("var", self.flow.number, self.key, name)

    def not_understood(self, node: ast.AST, what: str) -> EscapeError:
        return EscapeError(f"{self.place(node)}: {what}")

    # -- expressions -----------------------------------------------------------------------------------------------

    def expr(self, node: ast.expr, *, consumed: bool = False) -> Value:
        """The value of an expression. `consumed`: an iterator is welcome, because it is used up at once.

        No variable, field or container ever holds an iterator: using it would change it.
        """
        if not consumed and self.is_lazy(node):
            raise self.not_understood(node, "an iterator is stored")
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise self.not_understood(node, f"the analysis does not support {type(node).__name__}")
        value: Value = method(node)
        if self.strict:
            self.sink(value.deps, "a try or with block", node)
        return value

    def is_lazy(self, node: ast.expr) -> bool:
        """Whether the value is an iterator, which runs code while it is used."""
        if isinstance(node, ast.Call):
            callee = static_value(self.function, node.func, self.local)
            return purity.is_hashable(callee) and callee in purity.LAZY
        if isinstance(node, ast.IfExp | ast.BoolOp):
            return any(map(self.is_lazy, node.values if isinstance(node, ast.BoolOp) else (node.body, node.orelse)))
        return isinstance(node, ast.GeneratorExp) or (isinstance(node, ast.NamedExpr) and self.is_lazy(node.value))

    def iterated(self, node: ast.expr) -> Value:
        """The items of an expression that is iterated over at once."""
        value = self.expr(node, consumed=True)
        if not self.iterable(node):
            self.sink(value.deps, "iterating may raise", node)
        return value.part()

    def again(self, value: Value, nodes: Iterable[ast.expr]) -> None:
        """Evaluate iterators a second time, as what runs only if the values so far do not stop them: any(), zip(), `in`."""
        self.context.append(self.test(value.deps, self.node))
        for node in filter(self.is_lazy, nodes):
            self.expr(node, consumed=True)
        self.context.pop()

    def hashed(self, nodes: Iterable[ast.expr], place: ast.AST) -> Value:
        """Values become members of a set, or keys."""
        found = Value()
        for node in nodes:
            value = self.expr(node)
            if not self.hashable(node.value if isinstance(node, ast.Starred) else node) or isinstance(
                node, ast.Starred
            ):
                self.sink(value.deps, "hashing may raise", place)
            found = found | value
        return found

    def _constant(self, node: ast.Constant) -> Value:
        return Value()

    def _name(self, node: ast.Name) -> Value:
        if node.id == self.process:
            raise self.not_understood(node, f"{node.id} is used as a value")
        if node.id in self.local:
            value = self.flow.read(self.variable(node.id))
            if node.id not in self.bound:
                self.sink(value.deps, f"{node.id} may have no value", node)
            return value
        return self._outside(value_of(self.function, node.id), node)

    def _outside(self, value: Any, node: ast.expr) -> Value:
        """A name or attribute that is not part of the state: a constant, a class or a table of constants."""
        if isinstance(value, type) or (is_constant(value) and is_data(value)):
            return Value()
        if not is_data(value):
            raise self.not_understood(node, f"{ast.unparse(node)} is no data")
        return Value(alias=frozenset({GLOBAL}))

    def _attribute(self, node: ast.Attribute) -> Value:
        if self.is_self(node.value):
            return self._own(node)
        found = static_value(self.function, node, self.local)
        if found is not UNKNOWN:
            return self._outside(found, node)
        base = self.expr(node.value).part()
        if self.is_message(node.value) and purity.is_message_field(self.flow.message, node.attr):
            return base
        if node.attr in ("role", "index") and self.is_pid(node.value):
            return base
        self.sink(base.deps, f".{node.attr} may raise", node)
        return self.member(base, node.attr, node)

    def member(self, base: Value, name: str, node: ast.AST) -> Value:
        """An attribute of some record: a field, a constant, or a property, which is followed."""
        candidates = self.flow.graph.classes.attribute(name)
        if not candidates and name not in ("role", "index", "real", "imag", "sender"):
            raise self.not_understood(node, f"no record has a field {name}")
        result = base.part()
        for found in candidates:
            if isinstance(found, property) and isinstance(found.fget, types.FunctionType):
                result = result | self.follow(found.fget, False, [base], {}, node)
            elif not isinstance(found, str) and not (is_constant(found) and is_data(found)):
                raise self.not_understood(node, f".{name} is no data")
        return result

    def _own(self, node: ast.Attribute) -> Value:
        name = node.attr
        if name in self.flow.cls.__plait_fields__:
            return self.flow.read(("field", self.flow.cls, name))
        found = self.flow.attribute(name)
        if found is Process.__dict__["id"]:
            return Value()
        if isinstance(found, property) and isinstance(found.fget, types.FunctionType):
            return self.follow(found.fget, True, [], {}, node)
        if found is None or name.startswith("__") or not (is_constant(found) and is_data(found)):
            raise self.not_understood(node, f"self.{name} is not a field")
        return Value()

    def _subscript(self, node: ast.Subscript) -> Value:
        if isinstance(static_value(self.function, node.value, self.local), type):
            raise self.not_understood(node, "a class is subscripted")
        base, index = self.expr(node.value), self.expr(node.slice)
        sliced = isinstance(node.slice, ast.Slice) and self.builtin(node.value) in purity.SEQUENCES
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
        if isinstance(op, ast.Mod | ast.FloorDiv):
            return types_[0] in (int, float) and _is_number(right) and self._is_true(right)
        return purity.result_of(op, *types_) is not None

    def _is_true(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Constant) and bool(node.value)

    def _unaryop(self, node: ast.UnaryOp) -> Value:
        value = self.expr(node.operand)
        if isinstance(node.op, ast.Not):
            return Value(value.deps)
        if self.builtin(node.operand) is not int:
            self.sink(value.deps, "an operator may raise", node)
        return value

    def _boolop(self, node: ast.BoolOp) -> Value:
        value, depth = Value(), len(self.context)
        for part in node.values:
            value = value | self.expr(part, consumed=True)
            self.context.append(self.test(value.deps, node))
        del self.context[depth:]
        return value

    def _compare(self, node: ast.Compare) -> Value:
        depth, deps, left = len(self.context), self.expr(node.left).deps, node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            deps |= self.expr(right, consumed=isinstance(op, ast.In | ast.NotIn)).deps
            self.again(Value(deps), [right])
            if isinstance(op, purity.ORDERINGS) and not purity.may_be_ordered(self.builtin(left), self.builtin(right)):
                self.sink(deps, "an ordering may raise", node)
            elif isinstance(op, ast.In | ast.NotIn) and not self._may_contain(right, left):
                self.sink(deps, "a test of membership may raise", node)
            self.context.append(self.test(deps, node))  # a chain ends at the first false comparison
            left = right
        del self.context[depth:]
        return Value(deps)

    def _may_contain(self, container: ast.expr, item: ast.expr) -> bool:
        """Whether `in` never raises."""
        kind = self.builtin(container)
        if kind in (*purity.SETS, dict):
            return self.hashable(item)
        return kind in (list, tuple) or (kind is str and self.builtin(item) is str) or self.is_lazy(container)

    def _ifexp(self, node: ast.IfExp) -> Value:
        tested = self.expr(node.test)
        self.context.append(self.test(tested.deps, node.test))
        body, orelse = self.expr(node.body, consumed=True), self.expr(node.orelse, consumed=True)
        self.context.pop()
        which = tested.deps | body.which | orelse.which
        return Value(tested.deps | body.deps | orelse.deps, body.alias | orelse.alias, which)

    def _namedexpr(self, node: ast.NamedExpr) -> Value:
        if self.deferred:
            raise self.not_understood(node, "a variable is set in a lambda or a generator")
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
        return self.iterated(node.value)

    def _tuple(self, node: ast.Tuple | ast.List) -> Value:
        return union(self.expr(e) for e in node.elts)

    _list = _tuple

    def _set(self, node: ast.Set) -> Value:
        return self.hashed(node.elts, node)

    def _dict(self, node: ast.Dict) -> Value:
        value = self.hashed([k for k in node.keys if k is not None], node) | union(self.expr(e) for e in node.values)
        if any(k is None and self.builtin(v) is not dict for k, v in zip(node.keys, node.values, strict=True)):
            self.sink(value.deps, "unpacking may raise", node)
        return value

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
        depth, bound, value, loops = len(self.context), set(self.bound), Value(), []
        lazy = isinstance(node, ast.GeneratorExp) and node not in self._eager
        for part in node.generators:
            if part.is_async:
                raise self.not_understood(node, "the analysis does not support async")
            items = self.iterated(part.iter)
            loops.append(self.flow.loop(items, self.is_list(part.iter), self.place(part.iter)))
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
        for element in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            value = value | self.expr(element)
        if isinstance(node, ast.SetComp | ast.DictComp):
            self.hashed([node.key if isinstance(node, ast.DictComp) else node.elt], node)
        self.deferred -= lazy
        for loop in loops:
            self.flow.end(loop)
        del self.context[depth:]
        self.bound = bound
        return value

    _listcomp = _setcomp = _generatorexp = _dictcomp = _comprehension

    def called(self, node: ast.expr, given: Value, count: int) -> Value:
        """A function that a builtin calls with so many of these values (`map`, `sorted`).

        It must be known, and change nothing.
        """
        if isinstance(node, ast.Constant) and node.value is None:
            return given
        if isinstance(node, ast.Lambda) and not node.args.defaults and not node.args.kw_defaults:
            if len(node.args.posonlyargs) + len(node.args.args) != count and node.args.vararg is None:
                self.sink(given.deps, "calling a lambda may raise", node)
            return self._called_lambda(node, given)
        callee = static_value(self.function, node, self.local)
        if isinstance(callee, staticmethod):
            callee = callee.__func__
        self.deferred += 1
        try:
            if isinstance(callee, types.FunctionType):
                if not accepts(callee, count, ()):
                    self.sink(given.deps, f"{callee.__name__}(…) may raise", node)
                return self.follow(callee, False, [], {None: given}, node)
        finally:
            self.deferred -= 1
        known = purity.is_hashable(callee) and callee not in purity.CALLING
        if known and callee in purity.FRESH:
            return Value(given.deps)
        if known and callee in purity.READING:
            self.sink(given.deps, f"{ast.unparse(node)} may raise", node)
            return given
        raise self.not_understood(node, f"{ast.unparse(node)} is passed as a function")

    def _called_lambda(self, node: ast.Lambda, given: Value) -> Value:
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
                pairs = self.builtin(func.value) is dict
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


def accepts(function: Callable[..., Any], count: int, keywords: Iterable[str]) -> bool:
    """Whether a function certainly accepts so many arguments, and arguments of these names.

    >>> accepts(lambda x, y=0: x, 1, ()), accepts(lambda x, y=0: x, 0, ["y"])
    (True, False)
    """
    try:
        inspect.signature(function).bind(*[None] * count, **dict.fromkeys(keywords))
    except (TypeError, ValueError):
        return False
    return True


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and isinstance(node.value, int)
