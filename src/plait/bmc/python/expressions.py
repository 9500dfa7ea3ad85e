"""Expressions: from left to right, each read of a shared variable is an operation."""

from __future__ import annotations

import ast
import enum
import types
from collections.abc import Callable
from typing import Any

from plait.bmc.program.arithmetic import negate, operation
from plait.bmc.program.builder import Label
from plait.bmc.program.definition import ASSERTIONS, DIVISION, Constant, Expr, Not
from plait.bmc.python.calls import Calls, CurrentThread
from plait.bmc.python.functions import UNKNOWN, Closure
from plait.bmc.python.values import (
    BOOL,
    INT,
    NO_VALUE,
    Type,
    Value,
    constant,
    described,
    is_none,
    items_of,
    known,
    number,
    number_of,
    scalar,
    truth,
    tuple_of,
)

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "/",
    ast.Mod: "%",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Is: "==",
    ast.IsNot: "!=",
}


class Expressions(Calls):
    """Translates expressions."""

    def expr(self, node: ast.expr) -> Value:
        """The value of an expression."""
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise self.refused(
                node,
                f"the expression {ast.unparse(node)} ({type(node).__name__}) is not supported",
                "use numbers, truth values, lists, dicts, tuples and objects",
            )
        found: Value = method(node)
        return found

    # -- names and constants -------------------------------------------------------------------------------------------

    def _constant(self, node: ast.Constant) -> Value:
        return self.of.imported(node.value)

    def _name(self, node: ast.Name) -> Value:
        name = node.id
        frame = self.frame.holder(name)
        if frame is None:
            return self.read_global(self.frame.function.origin.__globals__, name, node)
        self.check_assigned(frame, name)
        if name in frame.fixed:
            return frame.fixed[name]
        return self.fetch(frame.key(name), name, local=not frame.shares(name))

    def read_global(self, names: dict[str, Any], name: str, node: ast.AST) -> Value:
        """The value of a global variable of a module."""
        value = names.get(name, UNKNOWN)
        if value is UNKNOWN:
            value = self.frame.outside(name)
            if value is UNKNOWN:
                key = ("global", id(names), name)
                if self.heap.type(key).category != "never":
                    return self.fetch(key, name, local=False)
                raise self.refused(node, f"there is no variable {name}", "define it before it is used")
            return self.of.imported(value, name)
        initial = self.of.imported(value, name)
        key = ("global", id(names), name)
        self.joined(key, initial.type, name)
        return self.fetch(key, name, local=False, initial=initial)

    def _joinedstr(self, node: ast.JoinedStr) -> Value:
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.expr(part.value)
        return known(node)

    def _tuple(self, node: ast.Tuple) -> Value:
        values = [self.expr(item) for item in node.elts]
        return self.packed(values)

    def packed(self, values: list[Value]) -> Value:
        """A tuple."""
        if any(v.type.category == "never" for v in values):
            return NO_VALUE
        return Value(tuple_of(tuple(v.type for v in values)), tuple(p for v in values for p in v.parts))

    def _lambda(self, node: ast.Lambda) -> Value:
        return self.closure(node)

    def closure(self, node: ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef) -> Value:
        """A nested function."""
        key = ("closure", self.frame.context, node)
        found = self.heap.functions.get(key)
        if found is None:
            function = self.frame.function.inner(node)
            found = self.heap.functions[key] = Closure(function, self.frame)
        found.frame = self.frame
        for name, default in found.function.defaults:
            self._evaluate_default(node, name, default)
        return known(found)

    def _evaluate_default(self, node: ast.AST, name: str, default: ast.expr) -> None:
        """The value of a default argument, when the function is defined."""
        value = self.expr(default)
        key = self.frame.default(node, name)
        if all(isinstance(part, Constant) for part in value.parts):
            self.frame.defaults[key] = value
            return
        if self.loops and self.heap.settled:
            raise self.refused(
                default,
                f"the default argument {name} of a function that a loop defines again and again is not supported",
                "define the function outside of the loop",
            )
        self.heap.unrolled.update(self.loops)
        self.frame.defaults.pop(key, None)
        self.store(key, value, name, local=False)

    def _namedexpr(self, node: ast.NamedExpr) -> Value:
        value = self.keep(self.expr(node.value))
        self.assign(node.target, value)
        return value

    # -- attributes ----------------------------------------------------------------------------------------------------

    def _attribute(self, node: ast.Attribute) -> Value:
        return self.attribute(self.expr(node.value), node.attr, node)

    def attribute(self, value: Value, name: str, node: ast.AST) -> Value:
        """`value.name`"""
        t = value.type
        if t.category == "never":
            return NO_VALUE
        if t.category == "static":
            assert t.static is not None
            return self._static_attribute(t.static.value, name, node)
        if t.category == "none":
            self.throw(AttributeError, ASSERTIONS, f"AttributeError: None has no attribute {name}")
            return NO_VALUE
        if t.category == "ref":
            return self.object_attribute(value, name, node)
        if t.category == "str" and name in ("value", "name") and t.constant is not None:
            member = next(k for k, v in self.heap.texts.items() if v == t.constant)
            if isinstance(member, enum.Enum):
                return self.of.imported(getattr(member, name))
        raise self.refused(
            node, f"the attribute {name} of a {described(t)} is not supported", "use attributes of objects"
        )

    def _static_attribute(self, owner: Any, name: str, node: ast.AST) -> Value:
        if isinstance(owner, types.ModuleType):
            if name not in vars(owner):
                raise self.refused(node, f"the module {owner.__name__} has no {name}", "correct the name")
            if self.is_library(owner):
                return known(getattr(owner, name))
            return self.read_global(vars(owner), name, node)
        if isinstance(owner, type):
            if isinstance(owner, enum.EnumType):
                return self.of.imported(getattr(owner, name))
            return self.class_attribute(owner, name, node)
        if isinstance(owner, CurrentThread) and name in ("name", "ident", "native_id"):
            return known(node)
        found = getattr(owner, name, None)
        if callable(found):
            return known(found)
        raise self.refused(node, f"the attribute {name} is not supported here", "use attributes of objects")

    # -- operators -----------------------------------------------------------------------------------------------------

    def _unaryop(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            return self.boolean(negate(self.truth(node.operand)))
        value = self.expr(node.operand)
        if value.type.category == "never":
            return value
        found = self.number(value, node)
        if isinstance(node.op, ast.USub):
            return self.integer(operation("-", Constant(0), found))
        if isinstance(node.op, ast.Invert):
            return self.integer(operation("-", Constant(-1), found))
        return self.integer(found)

    def integer(self, e: Expr) -> Value:
        """A number; of a known type if it is constant."""
        return number(int(e.value)) if isinstance(e, Constant) else Value(INT, (e,))

    def boolean(self, e: Expr) -> Value:
        """A truth value; of a known type if it is constant."""
        return truth(bool(e.value)) if isinstance(e, Constant) else Value(BOOL, (e,))

    def number(self, value: Value, node: ast.AST) -> Expr:
        """The number of a value, which must be one."""
        t = value.type
        if t.category == "never":
            return Constant(0)
        if t.category not in ("int", "bool"):
            if t.category == "none":
                self.throw(TypeError, ASSERTIONS, "TypeError: None is no number")
                return Constant(0)
            raise self.refused(
                node, f"{ast.unparse(node)}: arithmetic with a {described(t)} is not supported", "use integers"
            )
        if t.optional:
            self.check(negate(is_none(value, self.heap)), TypeError, ASSERTIONS, "TypeError: None is no number")
        return number_of(value, self.heap)

    def _binop(self, node: ast.BinOp) -> Value:
        if isinstance(node.left, ast.List) and isinstance(node.op, ast.Mult):
            items = [self.keep(self.expr(item)) for item in node.left.elts]
            times = self.number(self.expr(node.right), node)
            if not isinstance(times, Constant):
                raise self.refused(node, "the length of a list must be known", "use a constant")
            return self.made(node, list, items * times.value)
        left = self.expr(node.left)
        if any(isinstance(n, ast.NamedExpr) for n in ast.walk(node.right)):
            left = self.keep(left)
        right = self.expr(node.right)
        return self.binary(left, node.op, right, node)

    def binary(self, left: Value, operator: ast.operator, right: Value, node: ast.AST) -> Value:
        """`left operator right`"""
        if "never" in (left.type.category, right.type.category):
            return NO_VALUE
        if left.type.category == right.type.category == "tuple" and isinstance(operator, ast.Add):
            return self.packed([*items_of(left, self.heap), *items_of(right, self.heap)])
        if left.type.category == "ref" and not left.type.optional:
            return self.container_operator(left, operator, right, node)
        if isinstance(operator, ast.Pow):
            return self._power(left, right, node)
        name = _BINARY.get(type(operator))
        if name is None or "static" in (left.type.category, right.type.category):
            raise self.refused(
                node, f"{ast.unparse(node)} is not supported: numbers are integers", "use //, or other integers"
            )
        a, b = self.number(left, node), self.number(right, node)
        if name in ("/", "%"):
            if b == Constant(0):
                self.throw(ZeroDivisionError, DIVISION, "ZeroDivisionError: division by zero")
                return NO_VALUE
            zero = operation("!=", b, Constant(0))
            self.check(zero, ZeroDivisionError, DIVISION, "ZeroDivisionError: division by zero")
        return self.integer(operation(name, a, b))

    def _power(self, left: Value, right: Value, node: ast.AST) -> Value:
        exponent = self.number(right, node)
        if not isinstance(exponent, Constant) or exponent.value < 0:
            raise self.refused(node, "the exponent of ** must be a known number", "use a constant exponent")
        base, found = self.number(left, node), Constant(1)
        result: Expr = found
        for _ in range(exponent.value):
            result = operation("*", result, base)
        return self.integer(result)

    # -- truth ---------------------------------------------------------------------------------------------------------

    def truth(self, node: ast.expr) -> Expr:
        """The truth of an expression."""
        return self.test_of(self.expr(node))

    def test_of(self, value: Value) -> Expr:
        """The truth of a value; of a container, whether it has items."""
        if value.type.category == "ref":
            return self.truth_of_object(value)
        return self.test(value)

    def condition(self, node: ast.expr, then: Label, otherwise: Label) -> None:
        """Continue at one of two labels."""
        if isinstance(node, ast.BoolOp):
            for operand in node.values[:-1]:
                following = self.code.label()
                if isinstance(node.op, ast.And):
                    self.condition(operand, following, otherwise)
                else:
                    self.condition(operand, then, following)
                self.code.mark(following)
            self.condition(node.values[-1], then, otherwise)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.condition(node.operand, otherwise, then)
        else:
            self.code.branch(self.truth(node), then, otherwise)

    def merged(self, node: ast.AST, tag: str, ways: list[tuple[Label, Callable[[], Value]]]) -> Value:
        """The value of an expression with several ways, of which one is taken."""
        key = ("merged", self.frame.context, node, tag)
        end = self.code.label()
        for label, way in ways:
            self.code.mark(label)
            value = way()
            if value.type.category != "never":
                self.store(key, value, "a value", local=True)
            self.code.jump(end)
        self.code.mark(end)
        return self.fetch(key, "a value", local=True)

    def _boolop(self, node: ast.BoolOp) -> Value:
        if self.is_condition(node):
            then, otherwise = self.code.label(), self.code.label()
            self.condition(node, then, otherwise)
            return self.merged(node, "", [(then, lambda: truth(True)), (otherwise, lambda: truth(False))])
        key = ("merged", self.frame.context, node, "")
        end = self.code.label()
        for i, operand in enumerate(node.values):
            value = self.expr(operand)
            test = self.test_of(value)
            following, stop = self.code.label(), self.code.label()
            if i + 1 == len(node.values):
                self.code.jump(stop)
            elif isinstance(node.op, ast.And):
                self.code.branch(test, following, stop)
            else:
                self.code.branch(test, stop, following)
            self.code.mark(stop)
            if value.type.category != "never" and not self._excluded(test, node.op, i + 1 == len(node.values)):
                self.store(key, value, "a value", local=True)
            self.code.jump(end)
            self.code.mark(following)
        self.code.mark(end)
        return self.fetch(key, "a value", local=True)

    def _excluded(self, test: Expr, operator: ast.boolop, last: bool) -> bool:
        return not last and isinstance(test, Constant) and bool(test.value) is isinstance(operator, ast.And)

    def is_condition(self, node: ast.expr) -> bool:
        """Whether an expression has a truth value, as far as its syntax shows."""
        if isinstance(node, ast.BoolOp):
            return all(map(self.is_condition, node.values))
        return isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))

    def _ifexp(self, node: ast.IfExp) -> Value:
        then, otherwise = self.code.label(), self.code.label()
        test = self.truth(node.test)
        if isinstance(test, Constant):
            return self.expr(node.body if test.value else node.orelse)
        self.code.branch(test, then, otherwise)
        return self.merged(
            node, "", [(then, lambda: self.expr(node.body)), (otherwise, lambda: self.expr(node.orelse))]
        )

    # -- comparisons ---------------------------------------------------------------------------------------------------

    def _compare(self, node: ast.Compare) -> Value:
        left = self.expr(node.left)
        if len(node.ops) == 1:
            return self.boolean(self.compared(left, node.ops[0], self.expr(node.comparators[0]), node))
        ends = self.code.label()
        ways: list[tuple[Label, Callable[[], Value]]] = [(ends, lambda: truth(False))]
        for operator, right in zip(node.ops, node.comparators, strict=True):
            value = self.keep(self.expr(right))
            following = self.code.label()
            self.code.branch(self.compared(left, operator, value, node), following, ends)
            self.code.mark(following)
            left = value
        fine = self.code.label()
        self.code.jump(fine)
        return self.merged(node, "", [(fine, lambda: truth(True)), *ways])

    def compared(self, left: Value, operator: ast.cmpop, right: Value, node: ast.AST) -> Expr:
        """`left operator right`"""
        heap = self.heap
        if "never" in (left.type.category, right.type.category):
            return Constant(False)
        if isinstance(operator, ast.In | ast.NotIn):
            inside = self.contains(right, left, node)
            return negate(inside) if isinstance(operator, ast.NotIn) else inside
        name = _COMPARE[type(operator)]
        if name in ("==", "!="):
            same = self.same(left, right, node, identity=isinstance(operator, ast.Is | ast.IsNot))
            return same if name == "==" else negate(same)
        if left.type.category == right.type.category == "tuple":
            raise self.refused(node, "tuples can only be compared with == and !=", "compare their items")
        del heap
        return operation(name, self.number(left, node), self.number(right, node))

    def same(self, left: Value, right: Value, node: ast.AST, *, identity: bool = False) -> Expr:
        """Whether two values are equal (or, for objects, the same)."""
        heap, a, b = self.heap, left.type, right.type
        if "none" in (a.category, b.category):
            return is_none(right if a.category == "none" else left, heap)
        numbers = ("int", "bool")
        if a.category in numbers and b.category in numbers:
            if a.category == b.category == "bool":
                x, y = scalar(left, heap), scalar(right, heap)
                if isinstance(y, Constant):
                    return x if y.value else negate(x)
                return operation("==", x, y)
            return operation("==", number_of(left, heap), number_of(right, heap))
        for t in (a, b):
            if t.static is not None and isinstance(t.static.value, ast.AST | float | CurrentThread):
                raise self.refused(
                    node,
                    "formatted texts, floats and names or numbers of threads cannot be compared",
                    "compare integers",
                )
        if a.category != b.category:
            return Constant(False)
        if a.category == "str":
            return operation("==", scalar(left, heap), scalar(right, heap))
        if a.category == "tuple":
            return self._same_tuples(left, right, node)
        if a.category == "ref":
            if not identity and self.is_container(a):
                return self.same_containers(left, right, node)
            assert a.site is not None
            assert b.site is not None
            if not identity:
                self.refuse_equality(a.site, node)
            if heap.find(a.site) is not heap.find(b.site):
                return operation("&&", is_none(left, heap), is_none(right, heap))
            return operation("==", scalar(left, heap), scalar(right, heap))
        if a.category == "static":
            assert a.static is not None
            assert b.static is not None
            return Constant(a.static == b.static)
        raise self.refused(node, f"a {described(a)} cannot be compared", "compare numbers, texts or objects")

    def _same_tuples(self, left: Value, right: Value, node: ast.AST) -> Expr:
        heap = self.heap
        if len(left.type.items) != len(right.type.items):
            return operation("&&", is_none(left, heap), is_none(right, heap))
        found: Expr = Constant(True)
        for x, y in zip(items_of(left, heap), items_of(right, heap), strict=True):
            found = operation("&&", found, self.same(x, y, node))
        absent = [is_none(v, heap) for v in (left, right)]
        if absent == [Constant(False)] * 2:
            return found
        present = operation("&&", Not(absent[0]) if absent[0] != Constant(False) else Constant(True), negate(absent[1]))
        return operation("||", operation("&&", *absent), operation("&&", present, found))


def text_type(number: int) -> Type:
    """The type of a text."""
    return constant("str", number)
