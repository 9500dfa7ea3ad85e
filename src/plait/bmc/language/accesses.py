"""One shared access per step: further accesses of a statement become steps of their own, before it.

A value that is read early is kept in a temporary variable. The order is the order of evaluation: the index of a cell
before the cell, left before right. The right side of `&&`, `||` and the branches of `c ? a : b` are read only if they
are evaluated.
"""

from __future__ import annotations

from typing import Protocol

from plait.bmc.program.arithmetic import is_truth
from plait.bmc.program.definition import (
    Action,
    Branch,
    Choice,
    Domain,
    Ensure,
    Expr,
    Goto,
    Kind,
    Not,
    Operation,
    Read,
    Require,
    Set,
    Variable,
    Wrap,
)
from plait.bmc.program.source import Place


class Steps(Protocol):
    """The process that gets the steps."""

    name: str
    number: int
    inputs: list[Domain]

    def new_step(self, place: Place) -> int: ...

    def fill(self, at: int, actions: list[Action]) -> None: ...

    def add_variable(self, variable: Variable) -> None: ...


class SingleAccesses:
    """Divides the accesses of one process."""

    def __init__(self, process: Steps, contended: frozenset[str]) -> None:
        self.process, self.contended = process, contended
        self.temporaries: dict[Kind, list[Variable]] = {"int": [], "bool": []}
        self.used: dict[Kind, int] = {"int": 0, "bool": 0}
        self.place = Place(1, 1)

    def single(self, e: Expr, place: Place) -> Expr:
        """The same value with at most one access; steps before it have the others."""
        self._begin(place)
        return self._value(e, last=True)

    def single_action(self, action: Action, place: Place) -> Action:
        """The same action with at most one access; steps before it have the others."""
        self._begin(place)
        match action:
            case Set(variable, index, value):
                shared = self._shared(variable)
                if index is not None:
                    index = self._value(index, last=not shared and not self._count(value))
                return Set(variable, index, self._value(value, last=not shared))
            case Ensure(condition, check, text):
                return Ensure(self._value(condition, last=True), check, text)
            case Require(condition):
                return Require(self._lock(condition))
            case _:
                return action

    def _lock(self, e: Expr) -> Expr:
        """The condition of a lock that is free: its index is read before."""
        match e:
            case Not(Read(variable, index)) if index is not None:
                return Not(Read(variable, self._value(index, last=False)))
            case _:
                return e

    def _begin(self, place: Place) -> None:
        self.place = place
        self.used = {"int": 0, "bool": 0}

    def _shared(self, variable: Variable) -> bool:
        return variable.process is None and variable.name in self.contended

    def _count(self, e: Expr | None) -> int:
        """The number of accesses in an expression."""
        match e:
            case Read(variable, index):
                return self._shared(variable) + self._count(index)
            case Not(operand) | Wrap(operand):
                return self._count(operand)
            case Operation(_, left, right):
                return self._count(left) + self._count(right)
            case Choice(condition, then, otherwise):
                return self._count(condition) + self._count(then) + self._count(otherwise)
            case _:
                return 0

    def _value(self, e: Expr, *, last: bool) -> Expr:
        """The value without accesses; with `last`, with at most the last access."""
        count = self._count(e)
        if count == 0 or (count == 1 and last):
            return e
        match e:
            case Read(variable, index):
                shared = self._shared(variable)
                found = Read(variable, None if index is None else self._value(index, last=last and not shared))
                return found if last or not shared else self._early(found, variable.kind)
            case Not(operand):
                return Not(self._value(operand, last=last))
            case Wrap(operand, bits, signed):
                return Wrap(self._value(operand, last=last), bits, signed)
            case Operation("&&" | "||", _, right) if self._count(right):
                return self._lazy(e)
            case Operation(name, left, right):
                one = self._value(left, last=last and not self._count(right))
                return Operation(name, one, self._value(right, last=last))
            case Choice(condition, then, otherwise) if not self._count(then) and not self._count(otherwise):
                return Choice(self._value(condition, last=last), then, otherwise)
            case Choice():
                return self._chosen(e)
            case _:
                return e

    def _temporary(self, kind: Kind) -> Variable:
        number, known = self.used[kind], self.temporaries[kind]
        self.used[kind] += 1
        if number == len(known):
            name = f"{self.process.name}.{'truth' if kind == 'bool' else 'value'} {number + 1}"
            initial = (False,) if kind == "bool" else (0,)
            known.append(Variable(name, kind, None, initial, process=self.process.number, temporary=True))
            self.process.add_variable(known[-1])
        return known[number]

    def _early(self, e: Expr, kind: Kind) -> Expr:
        """A step that keeps a value in a temporary variable."""
        kept = self._temporary(kind)
        at = self.process.new_step(self.place)
        self.process.fill(at, [Set(kept, None, e), Goto(at + 1)])
        return Read(kept)

    def _lazy(self, e: Operation) -> Expr:
        """`a && b` or `a || b`: b is read only if a does not decide."""
        kept = self._temporary("bool")
        left = self._value(e.left, last=True)
        at = self.process.new_step(self.place)
        right = self._value(e.right, last=True)
        after = self.process.new_step(self.place)
        self.process.fill(after, [Set(kept, None, right), Goto(after + 1)])
        go, skip = (Goto(at + 1),), (Goto(after + 1),)
        decision = Branch(Read(kept), *((go, skip) if e.operator == "&&" else (skip, go)))
        self.process.fill(at, [Set(kept, None, left), decision])
        return Read(kept)

    def _chosen(self, e: Choice) -> Expr:
        """`c ? a : b`: only one of a and b is read."""
        kept = self._temporary("bool" if is_truth(e.then) else "int")
        condition = self._value(e.condition, last=True)
        at = self.process.new_step(self.place)
        then = self._value(e.then, last=True)
        first = self.process.new_step(self.place)
        otherwise = self._value(e.otherwise, last=True)
        second = self.process.new_step(self.place)
        self.process.fill(first, [Set(kept, None, then), Goto(second + 1)])
        self.process.fill(second, [Set(kept, None, otherwise), Goto(second + 1)])
        self.process.fill(at, [Branch(condition, (Goto(at + 1),), (Goto(first + 1),))])
        return Read(kept)
