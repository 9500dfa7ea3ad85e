"""Intervals of numbers whose ends may be infinite: the interval of a result, and what a condition leaves of one."""

from __future__ import annotations

from plait.bmc.program.arithmetic import calculate

UNBOUNDED = 1 << 136
"""An end of an interval of this size or more counts as infinite."""
_MOST_SHIFT = 64

Interval = tuple[int, int]
ANY: Interval = (-UNBOUNDED, UNBOUNDED)


def type_range(bits: int, signed: bool) -> Interval:
    """The range of a type.

    >>> type_range(8, True), type_range(8, False)
    ((-128, 127), (0, 255))
    """
    return (-1 << (bits - 1), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)


def join(one: Interval, two: Interval) -> Interval:
    """The smallest interval that includes both."""
    return (min(one[0], two[0]), max(one[1], two[1]))


def inside(one: Interval, two: Interval) -> bool:
    """Whether the second interval includes the first."""
    return two[0] <= one[0] and one[1] <= two[1]


def clipped(low: int, high: int) -> Interval:
    """An interval with huge ends made infinite. A lower end is never plus infinity, an upper one not minus infinity."""
    return (max(min(low, UNBOUNDED - 1), -UNBOUNDED), min(max(high, 1 - UNBOUNDED), UNBOUNDED))


def infinite(end: int) -> bool:
    """Whether an end of an interval counts as infinite."""
    return abs(end) >= UNBOUNDED


def bounded(interval: Interval) -> bool:
    """Whether both ends of an interval are finite."""
    return not any(map(infinite, interval))


def narrowed(value: Interval, relation: str, bound: Interval) -> Interval | None:
    """The part of an interval that has a relation to a number of another one. None: it is empty."""
    low, high = value
    match relation:
        case "<" if not infinite(bound[1]):
            high = min(high, bound[1] - 1)
        case "<=":
            high = min(high, bound[1])
        case ">" if not infinite(bound[0]):
            low = max(low, bound[0] + 1)
        case ">=":
            low = max(low, bound[0])
        case "==":
            low, high = max(low, bound[0]), min(high, bound[1])
        case "!=" if bound[0] == bound[1]:
            low, high = low + (low == bound[0]), high - (high == bound[0])
    return clipped(low, high) if low <= high else None


def calculated(operator: str, one: Interval, two: Interval) -> Interval:
    """The interval of a result. No divisor is 0, and shifts are 0 to 64: other operands do not count.

    >>> calculated("*", (-1, 2), (3, 4)), calculated("%", (0, 9), (4, 4)), calculated("%", (0, 2), (4, 4))
    ((-4, 8), (0, 3), (0, 2))
    >>> calculated("-", (0, UNBOUNDED), (3, 5)) == (-5, UNBOUNDED)
    True
    >>> calculated("quot", (-7, 5), (-2, 2)), calculated("rem", (-7, 5), (-3, 3)), calculated("&", (-8, 7), (0, 3))
    ((-7, 7), (-2, 2), (0, 3))
    """
    match operator:
        case "%":
            return _modulo(one, two)
        case "rem":
            return _remainder(one, two)
        case "/" | "quot":
            low, high = two
            parts = [part for part in ((max(low, 1), high), (low, min(high, -1))) if part[0] <= part[1]]
            corners = [_corner(operator, a, b) for part in parts for a in one for b in part]
        case "<<" | ">>":
            shifts = (min(max(two[0], 0), _MOST_SHIFT), min(max(two[1], 0), _MOST_SHIFT))
            corners = [_corner(operator, a, b) for a in one for b in shifts]
        case "&" | "|" | "^":
            return _bitwise(operator, one, two)
        case _:
            corners = [_corner(operator, a, b) for a in one for b in two]
    return (min(corners), max(corners)) if corners else (0, 0)


def _modulo(one: Interval, two: Interval) -> Interval:
    """`%`: the sign is that of the divisor."""
    low, high = two
    if low == high and low > 0 and bounded(one) and one[0] // low == one[1] // low:
        return (one[0] % low, one[1] % low)
    least = -UNBOUNDED if infinite(low) else min(low + 1, 0)
    most = UNBOUNDED if infinite(high) else max(high - 1, 0)
    if one[0] >= 0 and low > 0:
        most = min(most, one[1])
    return (least, most)


def _remainder(one: Interval, two: Interval) -> Interval:
    """`rem`: the sign is that of the dividend, and the size is at most that of the dividend."""
    size = max(abs(two[0]), abs(two[1]))
    most = UNBOUNDED if infinite(size) else max(size - 1, 0)
    return (min(0, max(one[0], -most)), max(0, min(one[1], most)))


def _bitwise(operator: str, one: Interval, two: Interval) -> Interval:
    natural = [i for i in (one, two) if i[0] >= 0]
    if operator == "&" and natural:
        return (0, min(i[1] for i in natural))
    if not bounded(one) or not bounded(two):
        return (0, UNBOUNDED) if len(natural) == 2 else ANY
    bits = max(max(end, -end - 1).bit_length() for end in (*one, *two))
    return (-(1 << bits) if len(natural) < 2 else 0, (1 << bits) - 1)


def _corner(operator: str, a: int, b: int) -> int:
    """The result for two ends of intervals; they can be infinite."""
    if not infinite(a) and not infinite(b):
        return int(calculate(operator, a, b))
    match operator:
        case "*":
            return UNBOUNDED * ((a > 0) - (a < 0)) * ((b > 0) - (b < 0))
        case "/" | "quot":
            if infinite(a):
                return a if b > 0 else -a
            return -1 if operator == "/" and a != 0 and (a < 0) != (b < 0) else 0
        case "<<" | ">>":
            return a
        case "-":
            b = -b
    return a if infinite(a) else b
