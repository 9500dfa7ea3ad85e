"""A program in the flat form of the native enumeration: code in postfix order, as `rust/src/bmc/program.rs` defines it.

Lowering also decides where numbers wrap around: with a width, after every operation and before every write, as in the
interpreter. Native code knows only explicit wraps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from plait._native import BmcProgram
from plait.bmc.analysis.ranges import ranges
from plait.bmc.analysis.representatives import Representatives, Source
from plait.bmc.analysis.unused_assignments import Liveness
from plait.bmc.execution.interpreter import MOST_VALUES
from plait.bmc.program.arithmetic import ARITHMETIC, is_truth, wrapped
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
    Not,
    Operation,
    ProcessCode,
    Program,
    Read,
    Require,
    Set,
    Value,
    Variable,
    Wrap,
    accesses,
    variables_of,
)

_MODULAR = ("+", "-", "*", "<<")
"""The operators that can be calculated modulo 2^64 if their result wraps around anyway."""
_BITWISE = ("&", "|", "^")
_WORD = 64


def lowered(program: Program, width: int | None, watched: Sequence[Expr], liveness: bool) -> BmcProgram:
    """The flat form. `watched` are the conditions to look for. `liveness`: locals that later steps do not read are 0.

    Raises OverflowError if a constant needs more than 128 bits.
    """
    return _Lowering(program, width, watched, liveness).program


class _Lowering:
    def __init__(self, program: Program, width: int | None, watched: Sequence[Expr], liveness: bool) -> None:
        self.source, self.width, self.offsets = program, width, program.offsets
        self.flags = {v.name: v for v in program.variables if v.hidden}
        self.ops: list[tuple[str, int, int]] = []
        self.large: list[int] = []
        self.domains: list[list[int] | None] = []
        self.known: dict[tuple[str, int | None, int | None], int] = {}
        self.inputs: tuple[Domain, ...] = ()
        self.ranges: dict[Variable, tuple[int, int]] = {}
        initial = [cell for variable in program.variables for cell in self._initial(variable)]
        self.unused = self._unused_inputs(watched) if liveness else set()
        # With a width, comparisons wrap around: values between two constants are not alike.
        self.representatives = Representatives(program, watched) if width is None and liveness else None
        dead = self._dead(watched) if liveness else [[[]] * (code.stuck + 1) for code in program.processes]
        processes = [
            ([self._instruction(step) for step in code.instructions], there, code.spawned, code.required)
            for code, there in zip(program.processes, dead, strict=True)
        ]
        conditions = [self._condition(e) for e in program.initial]
        properties = [self._condition(e) for e in watched]
        self.program = BmcProgram(
            ops=self.ops,
            variables=[
                (v.cells, *self.ranges[v], v.process is None and not v.hidden) for v in program.variables
            ],
            processes=processes,
            domains=self.domains,
            initial=initial,
            large=self.large,
            conditions=conditions,
            properties=properties,
            bounds=self.offsets[self.flags[BOUNDS]] if BOUNDS in self.flags else None,
        )  # fmt: skip

    # -- variables -----------------------------------------------------------------------------------------------------

    def _wrapped(self, value: Value) -> int:
        if self.width is None or isinstance(value, bool):
            return int(value)
        return wrapped(value, self.width, True)

    def _initial(self, variable: Variable) -> list[tuple[bool, int]]:
        """For each cell, whether it is free, and its domain or its value."""
        cells = []
        values = [self._wrapped(v) for v in variable.initial if v is not None]
        for value in variable.initial:
            if value is None:
                number = self._domain(Domain(variable.kind, variable.low, variable.high))
                values += self.domains[number] or []
                cells.append((True, number))
            else:
                cells.append((False, self._wrapped(value)))
        self.ranges[variable] = (min(values, default=0), max(values, default=0))
        return cells

    def _domain(self, domain: Domain) -> int:
        """The number of a domain."""
        key = (domain.kind, domain.low, domain.high)
        if key not in self.known:
            self.known[key] = len(self.domains)
            self.domains.append(self._values(domain))
        return self.known[key]

    def _values(self, domain: Domain) -> list[int] | None:
        """The values of a domain. None: too many."""
        if domain.kind == "bool":
            return [0, 1]
        low, high = domain.low, domain.high
        if low is None or high is None:
            if self.width is None:
                return None
            low, high = -(1 << (self.width - 1)), (1 << (self.width - 1)) - 1
        if high - low >= MOST_VALUES:
            return None
        return list(dict.fromkeys(self._wrapped(value) for value in range(low, high + 1)))

    def _unused_inputs(self, watched: Sequence[Expr]) -> set[tuple[int, int, int]]:
        """The inputs with too many values whose value does not matter: process, location and number."""
        asked = {
            (step.process, step.location, number)
            for code in self.source.processes
            for step in code.instructions
            for number, domain in enumerate(step.inputs)
            if self._values(domain) is None
        }
        if not asked:
            return asked
        known = ranges(self.source, None, self.width)
        for code, own in zip(self.source.processes, self._own(watched), strict=True):
            others = [v for v in self.source.variables if v not in own]
            for step in Liveness(code, known, others).cleaned().instructions:
                used = set().union(*(_inputs(action) for action in step.body))
                asked -= {(step.process, step.location, number) for number in used}
        return asked

    def _own(self, watched: Sequence[Expr]) -> list[list[Variable]]:
        """For each process: the variables that only it accesses, without those of the conditions."""
        kept = set().union(*(variables_of(e) for e in watched))
        touched = [_touched(code) for code in self.source.processes]
        users = Counter(v for those in touched for v in those)
        return [
            [v for v in self.source.variables if v in those and users[v] == 1 and not v.hidden and v not in kept]
            for those in touched
        ]

    def _dead(self, watched: Sequence[Expr]) -> list[list[list[int]]]:
        """For each process and location: the cells of its own variables that no later step reads."""
        found = []
        for code, own in zip(self.source.processes, self._own(watched), strict=True):
            live = Liveness(code).live
            found.append([self._cells([v for v in own if v not in there]) for there in live])
        return found

    def _cells(self, variables: list[Variable]) -> list[int]:
        return [self.offsets[v] + n for v in variables for n in range(v.cells)]

    # -- steps ---------------------------------------------------------------------------------------------------------

    def _instruction(self, step: Instruction) -> tuple[int, list[int], bool, int | None, bool, bool]:
        code = len(self.ops)
        self.inputs = step.inputs
        if self._actions(step.body):
            # No next location: the step is never enabled as far as here.
            self._emit("const", 0)
            self._emit("require")
            self._emit("goto", step.location)
        self.inputs = ()
        domains = []
        for number, domain in enumerate(step.inputs):
            source = Source(step.process, step.location, number)
            low = domain.low or 0
            domains.append(self._domain(Domain(domain.kind, low, low) if source in self.unused else domain))
            if self.representatives is not None and self.domains[domains[-1]] is None:
                values = self.representatives.values(source, domain)
                if values is not None:
                    domains[-1] = len(self.domains)
                    self.domains.append(values)
        owner = None if step.owner is None else self._condition(step.owner)
        return code, domains, step.waits, owner, step.synchronizes, step.exclusive

    def _condition(self, e: Expr) -> int:
        code = len(self.ops)
        self._value(e)
        self._emit("return")
        return code

    def _emit(self, name: str, first: int = 0, second: int = 0) -> int:
        self.ops.append((name, first, second))
        return len(self.ops) - 1

    def _land(self, jump: int) -> None:
        """Let a jump lead to the next operation."""
        self.ops[jump] = (self.ops[jump][0], len(self.ops), 0)

    def _actions(self, actions: Sequence[Action]) -> bool:
        """Lower actions. Whether the step can continue after them."""
        for number, action in enumerate(actions):
            match action:
                case Set(variable, index, value):
                    at = self.offsets[variable]
                    if index is not None:
                        self._value(index)
                        self._emit("check", variable.cells)
                    self._value(value)
                    if not self._fits(value):
                        self._emit("wrap", self.width or 0, 1)
                    self._emit("store" if index is None else "store at", at)
                case Require(condition):
                    self._value(condition)
                    self._emit("require")
                case Ensure(condition, check):
                    self._value(condition)
                    self._emit("ensure", self.offsets[self.flags[check]])
                case Branch(condition, then, otherwise):
                    self._value(condition)
                    unless = self._emit("unless")
                    rest = actions[number + 1 :]
                    after = self._emit("jump") if self._actions(then) else None
                    self._land(unless)
                    goes_on = self._actions(otherwise)
                    if after is not None:
                        self._land(after)
                    if not goes_on and after is None:
                        return False
                    if not rest:
                        return True
                case Goto(location):
                    self._emit("goto", location)
                    return False
        return True

    # -- expressions ---------------------------------------------------------------------------------------------------

    def _truth(self, e: Expr) -> bool:
        """Whether the value of an expression is a truth value, which never wraps."""
        if isinstance(e, Input):
            return e.number < len(self.inputs) and self.inputs[e.number].kind == "bool"
        return is_truth(e)

    def _fits(self, e: Expr) -> bool:
        """Whether the value of an expression needs no wrap before it is written."""
        if self.width is None or self._truth(e):
            return True
        return isinstance(e, Constant | Read | Input) or (isinstance(e, Operation) and e.operator in ARITHMETIC)

    def _value(self, e: Expr, modular: bool = False) -> None:
        """Lower an expression. `modular`: only its value modulo 2^64 matters."""
        match e:
            case Constant(value):
                self._constant(self._wrapped(value))
            case Read(variable, None):
                self._emit("load", self.offsets[variable])
            case Read(variable, index) if index is not None:
                self._value(index)
                self._emit("load at", self.offsets[variable], variable.cells)
            case Input(number):
                self._emit("input", number)
            case Ended(process):
                self._emit("at", process, self.source.processes[process].end)
            case At(process, location):
                self._emit("at", process, location)
            case Not(operand):
                self._value(operand)
                self._emit("not")
            case Wrap(operand, bits, signed):
                self._value(operand, bits <= _WORD)
                self._emit("wrap", bits, signed)
            case Operation("&&" | "||" as operator, left, right):
                self._value(left)
                jump = self._emit("and jump" if operator == "&&" else "or jump")
                self._value(right)
                if not self._truth(right):
                    self._emit("truth")
                self._land(jump)
            case Operation(operator, left, right):
                self._operation(operator, left, right, modular)
            case Choice(condition, then, otherwise):
                self._value(condition)
                unless = self._emit("unless")
                self._value(then)
                jump = self._emit("jump")
                self._land(unless)
                self._value(otherwise)
                self._land(jump)

    def _operation(self, operator: str, left: Expr, right: Expr, modular: bool) -> None:
        wraps = self.width is not None and operator in ARITHMETIC
        if operator in _BITWISE and self._truth(left) and self._truth(right):
            wraps = False
        modular = self.width is not None and self.width <= _WORD if wraps else modular
        inside = modular and operator in (*_MODULAR, *_BITWISE)
        self._value(left, inside)
        self._value(right, inside and operator != "<<")
        self._emit(f"{operator} modular" if modular and operator in _MODULAR else operator)
        if wraps:
            self._emit("wrap", self.width or 0, 1)

    def _constant(self, value: int) -> None:
        if -(1 << 63) <= value < 1 << 63:
            self._emit("const", value)
        else:
            self._emit("large", len(self.large))
            self.large.append(value)


def _inputs(part: Action | Expr | None) -> set[int]:
    """The inputs that an action or an expression reads."""
    match part:
        case Input(number):
            return {number}
        case Constant() | Ended() | At() | Goto() | None:
            return set()
        case Set(_, index, value):
            return _inputs(index) | _inputs(value)
        case Read(_, index):
            return _inputs(index)
        case Not(operand) | Wrap(operand):
            return _inputs(operand)
        case Operation(_, left, right):
            return _inputs(left) | _inputs(right)
        case Choice(condition, then, otherwise):
            return _inputs(condition) | _inputs(then) | _inputs(otherwise)
        case Require(condition) | Ensure(condition):
            return _inputs(condition)
        case Branch(condition, some, others):
            return _inputs(condition).union(*map(_inputs, (*some, *others)))


def _touched(code: ProcessCode) -> set[Variable]:
    """The variables that a process can access."""
    found: set[Variable] = set()
    for step in code.instructions:
        found = found.union(*accesses(step.body))
    return found
