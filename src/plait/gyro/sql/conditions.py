"""Conditions of SQL as terms: WHERE and ON of all statements, and the values in VALUES and SET.

A condition that terms cannot express becomes opaque, and a value becomes unknown. Names are resolved by `queries.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from plait.gyro.sql.terms import (
    And,
    Compare,
    Condition,
    Constant,
    IsNull,
    Not,
    Opaque,
    Operator,
    Or,
    Same,
    Term,
    Unknown,
    conjunction,
)
from plait.kernel.extras import needs

with needs("gyro"):
    from sqlglot import exp

_COMPARISONS: dict[type[exp.Expression], tuple[Operator, bool]] = {
    exp.EQ: ("=", False),
    exp.LT: ("<", False),
    exp.LTE: ("<=", False),
    exp.GT: ("<", True),
    exp.GTE: ("<=", True),
}
EXACT = 2**53
"""Whole numbers below this are exact in every numeric type. Larger ones are unknown values."""


def condition(node: exp.Expression, operand: Callable[[exp.Expression], Term]) -> Condition:
    """An expression as a condition: opaque where it is not understood. `operand` translates the sides of comparisons."""
    if isinstance(node, exp.Paren):
        return condition(node.this, operand)
    if isinstance(node, exp.And):
        return conjunction(condition(node.this, operand), condition(node.expression, operand))
    if isinstance(node, exp.Or):
        return Or((condition(node.this, operand), condition(node.expression, operand)))
    if isinstance(node, exp.Not):
        return Not(condition(node.this, operand))
    if isinstance(node, exp.Boolean):
        return And() if node.this else Or()
    if type(node) in _COMPARISONS or isinstance(node, exp.NEQ):
        left, right = operand(node.this), operand(node.expression)
        if isinstance(node, exp.NEQ):
            return Not(Compare("=", left, right))
        operator, swapped = _COMPARISONS[type(node)]
        return Compare(operator, right, left) if swapped else Compare(operator, left, right)
    if isinstance(node, exp.Between) and not node.args.get("symmetric"):
        value = operand(node.this)
        return And(
            (
                Compare("<=", operand(node.args["low"]), value),
                Compare("<=", value, operand(node.args["high"])),
            )
        )
    if isinstance(node, exp.In) and not node.args.get("query") and not node.args.get("unnest") and node.expressions:
        if not any(isinstance(e, exp.Query) for e in node.expressions):
            value = operand(node.this)
            return Or(tuple(Compare("=", value, operand(e)) for e in node.expressions))
    elif isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        return IsNull(operand(node.this))
    elif isinstance(node, exp.NullSafeEQ):
        return Same(operand(node.this), operand(node.expression))
    return Opaque(short(node))


def term(node: exp.Expression, bindings: Mapping[str, Term], column: Callable[[exp.Column], Term]) -> Term:
    """An expression as a term: unknown where it is not understood. `column` finds a column by its name."""
    if isinstance(node, exp.Paren):
        return term(node.this, bindings, column)
    if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
        return column(node)
    if isinstance(node, exp.Placeholder) and node.name in bindings:
        return bindings[node.name]
    if isinstance(node, exp.Null):
        return Constant(None)
    sign, literal = (-1, node.this) if isinstance(node, exp.Neg) else (1, node)
    if isinstance(literal, exp.Literal) and (sign == 1 or not literal.is_string):
        if literal.is_string:
            return Constant(literal.this)
        if literal.this.isdigit() and int(literal.this) < EXACT:
            return Constant(sign * int(literal.this))
    return Unknown(f"computed by {short(node)}")


def short(node: exp.Expression) -> str:
    """The SQL of an expression, cut to a length that fits in a message."""
    text = node.sql()
    return text if len(text) <= 48 else f"{text[:47]}…"
