"""Inputs that a program only compares with constants: a few values stand for all of them.

An input can be any number, for example `__VERIFIER_nondet_int()`. Suppose that its value, and each copy of it, is used
in comparisons with constants only. Two values on the same side of each constant lead to the same steps. So it is enough
to enumerate each constant, and one value between two of them. States that differ in such values only are bisimilar.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from plait.bmc.program.definition import (
    Action,
    At,
    Branch,
    Choice,
    Constant,
    Domain,
    Ended,
    Ensure,
    Expr,
    Goto,
    Input,
    Instruction,
    Not,
    Operation,
    Program,
    Read,
    Require,
    Set,
    Variable,
    Wrap,
)

_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


class Source(NamedTuple):
    """An input of a step."""

    process: int
    location: int
    number: int


Holder = Source | Variable
"""What has a value that may come from an input."""


class Representatives:
    """For each input that is only compared with constants: values that stand for all values of its domain."""

    def __init__(self, program: Program, watched: Sequence[Expr]) -> None:
        self.groups: dict[Holder, Holder] = {}
        self.constants: dict[Holder, set[int]] = {}
        self.calculated: set[Holder] = set()
        """What is used in another way."""
        self.step: Instruction | None = None
        for code in program.processes:
            for step in code.instructions:
                self.step = step
                self._actions(step.body)
                if step.owner is not None:
                    self._used(step.owner)
        self.step = None
        for e in (*program.initial, *watched, *(p.condition for p in program.properties)):
            self._used(e)
        self._spread()

    def values(self, source: Source, domain: Domain) -> list[int] | None:
        """Values that stand for all values of an input. None: its value matters in another way."""
        group = self._root(source)
        if group in self.calculated or domain.kind == "bool":
            return None
        return list(_chosen(sorted(self.constants.get(group, ())), domain))

    # -- which values are used how -------------------------------------------------------------------------------------

    def _actions(self, actions: Iterable[Action]) -> None:
        for action in actions:
            match action:
                case Set(variable, index, value):
                    self._flows(value, variable if index is None and variable.size is None else None)
                    if index is not None:
                        self._used(index)
                case Require(condition) | Ensure(condition):
                    self._used(condition)
                case Branch(condition, then, otherwise):
                    self._used(condition)
                    self._actions(then)
                    self._actions(otherwise)
                case Goto():
                    pass

    def _flows(self, e: Expr, to: Variable | None) -> None:
        """A value becomes that of a variable. None: of something else, so it must not come from an input."""
        holder = self._holder(e)
        if holder is not None and to is not None:
            self._join(holder, to)
        elif isinstance(e, Choice) and to is not None:
            self._used(e.condition)
            self._flows(e.then, to)
            self._flows(e.otherwise, to)
        else:
            self._used(e)

    def _used(self, e: Expr) -> None:
        """An expression is evaluated: all inputs in it are calculated with, except in comparisons with constants."""
        match e:
            case Operation(operator, left, right) if operator in _COMPARISONS:
                for one, other in ((left, right), (right, left)):
                    holder = self._holder(one)
                    if holder is not None and isinstance(other, Constant):
                        self.constants.setdefault(holder, set()).add(int(other.value))
                        return
                self._used(left)
                self._used(right)
            case Input() | Read(index=None):
                holder = self._holder(e)
                if holder is not None:
                    self.calculated.add(holder)
            case Read(_, index) if index is not None:
                self._used(index)
            case Not(operand) | Wrap(operand):
                self._used(operand)
            case Operation(_, left, right):
                self._used(left)
                self._used(right)
            case Choice(condition, then, otherwise):
                for part in (condition, then, otherwise):
                    self._used(part)
            case Constant() | Ended() | At():
                pass

    def _holder(self, e: Expr) -> Holder | None:
        """The input or the variable whose value an expression has."""
        match e:
            case Input(number) if self.step is not None:
                return Source(self.step.process, self.step.location, number)
            case Read(variable, None) if variable.size is None:
                return variable
            case Wrap(operand, bits, signed):
                # A conversion that changes no value.
                low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
                known = self._range(operand)
                return self._holder(operand) if known is not None and low <= known[0] and known[1] <= high else None
            case _:
                return None

    def _range(self, e: Expr) -> tuple[int, int] | None:
        match e:
            case Input(number) if self.step is not None:
                domain = self.step.inputs[number]
                return None if domain.low is None or domain.high is None else (domain.low, domain.high)
            case Wrap(_, bits, signed):
                return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
            case _:
                return None

    # -- groups of inputs and variables --------------------------------------------------------------------------------

    def _root(self, of: Holder) -> Holder:
        while of in self.groups:
            of = self.groups[of]
        return of

    def _join(self, one: Holder, other: Holder) -> None:
        one, other = self._root(one), self._root(other)
        if one != other:
            self.groups[one] = other

    def _spread(self) -> None:
        """What is known of a part of a group is known of the whole group."""
        self.calculated = {self._root(holder) for holder in self.calculated}
        constants: dict[Holder, set[int]] = {}
        for holder, found in self.constants.items():
            constants.setdefault(self._root(holder), set()).update(found)
        self.constants = constants


def _chosen(constants: list[int], domain: Domain) -> Iterable[int]:
    """Each constant, and one value between two of them, if they are in the domain."""
    low, high = domain.low, domain.high
    inside = [c for c in constants if (low is None or low <= c) and (high is None or c <= high)]
    if not inside:
        yield low if low is not None else high if high is not None else 0
        return
    if low is None or low < inside[0]:
        yield inside[0] - 1
    for one, following in zip(inside, [*inside[1:], None], strict=True):
        yield one
        if (one + 1 < following) if following is not None else (high is None or one < high):
            yield one + 1
