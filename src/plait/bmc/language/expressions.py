"""Expressions: resolve types, names and constants; and the arithmetic that all analyses share."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterable, Mapping
from typing import TypeVar

from plait.bmc.language import syntax as s
from plait.bmc.program.arithmetic import LOGIC, negate, operation
from plait.bmc.program.definition import (
    Choice,
    Constant,
    Ended,
    Expr,
    Kind,
    Read,
    Value,
    Variable,
    joined,
)
from plait.bmc.program.source import Source
from plait.kernel.errors import ModelError

MANY = 100_000
"""The maximal number of values of a quantifier, instances of a process, or cells of an array."""

T = TypeVar("T")

_ARITHMETIC, _EQUALITY = ("+", "-", "*", "/", "%"), ("==", "!=")


class Scope:
    """The names that are visible at a place, and their meanings."""

    def __init__(
        self,
        source: Source,
        constants: Mapping[str, Value],
        variables: Mapping[str, Variable],
        locals_: Mapping[str, Mapping[int | None, Mapping[str, Variable]]] | None = None,
        numbers: Mapping[str, Mapping[int | None, int]] | None = None,
    ) -> None:
        self.source, self.constants, self.variables = source, dict(constants), variables
        self.locals = locals_ if locals_ is not None else {}
        """By process and index (None: not an array of processes): the variables of the process."""
        self.numbers = numbers if numbers is not None else {}
        """By process and index: the number of the process."""

    def with_constants(self, **more: Value) -> Scope:
        """The same scope with more constants."""
        return Scope(self.source, self.constants | more, self.variables, self.locals, self.numbers)

    def error(self, node: s.Node, message: str, hint: str | None = None) -> ModelError:
        return self.source.error(node.place, message, hint)

    # -- kinds ---------------------------------------------------------------------------------------------------------

    def typed(self, e: s.Expression, expected: Kind) -> Expr:
        """Resolve an expression that must have the expected type."""
        found, kind = self.expression(e)
        if kind != expected:
            words = {"int": "a number (int)", "bool": "a truth value (bool)"}
            compare = f"compare it, for example {e.place.text or 'x'} != 0" if expected == "bool" else "use c ? 1 : 0"
            raise self.error(e, f"{e.place.text or 'this'} is {words[kind]}, expected {words[expected]}", compare)
        return found

    def number(self, e: s.Expression, what: str) -> int:
        """The value of a constant expression that must be a number."""
        found = self.typed(e, "int")
        if not isinstance(found, Constant):
            raise self.error(e, f"{what} must be a constant, not {e.place.text or 'a variable'}", "declare a const")
        return int(found.value)

    def expression(self, e: s.Expression) -> tuple[Expr, Kind]:
        """Resolve an expression, and return its type too."""
        match e:
            case s.Number(_, value):
                return Constant(value), "int"
            case s.Truth(_, value):
                return Constant(value), "bool"
            case s.Name():
                return self._name(e)
            case s.Done():
                return self._done(e), "bool"
            case s.Unary(_, "!", operand):
                return negate(self.typed(operand, "bool")), "bool"
            case s.Unary(_, _, operand):
                return operation("-", Constant(0), self.typed(operand, "int")), "int"
            case s.Binary():
                return self._binary(e)
            case s.Conditional(_, condition, then, otherwise):
                return self._conditional(condition, then, otherwise)
            case s.Quantified():
                return self._quantified(e), "bool"

    def _binary(self, e: s.Binary) -> tuple[Expr, Kind]:
        if e.operator in LOGIC:
            return operation(e.operator, self.typed(e.left, "bool"), self.typed(e.right, "bool")), "bool"
        if e.operator in _EQUALITY:
            left, kind = self.expression(e.left)
            return operation(e.operator, left, self.typed(e.right, kind)), "bool"
        left, right = self.typed(e.left, "int"), self.typed(e.right, "int")
        if e.operator in ("/", "%") and not (isinstance(right, Constant) and right.value > 0):
            raise self.error(
                e.right, f"the divisor {e.right.place.text} is not a positive constant", "divide by a constant above 0"
            )
        return operation(e.operator, left, right), "int" if e.operator in _ARITHMETIC else "bool"

    def _conditional(self, condition: s.Expression, then: s.Expression, otherwise: s.Expression) -> tuple[Expr, Kind]:
        test = self.typed(condition, "bool")
        left, kind = self.expression(then)
        right = self.typed(otherwise, kind)
        if isinstance(test, Constant):
            return (left if test.value else right), kind
        return Choice(test, left, right), kind

    def _quantified(self, e: s.Quantified) -> Expr:
        low, high = self.number(e.low, "the range of a quantifier"), self.number(e.high, "the range of a quantifier")
        if high - low > MANY:
            raise self.error(e, f"{e.variable} has too many values: {high - low + 1:,}", f"the maximum is {MANY:,}")
        operator = "&&" if e.universal else "||"
        parts = [self.with_constants(**{e.variable: value}).typed(e.body, "bool") for value in range(low, high + 1)]
        return joined(parts or [Constant(e.universal)], functools.partial(operation, operator))

    # -- names ---------------------------------------------------------------------------------------------------------

    def _name(self, e: s.Name) -> tuple[Expr, Kind]:
        if e.owner is None and e.name in self.constants:
            if e.index is not None:
                raise self.error(e, f"{e.name} is a constant: it has no cells", f"write {e.name}")
            value = self.constants[e.name]
            return Constant(value), "bool" if isinstance(value, bool) else "int"
        variable, index = self.cell(e)
        return Read(variable, index), variable.kind

    def cell(self, e: s.Name) -> tuple[Variable, Expr | None]:
        """The variable of a name, and its index if it is an array."""
        variable = self._variable(e)
        if variable.size is None:
            if e.index is not None:
                raise self.error(e, f"{e.name} is not an array", f"write {e.name}, or declare {e.name}[SIZE]")
            return variable, None
        if e.index is None:
            raise self.error(
                e, f"{e.name} is an array of {variable.size} cells", f"select a cell, for example {e.name}[0]"
            )
        return variable, self.typed(e.index, "int")

    def _variable(self, e: s.Name) -> Variable:
        if e.owner is None:
            if e.name not in self.variables:
                if e.name in self.constants:
                    raise self.error(e, f"{e.name} is a constant: it cannot be changed", "declare a variable")
                raise self._unknown(e, "variable", e.name, [*self.variables, *self.constants])
            return self.variables[e.name]
        instances = self._instances(e, e.owner)
        index = None if e.owner_index is None else self.number(e.owner_index, "the index of a process")
        names = self._instance(e, e.owner, index, instances)
        if e.name not in names:
            raise self._unknown(e, f"variable of {e.owner}", e.name, names)
        return names[e.name]

    def _done(self, e: s.Done) -> Expr:
        if e.process is None:
            every: Expr = Constant(True)
            for instances in self.numbers.values():
                for number in instances.values():
                    every = operation("&&", every, Ended(number))
            return every
        self._instances(e, e.process)
        index = None if e.index is None else self.number(e.index, "the index of a process")
        return Ended(self._instance(e, e.process, index, self.numbers[e.process]))

    def _instances(self, e: s.Node, process: str) -> Mapping[int | None, Mapping[str, Variable]]:
        if not self.locals:
            raise self.error(
                e,
                "a process cannot read the locals of another process",
                "use a shared variable, declared outside of processes",
            )
        if process not in self.locals:
            raise self._unknown(e, "process", process, self.locals)
        return self.locals[process]

    def _instance(self, e: s.Node, process: str, index: int | None, instances: Mapping[int | None, T]) -> T:
        if index in instances:
            return instances[index]
        known = ", ".join(f"{process}[{i}]" if i is not None else process for i in list(instances)[:8])
        given = process if index is None else f"{process}[{index}]"
        raise self.error(e, f"there is no process {given}", f"the processes are: {known or 'none'}")

    def _unknown(self, e: s.Node, what: str, name: str, known: Iterable[str]) -> ModelError:
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]}?" if near else "declare it first, for example int x = 0;"
        return self.error(e, f"there is no {what} {name}", hint)
