"""Expressions, except calls: the same tree, with names as slots, constants and functions."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from plait.ir import builtins, nodes
from plait.ir.clocks import Clocks
from plait.ir.definition import UNKNOWN, members
from plait.ir.frame import is_builtin, is_code, is_iterator, unwrapped
from plait.ir.nodes import Expression
from plait.ir.scope import VIEW, Bindings, Instance, LocalFunction, Scope
from plait.model.monitor import Monitor
from plait.model.process import Process
from plait.model.shared import Shared

BINARY: dict[type[ast.operator], Any] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
_UNARY: dict[type[ast.unaryop], Any] = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~", ast.Not: "not"}
_COMPARISONS: dict[type[ast.cmpop], Any] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}


class Expressions(Clocks):
    """Lowers the expressions of one function."""

    def expr(self, node: ast.expr) -> Expression:
        """The value of an expression."""
        found = self.any(node)
        kind = type(found)
        if kind is nodes.Generator:
            raise self.refused(node, "generator that is kept")
        if kind is nodes.Lambda or (kind is nodes.Local and found.slot in self.callables):  # type: ignore[union-attr]
            raise self.refused(node, "function that is kept")
        if is_iterator(found):
            raise self.refused(node, f"iterator that is kept ({found.name})")  # type: ignore[union-attr]
        return found

    def consumed(self, node: ast.expr) -> Expression:
        """The value of an expression that something iterates at once: it may be a generator or an iterator."""
        if self.chosen and node in self.chosen:
            return self.chosen[node]
        if type(node) is ast.Name:
            if node.id in self.generators:
                return self.any(self.generators.pop(node.id))
            if self.kind(node) is VIEW:
                return self.processes(node)
        if type(node) is ast.Name or type(node) is ast.Attribute:
            found = self.static(node)
            if found is not UNKNOWN and isinstance(found, type):
                return self._members(found, node)
        return self.any(node)

    def collected(self, node: ast.expr) -> Expression:
        """As `consumed`, where the tree has no place for a generator: its elements are collected first."""
        found = self.consumed(node)
        if type(found) is nodes.Generator or is_iterator(found):
            return nodes.CallBuiltin("list", [found], {})
        return found

    def any(self, node: ast.expr) -> Expression:
        """The value of an expression, or a generator, an iterator or a function."""
        if self.chosen and node in self.chosen:
            return self.chosen[node]
        method = _METHODS.get(type(node))
        if method is None:
            raise self.refused(node, f"{type(node).__name__.lower()} expression")
        found: Expression = getattr(self, method)(node)
        self.lowering.lines[id(found)] = (node.lineno, found)
        return found

    def fails(self, node: ast.AST) -> Expression:
        """An expression that always bails: `()[0]`."""
        return nodes.Subscript(self.constant((), node), self.constant(0, node))

    def _members(self, cls: type, node: ast.expr) -> Expression:
        """The members of an enum."""
        if not issubclass(cls, self.lowering.enum):
            raise self.refused(node, f"the class {cls.__name__} as a value")
        self.number_of(cls, node)
        return self.constant(tuple(cls), node)

    # -- names and attributes --------------------------------------------------------------------------------------

    def _constant(self, node: ast.Constant) -> Expression:
        if node.value is ...:
            raise self.refused(node, "...")
        return self.constant(node.value, node)

    def _name(self, node: ast.Name) -> Expression:
        scope = self.holder(node.id)
        if scope is None:
            return self.value(self.static(node), node)
        kind = scope.kinds.get(node.id)
        if kind is VIEW:
            raise self.refused(node, "the view as a value")
        if node.id not in scope.slots:
            return self.value(self.static(node), node)
        if node.id in scope.unbound:
            raise self.refused(node, f"{node.id} before it has a value")
        if node.id in scope.functions:
            self.refer(scope.functions[node.id], node)
        if node.id in self.generators:
            raise self.refused(node, "generator that is kept")
        return nodes.Local(scope.slots[node.id])

    def refer(self, function: LocalFunction, node: ast.AST) -> None:
        """Note that a nested function is used. It must not lead back to itself: both runs would share variables."""
        if function in self.around:
            raise self.refused(node, "recursive nested function")
        for outer in self.around:
            outer.refers_to.append(function)

    def value(self, value: Any, node: ast.expr) -> Expression:
        """A value that is known now: data or a function."""
        if not is_code(value):
            return self.constant(value, node)
        return self.function_value(value, node, None)

    def function_value(self, value: Any, node: ast.expr, count: int | None) -> Expression:
        """A function as a value, which will be called with `count` arguments."""
        raise NotImplementedError

    def whole_view(self, node: ast.AST) -> None:
        """Refuse a use of the view in a part of a property, which has only some processes."""
        if self.chosen is not None:
            raise self.refused(node, "the view in a part of a property")

    def processes(self, node: ast.AST) -> Expression:
        """All processes of the view."""
        self.whole_view(node)
        system = self.lowering.system
        return self.viewed(range(len(system.classes)), node)

    def _attribute(self, node: ast.Attribute) -> Expression:
        found = self.static(node)
        if found is not UNKNOWN:
            return self.value(found, node)
        kind = self.kind(node.value)
        of_clock = self.clock_attribute(node)
        if of_clock is not None:
            return of_clock
        if isinstance(kind, Instance):
            return self._member(kind.cls, node)
        if kind is VIEW:
            if node.attr == "processes":
                return self.processes(node)
            if node.attr == "messages":
                self.whole_view(node)
                system = self.lowering.system
                return nodes.ViewMessages(list(range(len(system.classes))), len(system.processes))
            raise self.refused(node, f".{node.attr} of the view")
        if node.attr in ("__name__", "__qualname__", "__module__"):
            return self._class_name(node)
        if node.attr.startswith("__"):
            raise self.refused(node, f"attribute {node.attr}")
        self.lowering.classes.use(node.attr)
        return nodes.Attribute(self.expr(node.value), node.attr)

    def _class_name(self, node: ast.Attribute) -> Expression:
        """`type(value).__name__`, which each class has as a constant."""
        owner, of = node.value, None
        if isinstance(owner, ast.Call) and is_builtin(self.static(owner.func), "type") and len(owner.args) == 1:
            of = owner.args[0]
        elif isinstance(owner, ast.Attribute) and owner.attr == "__class__":
            of = owner.value
        if of is None:
            raise self.refused(node, f"attribute {node.attr}")
        name = f"__class__.{node.attr}"
        self.lowering.classes.use(name)
        return nodes.Attribute(self.expr(of), name)

    def _member(self, cls: type, node: ast.Attribute) -> Expression:
        """An attribute of a value whose class is known: of the process itself, above all."""
        name = node.attr
        if name in self.lowering.classes.fields(cls):
            return nodes.Attribute(self.expr(node.value), name)
        found = members(cls, name)
        if issubclass(cls, Process) and found is Process.__dict__.get(name) and name == "id":
            return nodes.SelfId()
        if isinstance(found, property):
            getter = unwrapped(found.fget)
            receiver = self.expr(node.value)
            if not issubclass(cls, Process | Monitor | Shared) and name in ("sender", "name", "value"):
                return nodes.Attribute(receiver, name)
            return self.call(getter, [(receiver, Instance(cls))], node)
        if callable(getattr(found, "__func__", found)) and found is not UNKNOWN:
            return self.bound_method(cls, node, None)
        if found is UNKNOWN and not issubclass(cls, Process | Monitor | Shared):
            return nodes.Attribute(self.expr(node.value), name)
        if isinstance(found, type(None)) or found is UNKNOWN:
            raise self.refused(node, f"{cls.__name__}.{name}")
        raise self.refused(node, f"{cls.__name__}.{name}, which is a {type(found).__name__}")

    def bound_method(self, cls: type, node: ast.Attribute, count: int | None) -> Expression:
        """A method of the process as a value."""
        raise NotImplementedError

    def call(self, function: Any, first: list[Any], node: ast.AST) -> Expression:
        """A call of a function of the program with these arguments."""
        raise NotImplementedError

    def _subscript(self, node: ast.Subscript) -> Expression:
        if self.kind(node.value) is VIEW:
            return self._viewed(node.slice, node)
        owner = self.static(node.value) if isinstance(node.value, ast.Name | ast.Attribute) else UNKNOWN
        if isinstance(owner, type):
            if issubclass(owner, self.lowering.enum):
                self.number_of(owner, node)
                table = self.constant({m.name: m for m in owner}, node)
                return nodes.Subscript(table, self.expr(node.slice))
            raise self.refused(node, f"{owner.__name__}[…]")
        return nodes.Subscript(self.expr(node.value), self.expr(node.slice))

    def _viewed(self, index: ast.expr, node: ast.expr) -> Expression:
        """`s[Role]`, `s[Audit]` or `s[pid]`."""
        self.whole_view(node)
        system = self.lowering.system
        found = self.static(index)
        if isinstance(found, type) and issubclass(found, Process):
            return self.role(found, node, required=True)
        if isinstance(found, type) and issubclass(found, Monitor):
            for number, monitor in enumerate(system.monitors):
                if isinstance(monitor, found):
                    objection = self.lowering.classes.self_objection(type(monitor))
                    if objection is not None:
                        raise self.refused(node, objection)
                    return nodes.ViewMonitor(number)
        if isinstance(found, type) and issubclass(found, Shared):
            several = [shared for shared in system.shared if isinstance(shared, found)]
            if len(several) == 1:
                return nodes.Constant(self.lowering.encode(several[0]))  # a reference
        if isinstance(found, type):
            raise self.refused(node, f"s[{found.__name__}]")
        self.viewed(range(len(system.classes)), node)
        return nodes.ViewProcess(self.expr(index))

    def role(self, role: Any, node: ast.expr, *, required: bool = False) -> Expression:
        """`s[Role]` or `s.get(Role)`."""
        self.whole_view(node)
        positions = self.positions(role, node, spares=True)
        if required and not positions:
            raise self.refused(node, f"s[{role.__name__}] without a {role.__name__}")
        return self.viewed(positions, node)

    def viewed(self, positions: Sequence[int], node: ast.AST) -> Expression:
        """The processes at these positions, as a property sees them."""
        system = self.lowering.system
        for cls in dict.fromkeys(system.classes[i] for i in positions):
            objection = self.lowering.classes.view_objection(cls)
            if objection is not None:
                raise self.refused(node, objection)
        return nodes.ViewRole(list(positions), len(system.processes))

    def _slice(self, node: ast.Slice) -> Expression:
        lower, upper, step = (None if e is None else self.expr(e) for e in (node.lower, node.upper, node.step))
        return nodes.Slice(lower, upper, step)

    # -- operators -------------------------------------------------------------------------------------------------

    def _unaryop(self, node: ast.UnaryOp) -> Expression:
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            value = node.operand.value
            if type(value) in (int, float):
                return self.constant(-value, node)  # type: ignore[operator]
        return nodes.UnaryOperation(_UNARY[type(node.op)], self.expr(node.operand))

    def _binop(self, node: ast.BinOp) -> Expression:
        operator = BINARY.get(type(node.op))
        if operator is None:
            raise self.refused(node, "operator @")
        return nodes.BinaryOperation(operator, self.expr(node.left), self.expr(node.right))

    def _boolop(self, node: ast.BoolOp) -> Expression:
        operands = [self.expr(e) for e in node.values]
        return nodes.And(operands) if type(node.op) is ast.And else nodes.Or(operands)

    def _compare(self, node: ast.Compare) -> Expression:
        if len(node.ops) == 1 and isinstance(node.ops[0], ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
            tested = self._compare_types(node.left, node.ops[0], node.comparators[0], node)
            if tested is not None:
                return tested
        of_clock = self.clock_comparison(node)
        if of_clock is not None:
            return of_clock
        left = self.expr(node.left)
        rights: list[Expression] = []
        for operator, right in zip(node.ops, node.comparators, strict=True):
            if not isinstance(operator, ast.In | ast.NotIn):
                rights.append(self.expr(right))
                continue
            found = self.consumed(right)
            if type(found) is nodes.Generator or is_iterator(found):
                if len(node.ops) > 1:
                    raise self.refused(node, "generator after in")
                return self._in_generator(left, found, isinstance(operator, ast.In))
            rights.append(found)
        return nodes.Compare(left, [_COMPARISONS[type(op)] for op in node.ops], rights)

    def _in_generator(self, left: Expression, generator: Expression, positive: bool) -> Expression:
        """`left in (element for …)`: the generator stops at the first element that is equal."""
        value = self.slot()
        if not isinstance(generator, nodes.Generator):
            item = self.slot()
            clause = nodes.Clause(nodes.LocalTarget(item), generator, [])
            generator = nodes.Generator(nodes.Local(item), [clause])
        test = nodes.Compare(nodes.Local(value), ["in"], [nodes.TupleDisplay([generator.element])])
        found: Expression = nodes.CallBuiltin("any", [nodes.Generator(test, generator.clauses)], {})
        found = found if positive else nodes.UnaryOperation("not", found)
        return nodes.Conditional(nodes.TupleDisplay([nodes.Assigned(value, left)]), found, found)

    def _compare_types(self, left: ast.expr, op: ast.cmpop, right: ast.expr, node: ast.Compare) -> Expression | None:
        """`type(value) is Class`."""
        if not isinstance(left, ast.Call) or not isinstance(left.func, ast.Name) or len(left.args) != 1:
            return None
        if not is_builtin(self.static(left.func), "type"):
            return None
        known, cls = self.static(left), self.static(right)
        same = isinstance(op, ast.Is | ast.Eq)
        if known is not UNKNOWN:
            if cls is UNKNOWN:
                return None
            return self.constant((known is cls) == same, node)
        if not isinstance(cls, type) or cls in builtins.TYPES:
            raise self.refused(node, "type(…)")
        self.number_of(cls, node)
        name = f"{cls.__module__}.{cls.__qualname__}"
        of = nodes.Attribute(self.expr(left.args[0]), "__class__")
        self.lowering.classes.use("__class__")
        return nodes.Compare(of, ["==" if same else "!="], [self.constant(name, node)])

    def _ifexp(self, node: ast.IfExp) -> Expression:
        known = self.truth(node.test)
        if known is not None:
            return self.expr(node.body if known else node.orelse)
        return nodes.Conditional(self.expr(node.test), self.expr(node.body), self.expr(node.orelse))

    def _namedexpr(self, node: ast.NamedExpr) -> Expression:
        scope = self.holder(node.target.id)
        if scope is None or node.target.id in scope.kinds:
            raise self.refused(node, f"{node.target.id} is assigned")
        return nodes.Assigned(scope.slots[node.target.id], self.expr(node.value))

    # -- displays and comprehensions -------------------------------------------------------------------------------

    def items(self, parts: list[ast.expr]) -> list[Expression]:
        """The items of a display, or the arguments of a call, with `*values`."""
        found: list[Expression] = []
        for part in parts:
            if type(part) is ast.Starred:
                found.append(nodes.Starred(self.collected(part.value)))
            else:
                found.append(self.expr(part))
        return found

    def _tuple(self, node: ast.Tuple) -> Expression:
        return nodes.TupleDisplay(self.items(node.elts))

    def _list(self, node: ast.List) -> Expression:
        return nodes.ListDisplay(self.items(node.elts))

    def _set(self, node: ast.Set) -> Expression:
        return nodes.SetDisplay(self.items(node.elts))

    def _dict(self, node: ast.Dict) -> Expression:
        keys = [None if key is None else self.expr(key) for key in node.keys]
        return nodes.DictDisplay(keys, [self.expr(v) for v in node.values])

    def _comprehension(self, node: Any) -> Expression:
        before = self.scope
        try:
            clauses = self._clauses(node.generators)
            if type(node) is ast.DictComp:
                return nodes.DictComprehension(self.expr(node.key), self.expr(node.value), clauses)
            element = self.expr(node.elt)
        finally:
            self.scope = before
        if type(node) is ast.GeneratorExp:
            return nodes.Generator(element, clauses)
        made = nodes.ListComprehension if type(node) is ast.ListComp else nodes.SetComprehension
        return made(element, clauses)

    def _clauses(self, generators: list[ast.comprehension]) -> list[nodes.Clause]:
        """The clauses of a comprehension. Its scope stays current."""
        scope = Scope(self.scope)
        for generator in generators:
            if generator.is_async:
                raise self.refused(generator.target, "async comprehension")
            for inner in ast.walk(generator.target):
                if type(inner) is ast.Name and type(inner.ctx) is ast.Store and inner.id not in scope.slots:
                    scope.slots[inner.id] = self.slot(inner.id)
        scope.unbound = set(scope.slots)
        clauses = []
        for generator in generators:
            iterable = self.consumed(generator.iter)  # the first one is evaluated in the scope around
            self.scope = scope
            target = self.target(generator.target)
            for inner in ast.walk(generator.target):
                if type(inner) is ast.Name and type(inner.ctx) is ast.Store:
                    scope.unbound.discard(inner.id)
            clauses.append(nodes.Clause(target, iterable, [self.expr(e) for e in generator.ifs]))
        return clauses

    def target(self, node: ast.expr) -> nodes.Target:
        """The target of an assignment."""
        raise NotImplementedError

    # -- text ------------------------------------------------------------------------------------------------------

    def _joinedstr(self, node: ast.JoinedStr) -> Expression:
        return nodes.JoinedString([self.any(part) for part in node.values])

    def _formattedvalue(self, node: ast.FormattedValue) -> Expression:
        conversion = chr(node.conversion) if node.conversion >= 0 else ""
        spec = None if node.format_spec is None else self.expr(node.format_spec)
        return nodes.FormattedValue(self.expr(node.value), conversion, spec)

    # -- functions inside functions --------------------------------------------------------------------------------

    def _lambda(self, node: ast.Lambda) -> Expression:
        return self.nested(node)

    def nested(self, node: ast.Lambda | ast.FunctionDef) -> nodes.Lambda:
        """A lambda or a nested function. It uses the frame of the function around it."""
        arguments = node.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs:
            raise self.refused(node, "nested function with *, *args or **kwargs")
        defaults = [self.expr(e) for e in arguments.defaults]
        before, scope = self.scope, Scope(self.scope)
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        for name in names:
            scope.slots[name] = self.slot(name)
        parts: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else list(node.body)
        bindings = Bindings(parts)
        self.declare(scope, bindings, set(names))
        self.scope = scope
        try:
            if isinstance(node, ast.Lambda):
                body: list[nodes.Statement] = [nodes.Return(self.expr(node.body))]
            else:
                body = [*self._forget(scope, names), *self.block(node.body)]
        finally:
            self.scope = before
        return nodes.Lambda([scope.slots[name] for name in names], defaults, body)

    def _forget(self, scope: Scope, parameters: list[str]) -> list[nodes.Statement]:
        """The variables of a nested function have no values when it begins, also when it runs again."""
        found: list[nodes.Statement] = []
        for name, slot in scope.slots.items():
            if name not in parameters:
                found.append(nodes.Assign([nodes.LocalTarget(slot)], nodes.Constant(self.lowering.none)))
                found.append(nodes.Delete(nodes.LocalTarget(slot)))
        return found

    def block(self, statements: list[ast.stmt]) -> list[nodes.Statement]:
        """Statements in order."""
        raise NotImplementedError


_METHODS: dict[type[ast.expr], str] = {
    ast.Constant: "_constant",
    ast.Name: "_name",
    ast.Attribute: "_attribute",
    ast.Subscript: "_subscript",
    ast.Slice: "_slice",
    ast.UnaryOp: "_unaryop",
    ast.BinOp: "_binop",
    ast.BoolOp: "_boolop",
    ast.Compare: "_compare",
    ast.IfExp: "_ifexp",
    ast.NamedExpr: "_namedexpr",
    ast.Tuple: "_tuple",
    ast.List: "_list",
    ast.Set: "_set",
    ast.Dict: "_dict",
    ast.ListComp: "_comprehension",
    ast.SetComp: "_comprehension",
    ast.DictComp: "_comprehension",
    ast.GeneratorExp: "_comprehension",
    ast.JoinedStr: "_joinedstr",
    ast.FormattedValue: "_formattedvalue",
    ast.Lambda: "_lambda",
    ast.Call: "_call",
}
