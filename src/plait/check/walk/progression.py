"""What is still open of a temporal property after the states of a run so far.

The formula is *progressed* through each state (Bacchus and Kabanza 2000): the result is what the rest of the run must
satisfy. If it is true, every continuation satisfies the property; if it is false, none does.
"""

from __future__ import annotations

from collections.abc import Callable

from plait.model.temporal import (
    And,
    Atom,
    Constant,
    Finally,
    Formula,
    Globally,
    Implies,
    Next,
    Not,
    Or,
    Release,
    Until,
    WeakUntil,
)

TRUE, FALSE = Constant(True), Constant(False)


def progressed(formula: Formula, holds: Callable[[Atom], bool]) -> Formula:
    """What must be true from the next state on, so that the formula is true in this state."""

    def on(part: Formula) -> Formula:
        return progressed(part, holds)

    match formula:
        case Constant():
            return formula
        case Atom():
            return Constant(holds(formula))
        case Not():
            return negated(on(formula.of))
        case And():
            return both(on(formula.left), on(formula.right))
        case Or():
            return either(on(formula.left), on(formula.right))
        case Implies():
            return either(negated(on(formula.left)), on(formula.right))
        case Next():
            return formula.of
        case Finally():
            return either(on(formula.of), formula)
        case Globally():
            return both(on(formula.of), formula)
        case Until() | WeakUntil():
            return either(on(formula.right), both(on(formula.left), formula))
        case Release():
            return both(on(formula.right), either(on(formula.left), formula))
    raise TypeError(f"{formula!r} is not a formula")


def negated(part: Formula) -> Formula:
    """The negation, without a double one."""
    match part:
        case Constant(value):
            return Constant(not value)
        case Not():
            return part.of
    return Not(part)


def both(left: Formula, right: Formula) -> Formula:
    """The conjunction. What is said twice is said once."""
    return _joined(And, left, right, neutral=TRUE, final=FALSE)


def either(left: Formula, right: Formula) -> Formula:
    """The disjunction."""
    return _joined(Or, left, right, neutral=FALSE, final=TRUE)


def _joined(kind: type[And] | type[Or], left: Formula, right: Formula, neutral: Constant, final: Constant) -> Formula:
    parts = [part for part in dict.fromkeys([*_parts(kind, left), *_parts(kind, right)]) if part != neutral]
    if final in parts:
        return final
    made: Formula = neutral
    for part in reversed(parts):
        made = part if made == neutral else kind(part, made)
    return made


def _parts(kind: type[And] | type[Or], formula: Formula) -> list[Formula]:
    if isinstance(formula, kind):
        return [*_parts(kind, formula.left), *_parts(kind, formula.right)]
    return [formula]
