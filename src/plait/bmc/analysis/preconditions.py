"""What a step would do in a state, as expressions over this state: when it is enabled, and which cells it accesses.

The body of a step is executed on expressions. A value that the step has written replaces later reads. A check that
fails and an index out of range do not disable a step: its process gets stuck. The environment chooses the inputs, so a
step is enabled if it is enabled for one choice. Choices that give the same results are tried once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from plait.bmc.analysis.failures import expressions
from plait.bmc.program.arithmetic import calculate, negate, operation
from plait.bmc.program.definition import (
    Action,
    Branch,
    Choice,
    Constant,
    Domain,
    Ensure,
    Expr,
    Goto,
    Input,
    Instruction,
    Not,
    Operation,
    Read,
    Require,
    Set,
    Value,
    Variable,
    Wrap,
    accesses,
    joined,
)
from plait.kernel.errors import UsageError

TRUE, FALSE = Constant(True), Constant(False)
_MOST = 256
"""The maximal number of choices of the environment that are tried."""
_HINT = "choose the number before the atomic section, or give it a smaller range"
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_ARRAYS = dict[Variable, tuple[tuple[Expr, Expr], ...]]


class InputsError(UsageError):
    """What a step does depends on its inputs in a way that cannot be expressed."""


class Touch(NamedTuple):
    """An access to a cell, if the step is enabled and the condition holds."""

    when: Expr
    variable: Variable
    at: Expr | None
    """The index."""
    writes: bool


class Effect(NamedTuple):
    """A step for one choice of the environment."""

    enabled: Expr
    touches: list[Touch]


def both(*parts: Expr) -> Expr:
    """The conjunction. Parts after a false one are not evaluated."""
    found: Expr = TRUE
    for part in parts:
        found = operation("&&", found, part)
    return found


def either(parts: Sequence[Expr]) -> Expr:
    """The disjunction."""
    found = [part for part in dict.fromkeys(parts) if part != FALSE]
    return joined(found, lambda a, b: operation("||", a, b)) if found else FALSE


def enabled(step: Instruction) -> Expr:
    """The condition that a step is enabled.

    >>> from plait.bmc import parse_program
    >>> program = parse_program("int x = 0; process p { assume(x == 1); }")
    >>> enabled(program.processes[0].instructions[0]) == operation("==", Read(program.variables[0]), Constant(1))
    True
    """
    return either([effect.enabled for effect in effects(step, set())])


def effects(step: Instruction, wanted: set[Variable]) -> list[Effect]:
    """What a step does: one or more effects, each for a choice of the environment. Accesses to `wanted` only."""
    whole = _walked(step, wanted, ())
    if not any(_inputs(e) for e in _conditions(whole)):
        return [whole]
    found: list[Effect] = []
    for choice in itertools.product(*_choices(step, list(_conditions(whole)))):
        effect = _walked(step, wanted, choice)
        if effect not in found:
            found.append(effect)
    return found


def _walked(step: Instruction, wanted: set[Variable], choice: tuple[Value, ...]) -> Effect:
    walk = _Walk(wanted, choice)
    walk.actions(step.body, TRUE, {}, {})
    return Effect(negate(either(walk.blocked)), walk.touches)


def _conditions(effect: Effect) -> Iterator[Expr]:
    yield effect.enabled
    for touch in effect.touches:
        yield touch.when
        if touch.at is not None:
            yield touch.at


def _parts(e: Expr) -> Iterator[Expr]:
    yield e
    match e:
        case Read(_, index) if index is not None:
            yield from _parts(index)
        case Not(operand) | Wrap(operand):
            yield from _parts(operand)
        case Operation(_, left, right):
            yield from _parts(left)
            yield from _parts(right)
        case Choice(condition, then, otherwise):
            for part in (condition, then, otherwise):
                yield from _parts(part)


def _inputs(e: Expr) -> set[int]:
    return {part.number for part in _parts(e) if isinstance(part, Input)}


def _choices(step: Instruction, conditions: list[Expr]) -> list[list[Value]]:
    """For each input, values that represent all of them."""
    found: list[list[Value]] = []
    for number, domain in enumerate(step.inputs):
        if not any(number in _inputs(e) for e in conditions):
            found.append([False if domain.kind == "bool" else domain.low or 0])
        elif domain.kind == "bool":
            found.append([False, True])
        elif domain.low is not None and domain.high is not None and domain.high - domain.low < _MOST:
            found.append(list(range(domain.low, domain.high + 1)))
        else:
            found.append(_representatives(step, number, domain, conditions))
    count = 1
    for values in found:
        count *= len(values)
    if count > _MOST:
        raise InputsError(f"line {step.place.line}: {step.label}: too many choices of the environment", hint=_HINT)
    return found


def _representatives(step: Instruction, number: int, domain: Domain, conditions: list[Expr]) -> list[Value]:
    """A number that is only compared with constants: between two constants, all numbers give the same results."""
    this = Input(number)
    constants: set[int] = set()
    compared = total = 0
    for part in (part for e in conditions for part in _parts(e)):
        match part:
            case Operation(operator, Input(n), Constant(value)) | Operation(operator, Constant(value), Input(n)) if (
                n == number and operator in _COMPARISONS
            ):
                constants.add(int(value))
                compared += 1
        total += part == this
    if compared != total:
        raise InputsError(
            f"line {step.place.line}: {step.label}: what the step does depends on a number of the environment",
            hint=_HINT,
        )
    near = {c + d for c in constants for d in (-1, 0, 1)} | {
        end for end in (domain.low, domain.high) if end is not None
    }
    return sorted(
        c for c in near
        if (domain.low is None or domain.low <= c) and (domain.high is None or c <= domain.high)
    )  # fmt: skip


def _calculated(operator: str, left: Expr, right: Expr) -> Expr:
    """An operation. Constants that have no result stay an operation: no run evaluates it."""
    if isinstance(left, Constant) and isinstance(right, Constant):
        try:
            return Constant(calculate(operator, left.value, right.value))
        except (ArithmeticError, ValueError):
            return Operation(operator, left, right)
    return operation(operator, left, right)


class _Walk:
    """The execution of a step on expressions."""

    def __init__(self, wanted: set[Variable], choice: tuple[Value, ...]) -> None:
        self.wanted, self.choice = wanted, choice
        self.blocked: list[Expr] = []
        self.touches: list[Touch] = []

    def matters(self, actions: Sequence[Action]) -> bool:
        """Whether actions can disable the step, or access a wanted variable."""
        for action in actions:
            if isinstance(action, Require):
                return True
            if isinstance(action, Branch) and (self.matters(action.then) or self.matters(action.otherwise)):
                return True
        reads, writes = accesses(tuple(actions))
        return not self.wanted.isdisjoint(reads | writes)

    def actions(self, actions: Sequence[Action], path: Expr, values: dict[Variable, Expr], arrays: _ARRAYS) -> None:
        """Execute actions, if a condition on the state before the step holds."""
        for n, action in enumerate(actions):
            if path == FALSE or not self.matters(actions[n:]):
                return
            if isinstance(action, Goto):
                return
            found: list[Expr] = []
            for e in expressions(action):
                value, fine = self.value(e, path, values, arrays)
                path = both(path, fine)
                found.append(value)
                if isinstance(action, Set) and len(found) == 1 and action.index is not None:
                    path = both(path, within(value, action.variable))
            match action:
                case Set(variable, None, _):
                    self.touch(path, variable, None, writes=True)
                    values = {**values, variable: found[0]}
                case Set(variable, _, _):
                    self.touch(path, variable, found[0], writes=True)
                    arrays = {**arrays, variable: (*arrays.get(variable, ()), (found[0], found[1]))}
                case Require():
                    self.blocked.append(both(path, negate(found[0])))
                    path = both(path, found[0])
                case Ensure():
                    path = both(path, found[0])
                case Branch(_, then, otherwise):
                    rest = tuple(actions[n + 1 :])
                    self.actions((*then, *rest), both(path, found[0]), values, arrays)
                    self.actions((*otherwise, *rest), both(path, negate(found[0])), values, arrays)
                    return

    def touch(self, path: Expr, variable: Variable, index: Expr | None, *, writes: bool) -> None:
        if variable in self.wanted and path != FALSE:
            self.touches.append(Touch(path, variable, index, writes))

    def value(self, e: Expr, path: Expr, values: dict[Variable, Expr], arrays: _ARRAYS) -> tuple[Expr, Expr]:
        """The value of an expression, and the condition that no index in it is out of range."""
        match e:
            case Read(variable, None):
                if variable not in values:
                    self.touch(path, variable, None, writes=False)
                return values.get(variable, e), TRUE
            case Read(variable, index) if index is not None:
                at, fine = self.value(index, path, values, arrays)
                fine = both(fine, within(at, variable))
                self.touch(both(path, fine), variable, at, writes=False)
                found: Expr = Read(variable, at)
                for written, new in arrays.get(variable, ()):
                    same = _calculated("==", at, written)
                    found = new if same == TRUE else found if same == FALSE else Choice(same, new, found)
                return found, fine
            case Input(number):
                return (Constant(self.choice[number]) if self.choice else e), TRUE
            case Not(operand):
                value, fine = self.value(operand, path, values, arrays)
                return negate(value), fine
            case Wrap(operand, bits, signed):
                value, fine = self.value(operand, path, values, arrays)
                return Wrap(value, bits, signed), fine
            case Operation("&&" | "||" as operator, left, right):
                one, fine = self.value(left, path, values, arrays)
                goes_on = one if operator == "&&" else negate(one)
                two, also = self.value(right, both(path, fine, goes_on), values, arrays)
                return _calculated(operator, one, two), both(fine, operation("||", negate(goes_on), also))
            case Operation(operator, left, right):
                one, fine = self.value(left, path, values, arrays)
                two, also = self.value(right, both(path, fine), values, arrays)
                return _calculated(operator, one, two), both(fine, also)
            case Choice(condition, then, otherwise):
                test, fine = self.value(condition, path, values, arrays)
                one, first = self.value(then, both(path, fine, test), values, arrays)
                two, second = self.value(otherwise, both(path, fine, negate(test)), values, arrays)
                if isinstance(test, Constant):
                    return (one, both(fine, first)) if test.value else (two, both(fine, second))
                sides = TRUE if first == second == TRUE else Choice(test, first, second)
                return Choice(test, one, two), both(fine, sides)
            case _:
                return e, TRUE


def within(index: Expr, variable: Variable) -> Expr:
    """The condition that an index is in range."""
    return both(_calculated("<=", Constant(0), index), _calculated("<", index, Constant(variable.cells)))
