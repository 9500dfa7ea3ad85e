"""Clocks: comparisons with integers, reset, start and stop. Any other use of a clock is left to CPython, which refuses it.

To the virtual machine, a clock is a record of three fields. Only what is lowered here reads or writes them. A comparison
with a number above the bound bails.
"""

from __future__ import annotations

import ast
from itertools import pairwise
from typing import Any

from plait.ir import nodes
from plait.ir.definition import UNKNOWN
from plait.ir.frame import Frame
from plait.ir.nodes import Expression
from plait.ir.scope import Instance
from plait.model.process import Process

_COMPARISONS: dict[type[ast.cmpop], Any] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_OPERATIONS: dict[str, tuple[str, Any]] = {
    "reset": ("_ticks", 0),
    "start": ("_running", True),
    "stop": ("_running", False),
}
_COMPUTED = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)


class Clocks(Frame):
    """Lowers the uses of clocks in one function."""

    def expr(self, node: ast.expr) -> Expression:
        """The value of an expression."""
        raise NotImplementedError

    def fails(self, node: ast.AST) -> Expression:
        """An expression that always bails."""
        raise NotImplementedError

    def is_clock(self, node: ast.expr) -> bool:
        """Whether an expression may be a clock: an attribute of this name, unless its owner is known not to have it."""
        if not isinstance(node, ast.Attribute) or node.attr not in self.lowering.clocks:
            return False
        kind = self.kind(node.value)
        if isinstance(kind, Instance):
            return issubclass(kind.cls, Process) and node.attr in kind.cls.__plait_clocks__
        return self.static(node) is UNKNOWN

    def clock_attribute(self, node: ast.Attribute) -> Expression | None:
        """`self.lease.running`; None if this has nothing to do with a clock. A clock as a value is refused."""
        if self.is_clock(node):
            raise self.refused(node, f"the clock {node.attr} as a value")
        if not self.is_clock(node.value):
            return None
        if node.attr != "running":
            raise self.refused(node, f"{node.attr} of a clock")
        return self._part(node.value, "_running")

    def clock_comparison(self, node: ast.Compare) -> Expression | None:
        """A comparison with a clock; None if it is none."""
        sides = [node.left, *node.comparators]
        if not any(map(self.is_clock, sides)):
            return None
        tests = [self._compared(a, op, b, node) for (a, b), op in zip(pairwise(sides), node.ops, strict=True)]
        return tests[0] if len(tests) == 1 else nodes.And(tests)

    def _compared(self, left: ast.expr, op: ast.cmpop, right: ast.expr, node: ast.Compare) -> Expression:
        operator = _COMPARISONS.get(type(op))
        clock, number = (left, right) if self.is_clock(left) else (right, left)
        if operator is None or self.is_clock(number):
            raise self.refused(node, "comparison of a clock with another value")
        if len(node.ops) > 1 and not self._is_number(number):
            raise self.refused(node, "chain of comparisons of a clock")  # a value in the middle would be computed twice
        slot = self.slot()
        value: Expression = nodes.Local(slot)
        ticks = self._part(clock, "_ticks")
        sides = (ticks, value) if clock is left else (value, ticks)
        fits: list[Expression] = [
            nodes.IsInstance(nodes.Assigned(slot, self.expr(number)), ["int"], []),
            nodes.UnaryOperation("not", nodes.IsInstance(value, ["bool"], [])),
            nodes.Compare(value, ["<="], [self._part(clock, "_bound")]),
        ]
        return nodes.Conditional(nodes.And(fits), nodes.Compare(sides[0], [operator], [sides[1]]), self.fails(node))

    def _is_number(self, node: ast.expr) -> bool:
        """Whether an expression is certainly an integer, and constant."""
        if isinstance(node, ast.BinOp):
            return isinstance(node.op, _COMPUTED) and self._is_number(node.left) and self._is_number(node.right)
        value = node.value if isinstance(node, ast.Constant) else UNKNOWN
        if isinstance(node, ast.Name | ast.Attribute):
            value = self.static(node)
        return type(value) is int

    def clock_operation(self, node: ast.Call) -> nodes.Statement | None:
        """`self.lease.reset()` as a statement; None if it is none."""
        func = node.func
        if not isinstance(func, ast.Attribute) or not self.is_clock(func.value):
            return None
        if func.attr not in _OPERATIONS or node.args or node.keywords:
            raise self.refused(node, f".{func.attr}(…) of a clock")
        assert isinstance(func.value, ast.Attribute)
        part, value = _OPERATIONS[func.attr]
        self.lowering.classes.use(part)
        clock = nodes.Attribute(self.expr(func.value.value), func.value.attr)
        return nodes.Assign([nodes.AttributeTarget(clock, part)], self.constant(value, node))

    def _part(self, clock: ast.expr, name: str) -> Expression:
        assert isinstance(clock, ast.Attribute)
        self.lowering.classes.use(clock.attr)
        self.lowering.classes.use(name)
        return nodes.Attribute(nodes.Attribute(self.expr(clock.value), clock.attr), name)
