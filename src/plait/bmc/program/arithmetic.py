"""The arithmetic of programs: all analyses and front ends share it."""

from __future__ import annotations

import operator
from collections.abc import Callable

from plait.bmc.program.definition import Choice, Constant, Expr, Input, Not, Operation, Read, Value, Wrap

LOGIC = ("&&", "||")


def calculate(name: str, left: Value, right: Value) -> Value:
    """The result of an operator. `/` and `%` round down, as in Python; `quot` and `rem` round towards zero, as in C.

    >>> calculate("/", -7, 2), calculate("%", -7, 2), calculate("<", 1, 2)
    (-4, 1, True)
    >>> calculate("quot", -7, 2), calculate("rem", -7, 2)
    (-3, -1)
    """
    return _OPERATORS[name](left, right)


def _quotient(left: int, right: int) -> int:
    return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)


_OPERATORS: dict[str, Callable[[int, int], Value]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.floordiv,
    "%": operator.mod,
    "quot": _quotient,
    "rem": lambda left, right: left - right * _quotient(left, right),
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "&&": lambda left, right: bool(left and right),
    "||": lambda left, right: bool(left or right),
}
ARITHMETIC = ("+", "-", "*", "/", "%", "quot", "rem", "&", "|", "^", "<<", ">>")
"""The operators whose result is a number."""


def wrapped(value: int, bits: int, signed: bool) -> int:
    """A number modulo 2^bits.

    >>> wrapped(200, 8, True), wrapped(-1, 8, False)
    (-56, 255)
    """
    half = 1 << (bits - 1) if signed else 0
    return (value + half) % (1 << bits) - half


def wrap(e: Expr, bits: int, signed: bool) -> Expr:
    """`Wrap`; a constant if its operand is a constant."""
    return Constant(wrapped(e.value, bits, signed)) if isinstance(e, Constant) else Wrap(e, bits, signed)


def negate(e: Expr) -> Expr:
    """The negation of e."""
    match e:
        case Constant(value):
            return Constant(not value)
        case Not(operand):
            return operand
        case _:
            return Not(e)


def operation(name: str, left: Expr, right: Expr) -> Expr:
    """An operation; a constant if its operands are constants."""
    if isinstance(left, Constant) and isinstance(right, Constant):
        return Constant(calculate(name, left.value, right.value))
    if name in LOGIC:
        decides = name == "||"
        if isinstance(left, Constant):
            return left if left.value is decides else right
        if isinstance(right, Constant) and right.value is not decides:
            return left
    return Operation(name, left, right)


def is_truth(e: Expr) -> bool:
    """Whether an expression is a truth value; inputs count as numbers."""
    match e:
        case Constant(value):
            return isinstance(value, bool)
        case Read(variable, _):
            return variable.kind == "bool"
        case Operation(name, _, _):
            return name not in ARITHMETIC
        case Choice(_, then, _):
            return is_truth(then)
        case Input() | Wrap():
            return False
        case _:
            return True
