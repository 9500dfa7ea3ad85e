"""Symbolic execution of a step: its guard, its reads and writes with their conditions, its next locations, as terms.

Both encodings use it. They differ in the source of values (`load`) and in the use of the writes. Read and write sets
are those of Saissi 2019, section 4.4.1, exact for the state of the step. An access is in the set under the condition
that it occurs, with its index in this state (the conditional dependence of section 4.5.2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from plait.bmc.analysis.intervals import Interval
from plait.bmc.analysis.ranges import Ranges
from plait.bmc.encoding.smt import Formula, Term
from plait.bmc.program.arithmetic import ARITHMETIC
from plait.bmc.program.definition import (
    BOUNDS,
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
    Kind,
    Not,
    Operation,
    Program,
    Read,
    Require,
    Set,
    Variable,
    Wrap,
)

Load = Callable[[Variable, Term, Term], Term]
"""The value of a variable at an index (0 if it is not an array), read under a condition."""
Places = Callable[[int, int], Term]
"""Whether a process is at a location."""


class Access(NamedTuple):
    """A read or a write: the cell, the condition and the value."""

    variable: Variable
    at: Term
    """The index."""
    when: Term
    value: Term


class Outcome(NamedTuple):
    """The effect of a step."""

    enabled: Term
    reads: list[Access]
    writes: list[Access]
    """In program order: of two writes to one cell, the later one wins."""
    targets: list[tuple[Term, int]]
    """The next locations with their conditions; stuck is one of them."""
    counters: list[tuple[int, Term]]
    """The processes whose program counters the step reads, with conditions."""


def run(
    f: Formula,
    program: Program,
    ranges: Ranges,
    step: Instruction,
    load: Load,
    inputs: Sequence[Term],
    at: Places,
) -> Outcome:
    """Execute a step on terms. `at`: the locations of processes before the step."""
    run = _Run(f, program, ranges, load, inputs, at)
    run.kinds = [domain.kind for domain in step.inputs]
    return run.outcome(step)


def evaluate(f: Formula, program: Program, ranges: Ranges, e: Expr, load: Load, at: Places) -> Term:
    """Evaluate an expression of a property or of the initial condition on terms."""
    run = _Run(f, program, ranges, load, (), at)
    run.known = {}
    return run.value(e, True)


def domain(f: Formula, input_: Term, domain: Domain) -> Term:
    """The condition that an input has one of its possible values."""
    if domain.low is None or domain.high is None:
        return True
    return between(f, input_, (domain.low, domain.high))


def between(f: Formula, number: Term, limits: Interval) -> Term:
    """The condition that a number is in a range. Every number of the width of the formula is in a range without ends."""
    low, high = (f.wrap(end) for end in limits)
    least, most = (None, None) if f.bits is None else (-1 << (f.bits - 1), (1 << (f.bits - 1)) - 1)
    above = low == least or f.operate("<=", low, number)
    return f.all(above, high == most or f.operate("<=", number, high))


class _Run:
    def __init__(
        self,
        f: Formula,
        program: Program,
        ranges: Ranges,
        load: Load,
        inputs: Sequence[Term],
        at: Places,
    ) -> None:
        self.f, self.program, self.ranges, self.load = f, program, ranges, load
        self.inputs, self.at = inputs, at
        self.kinds: list[Kind] = []
        """The kinds of the inputs."""
        self.known: dict[int, Term] | None = None
        """In a state: the terms of expressions (by `id`). Parts of an expression can occur in many places of it."""
        self.reads: list[Access] = []
        self.writes: list[Access] = []
        self.targets: list[tuple[Term, int]] = []
        self.enabled: list[Term] = []
        self.failed: list[Term] = []
        """Conditions under which an index of the current action is out of range."""
        self.stuck: list[Term] = []
        self.counters: list[tuple[int, Term]] = []

    def outcome(self, step: Instruction) -> Outcome:
        self.actions(step.body, True)
        stuck = self.f.any(*self.stuck)
        if stuck is not False:
            self.targets.append((stuck, self.program.processes[step.process].stuck))
        return Outcome(self.f.all(*self.enabled), self.reads, self.writes, self.targets, self.counters)

    def actions(self, actions: Sequence[Action], path: Term) -> Term:
        """Execute actions under a condition, and return the condition under which the step continues after them."""
        f = self.f
        for action in actions:
            if path is False:
                break
            match action:
                case Set(variable, index, value):
                    at = self.index(action, variable, index, path)
                    new = self.value(value, path)
                    path = self.survive(path)
                    if path is not False:
                        self.writes.append(Access(variable, at, path, new))
                case Require(condition):
                    holds = self.value(condition, path)
                    path = self.survive(path)
                    self.enabled.append(f.implies(path, holds))
                    path = f.all(path, holds)
                case Ensure(condition, check):
                    holds = self.value(condition, path)
                    path = self.survive(path)
                    self.fail(check, f.all(path, f.not_(holds)))
                    path = f.all(path, holds)
                case Branch(condition, then, otherwise):
                    holds = self.value(condition, path)
                    path = self.survive(path)
                    ways = [self.actions(then, f.all(path, holds)), self.actions(otherwise, f.all(path, f.not_(holds)))]
                    path = f.any(*ways)
                case Goto(location):
                    self.targets.append((path, location))
                    return False
        return path

    def survive(self, path: Term) -> Term:
        """The path condition without the states in which an index is out of range."""
        failed = self.f.any(*self.failed)
        self.failed = []
        self.fail(BOUNDS, failed)
        return self.f.all(path, self.f.not_(failed))

    def fail(self, name: str, when: Term) -> None:
        if when is False:
            return
        flag = self.program.flag(name)
        assert flag is not None
        self.writes.append(Access(flag, 0, when, True))
        self.stuck.append(when)

    def index(self, access: Read | Set, variable: Variable, index: Expr | None, path: Term) -> Term:
        if index is None:
            return 0
        at = self.value(index, path)
        if not self.ranges.safe(access):
            f = self.f
            inside = f.all(f.operate("<=", 0, at), f.operate("<", at, f.wrap(variable.cells)))
            if f.bits is not None and variable.cells > (1 << (f.bits - 1)) - 1:
                inside = f.operate("<=", 0, at)  # no number of this width is too large
            self.failed.append(f.all(path, f.not_(inside)))
        return at

    def value(self, e: Expr, path: Term) -> Term:
        if self.known is None:
            return self.calculated(e, path)
        if id(e) not in self.known:
            self.known[id(e)] = self.calculated(e, path)
        return self.known[id(e)]

    def calculated(self, e: Expr, path: Term) -> Term:
        f = self.f
        match e:
            case Constant(value):
                return value if isinstance(value, bool) else f.wrap(value)
            case Read(variable, index):
                return self.read(variable, self.index(e, variable, index, path), path)
            case Input(number):
                return self.inputs[number]
            case Ended(process):
                self.counters.append((process, path))
                return self.at(process, self.program.processes[process].end)
            case At(process, location):
                self.counters.append((process, path))
                return self.at(process, location)
            case Wrap(operand, bits, signed):
                found = self.value(operand, path)
                return found if self.ranges.exact(e) else f.modulo(found, bits, signed)
            case Not(operand):
                return f.not_(self.value(operand, path))
            case Operation("&&", left, right):
                one = self.value(left, path)
                return f.all(one, self.value(right, f.all(path, one))) if one is not False else False
            case Operation("||", left, right):
                one = self.value(left, path)
                return f.any(one, self.value(right, f.all(path, f.not_(one)))) if one is not True else True
            case Operation("==" | "!=" as operator, left, right) if self.boolean(left):
                same = f.same(self.value(left, path), self.value(right, path))
                return same if operator == "==" else f.not_(same)
            case Operation(operator, left, right):
                return f.operate(operator, self.value(left, path), self.value(right, path))
            case Choice(condition, then, otherwise):
                test = self.value(condition, path)
                if not isinstance(test, str):
                    return self.value(then if test else otherwise, path)
                sort = None if self.boolean(then) else f.sort
                one = self.value(then, f.all(path, test))
                two = self.value(otherwise, f.all(path, f.not_(test)))
                return f.select(test, one, two, sort)

    def read(self, variable: Variable, at: Term, path: Term) -> Term:
        """The last value that the step itself wrote, or else the value before the step."""
        f = self.f
        found: list[tuple[Term, Term]] = []
        fresh = path
        for write in reversed(self.writes):
            if write.variable is variable:
                hit = f.all(write.when, f.equal(write.at, at))
                found.append((hit, write.value))
                fresh = f.all(fresh, f.not_(hit))
                if hit is True or hit == path:
                    break
        sort = None if variable.kind == "bool" else f.sort
        value: Term = False if variable.kind == "bool" else 0
        if fresh is not False:
            value = self.load(variable, at, fresh)
            self.reads.append(Access(variable, at, fresh, value))
        elif found:
            value = found.pop()[1]
        for hit, written in reversed(found):
            value = f.select(hit, written, value, sort)
        return value

    def boolean(self, e: Expr) -> bool:
        """Whether an expression is a truth value."""
        match e:
            case Constant(value):
                return isinstance(value, bool)
            case Read(variable, _):
                return variable.kind == "bool"
            case Operation(operator, _, _):
                return operator not in ARITHMETIC
            case Choice(_, then, _):
                return self.boolean(then)
            case Input(number):
                return self.kinds[number] == "bool"
            case Wrap():
                return False
            case _:
                return True


def select(f: Formula, variable: Variable, cells: Sequence[Term], index: Term) -> Term:
    """The cell at an index. Out of range, it is any cell."""
    if not isinstance(index, str):
        return cells[index if 0 <= index < len(cells) else 0]
    sort = None if variable.kind == "bool" else f.sort
    found = cells[-1]
    for k in reversed(range(len(cells) - 1)):
        found = f.select(f.equal(index, k), cells[k], found, sort)
    return found
