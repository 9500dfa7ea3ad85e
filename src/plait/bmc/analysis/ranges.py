"""Interval analysis: the ranges of numbers within a depth, and the number of bits that is enough for all of them.

If all values fit in b bits, mathematical integers behave exactly as integers of b bits. A solver is much faster on
these. Each round applies every step once to the current intervals. After k rounds, the intervals include every state
that k steps can reach. Locals have an interval per location, shared variables have one interval. A condition on a local
narrows its interval in the branch. Some shared variables are only incremented or decremented by constants, in steps
that no process takes twice. They stay within the sum of these constants.

The operand of `Wrap` need not fit: sums, products and bitwise operators are right modulo 2^b, and `Wrap` needs only the
low bits. So C's arithmetic on 32-bit numbers needs 32 bits, although a sum of two numbers has 33.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from plait.bmc.analysis.intervals import ANY, Interval, calculated, clipped, inside, join, narrowed, type_range
from plait.bmc.program.arithmetic import ARITHMETIC
from plait.bmc.program.definition import (
    Action,
    At,
    Branch,
    Choice,
    Constant,
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
    Variable,
    Wrap,
)

MOST_BITS = 24
"""With more bits than this, solvers are faster with integers: if no number has a type with a number of bits."""
MOST_TYPED_BITS = 132
"""The maximum for programs whose numbers have types, or with bitwise operators. Products of 64-bit numbers fit."""
_PATIENCE = 300
"""After this number of rounds, an interval that still grows counts as unbounded."""

Environment = dict[Variable, Interval]


class Ranges(NamedTuple):
    """The result of the analysis."""

    bits: int | None
    """The number of bits that is enough for every value, intermediate ones too. None: no bound, or a too large one."""
    variables: Environment
    loose: frozenset[int]
    """The reads and writes (by `id`) whose index may be out of range."""
    exacts: frozenset[int] = frozenset()
    """The `Wrap` expressions (by `id`) whose operand always is a number of the type."""

    def safe(self, access: Read | Set) -> bool:
        """Whether the index is always in range."""
        return id(access) not in self.loose

    def exact(self, e: Wrap) -> bool:
        """Whether a `Wrap` changes nothing."""
        return id(e) in self.exacts


def ranges(program: Program, depth: int | None, width: int | None = None) -> Ranges:
    """Analyse a program for runs of at most `depth` steps (None: of any length)."""
    return _Analysis(program, width).run(depth)


def free_range(variable: Variable) -> Interval | None:
    """The range of a free initial value of a number: as given, or that of its type. None: any number."""
    if variable.low is not None and variable.high is not None:
        return (variable.low, variable.high)
    return None if variable.bits is None else type_range(variable.bits, variable.signed)


class _Analysis:
    def __init__(self, program: Program, width: int | None) -> None:
        self.program = program
        self.full = ANY if width is None else (-(1 << (width - 1)), (1 << (width - 1)) - 1)
        self.shared: Environment = {}
        self.extent: Interval = (0, 0)
        self.step: Instruction | None = None
        """The current step. None: an expression of the last state."""
        self.loose: set[int] = set()
        self.wraps: dict[int, bool] = {}
        """For each `Wrap` (by `id`), whether its operand always fits."""
        self.typed = any(v.bits is not None for v in program.variables)
        """Whether numbers have types, or the program has bitwise operators."""
        self.midway: Environment = {}
        """The interval of all values written to a local, even of those that are overwritten in the same step."""
        locals_: Environment = {}
        for variable in program.variables:
            if variable.kind == "int":
                known = [v for v in variable.initial if v is not None]
                found = [(int(v), int(v)) for v in known]
                if len(known) < variable.cells:
                    found.append(free_range(variable) or self.full)
                whole = (min(low for low, _ in found), max(high for _, high in found))
                own = variable.process is not None and variable.size is None
                (locals_ if own else self.shared)[variable] = self._fit(whole)
        self.at: list[dict[int, Environment]] = [
            {0: {v: i for v, i in locals_.items() if v.process == number}} for number in range(len(program.processes))
        ]
        self.caps = _counters(program, self.shared) if self.full == ANY else {}
        self.next_shared: Environment = {}
        self.next_at: list[dict[int, Environment]] = []

    def run(self, depth: int | None) -> Ranges:
        rounds = 0
        while depth is None or rounds < depth:
            rounds += 1
            before = (self.shared, self.at)
            self._round()
            if rounds > _PATIENCE:
                self._widen(*before)
            if (self.shared, self.at) == before:
                break
        # In the last states, properties and the conditions of further steps are evaluated too.
        self._round()
        every: Environment = dict(self.shared) | self.midway
        for places in self.at:
            for environment in places.values():
                for variable, interval in environment.items():
                    every[variable] = join(every.get(variable, interval), interval)
        self.step = None
        for e in (*self.program.initial, *(p.condition for p in self.program.properties)):
            self._value(e, every)
        for interval in every.values():
            self._extend(interval)
        low, high = self.extent
        bits = max((-low - 1).bit_length(), high.bit_length()) + 1
        most = MOST_TYPED_BITS if self.typed else MOST_BITS
        exacts = frozenset(e for e, fits in self.wraps.items() if fits)
        return Ranges(bits if bits <= most else None, every, frozenset(self.loose), exacts)

    def _round(self) -> None:
        self.next_shared = dict(self.shared)
        self.next_at = [{place: dict(e) for place, e in places.items()} for places in self.at]
        for code, places in zip(self.program.processes, self.at, strict=True):
            for location, environment in places.items():
                if location < code.end:
                    self._step(code.instructions[location], dict(self.shared) | environment)
        self.shared, self.at = self.next_shared, self.next_at

    def _widen(self, shared: Environment, at: list[dict[int, Environment]]) -> None:
        def widened(new: Environment, old: Environment) -> Environment:
            return {v: i if v not in old or old[v] == i else self._beyond(v, i, old[v]) for v, i in new.items()}

        self.shared = widened(self.shared, shared)
        self.at = [
            {place: widened(e, old.get(place, {})) for place, e in places.items()}
            for places, old in zip(self.at, at, strict=True)
        ]

    def _beyond(self, variable: Variable, now: Interval, old: Interval) -> Interval:
        """The interval of a variable that still grows: all numbers of its type, or all numbers."""
        full = self.full if variable.bits is None else type_range(variable.bits, variable.signed)
        full = full if inside(now, full) else self.full
        return (now[0] if now[0] == old[0] else full[0], now[1] if now[1] == old[1] else full[1])

    # -- one step ------------------------------------------------------------------------------------------------------

    def _step(self, step: Instruction, environment: Environment) -> None:
        self.step = step
        for domain in step.inputs:
            # An encoding constrains every input, even if the step does not evaluate it.
            if domain.low is not None and domain.high is not None:
                self._fit((domain.low, domain.high))
        self._actions(step.body, environment)

    def _actions(self, actions: Sequence[Action], environment: Environment) -> list[Environment]:
        """The environments after the actions, one for each path through them. Writes are recorded."""
        ways = [environment]
        for action in actions:
            ways = [after for way in ways for after in self._action(action, dict(way))]
            if len(ways) > 16:
                ways = [_merge(ways)]
        return ways

    def _action(self, action: Action, e: Environment) -> list[Environment]:
        match action:
            case Set(variable, index, value):
                if index is not None:
                    self._index(action, variable, self._value(index, e))
                found = self._value(value, e)
                e = _inside(e, Read(variable, index), value)
                if variable.kind == "int" and found is not None:
                    if variable.size is None:
                        e[variable] = found
                    else:
                        e[variable] = join(e[variable], found)
                    # A process that is stuck in the middle of a block has written this value too.
                    if variable.process is not None and variable.size is None:
                        self.midway[variable] = join(self.midway.get(variable, found), found)
                    else:
                        if variable in self.caps:
                            cap = self.caps[variable]
                            found = (max(found[0], cap[0]), min(found[1], cap[1]))
                            e[variable] = found
                        self.next_shared[variable] = join(self.next_shared[variable], found)
                return [e]
            case Require(condition) | Ensure(condition):
                self._value(condition, e)
                narrowed = self._narrow(condition, _inside(e, condition), True)
                return [] if narrowed is None else [narrowed]
            case Branch(condition, then, otherwise):
                self._value(condition, e)
                e = _inside(e, condition)
                ways = []
                for branch, truth in ((then, True), (otherwise, False)):
                    narrowed = self._narrow(condition, e, truth)
                    if narrowed is not None:
                        ways += self._actions(branch, narrowed)
                return ways
            case Goto(location):
                assert self.step is not None
                process = self.step.process
                own = {v: i for v, i in e.items() if v.process == process and v.size is None}
                there = self.next_at[process].get(location)
                self.next_at[process][location] = own if there is None else _merge([there, own])
                return []

    def _narrow(self, e: Expr, environment: Environment, truth: bool) -> Environment | None:
        """The environment narrowed by a condition that is true (or false). None: this is impossible."""
        match e:
            case Constant(value):
                return environment if bool(value) == truth else None
            case Not(operand):
                return self._narrow(operand, environment, not truth)
            case Operation("&&" | "||" as operator, left, right):
                if (operator == "&&") == truth:
                    first = self._narrow(left, environment, truth)
                    return None if first is None else self._narrow(right, first, truth)
                sides = [self._narrow(left, environment, truth), self._narrow(right, environment, truth)]
                possible = [side for side in sides if side is not None]
                return _merge(possible) if possible else None
            case Operation(operator, left, right) if operator in _NEGATED:
                operator = operator if truth else _NEGATED[operator]
                for this, relation, other in ((left, operator, right), (right, _MIRRORED[operator], left)):
                    if isinstance(this, Read) and this.index is None and this.variable.kind == "int":
                        bound = self._value(other, environment)
                        if bound is None:
                            continue
                        found = narrowed(environment[this.variable], relation, bound)
                        if found is None:
                            return None
                        environment = environment | {this.variable: found}
                return environment
            case At(process, location) if (
                truth and self.step is None and location <= self.program.processes[process].end
            ):
                there = self.at[process].get(location)
                return None if there is None else environment | there
            case _:
                return environment

    # -- expressions ---------------------------------------------------------------------------------------------------

    def _value(self, e: Expr, environment: Environment, *, modulo: bool = False) -> Interval | None:
        """The interval of a number; None for a truth value. With `modulo`, the number need not fit in the bits."""
        match e:
            case Constant(value):
                return None if isinstance(value, bool) else self._fit((value, value), modulo)
            case Read(variable, index):
                if index is not None:
                    self._index(e, variable, self._value(index, environment))
                return environment[variable] if variable.kind == "int" else None
            case Input(number):
                domain = self.step.inputs[number] if self.step is not None else None
                if domain is None or domain.kind == "bool":
                    return None
                if domain.low is None or domain.high is None:
                    return self._fit(self.full)
                return self._fit((domain.low, domain.high))
            case Not(operand):
                self._value(operand, environment)
                return None
            case Wrap(operand, bits, signed):
                return self._wrapped(e, self._value(operand, environment, modulo=True), type_range(bits, signed))
            case Operation("&&" | "||" as operator, left, right):
                self._value(left, environment)
                narrowed = self._narrow(left, environment, operator == "&&")
                if narrowed is not None:
                    self._value(right, narrowed)
                return None
            case Operation(operator, left, right):
                self.typed = self.typed or operator in _BITWISE
                one = self._value(left, environment, modulo=modulo and operator in _MODULO)
                two = self._value(right, environment, modulo=modulo and operator in _MODULO and operator != "<<")
                if operator not in ARITHMETIC or one is None or two is None:
                    return None
                return self._fit(calculated(operator, one, two), modulo)
            case Choice(condition, then, otherwise):
                self._value(condition, environment)
                found = []
                for side, truth in ((then, True), (otherwise, False)):
                    narrowed = self._narrow(condition, environment, truth)
                    if narrowed is not None:
                        found_there = self._value(side, narrowed, modulo=modulo)
                        found += [] if found_there is None else [found_there]
                return (min(v[0] for v in found), max(v[1] for v in found)) if found else None
            case _:
                return None

    def _wrapped(self, e: Wrap, operand: Interval | None, whole: Interval) -> Interval:
        self.typed = True
        fits = operand is not None and inside(operand, whole)
        self.wraps[id(e)] = fits and self.wraps.get(id(e), True)
        return self._fit(operand if fits and operand is not None else whole)

    def _index(self, access: Read | Set, variable: Variable, at: Interval | None) -> None:
        self._extend((0, variable.cells))
        if at is None or at[0] < 0 or at[1] >= variable.cells:
            self.loose.add(id(access))

    def _extend(self, interval: Interval) -> None:
        self.extent = join(self.extent, interval)

    def _fit(self, interval: Interval, modulo: bool = False) -> Interval:
        """Replace huge ends by infinite ones. With a width, an interval that overflows becomes the full range."""
        low, high = interval
        if self.full != ANY:
            return interval if self.full[0] <= low and high <= self.full[1] else self.full
        fitting = clipped(low, high)
        if not modulo:
            self._extend(fitting)
        return fitting


def _inside(environment: Environment, *expressions: Expr) -> Environment:
    """The environment after the expressions were evaluated without failure: each variable used as index is in range."""
    for e in expressions:
        match e:
            case Read(variable, Read(index, None)):
                low, high = environment[index]
                if low < variable.cells and high >= 0:
                    environment = environment | {index: (max(low, 0), min(high, variable.cells - 1))}
            case Read(_, index) if index is not None:
                environment = _inside(environment, index)
            case Not(operand) | Wrap(operand):
                environment = _inside(environment, operand)
            case Operation("&&" | "||", left, _):
                environment = _inside(environment, left)
            case Operation(_, left, right):
                environment = _inside(environment, left, right)
            case Choice(condition, _, _):
                environment = _inside(environment, condition)
    return environment


def _counters(program: Program, shared: Environment) -> Environment:
    """Shared variables that are only incremented or decremented by constants, in steps that no process takes twice."""
    found: dict[Variable, Interval] = {v: i for v, i in shared.items() if v.size is None}
    for code in program.processes:
        for step in code.instructions:
            for variable, change in _changes(step.body):
                if variable not in found:
                    continue
                if change is None or _repeats(code, step.location):
                    del found[variable]
                else:
                    low, high = found[variable]
                    found[variable] = (low + min(change, 0), high + max(change, 0))
    return found


def _changes(actions: Sequence[Action]) -> Iterator[tuple[Variable, int | None]]:
    """The constant that each write adds to its variable. None: the write is not an addition of a constant."""
    for action in actions:
        match action:
            case Set(variable, None, Operation("+" | "-" as sign, Read(same, None), Constant(value))) if (
                same is variable
            ):
                yield variable, int(value) if sign == "+" else -int(value)
            case Set(variable, _, _):
                yield variable, None
            case Branch(_, then, otherwise):
                yield from _changes(then)
                yield from _changes(otherwise)


def _repeats(code: ProcessCode, location: int) -> bool:
    """Whether a process can return to a location."""
    seen: set[int] = set()
    queue = list(code.instructions[location].targets)
    while queue:
        place = queue.pop()
        if place == location:
            return True
        if place < code.end and place not in seen:
            seen.add(place)
            queue += code.instructions[place].targets
    return False


_BITWISE = ("&", "|", "^", "<<", ">>")
_MODULO = ("+", "-", "*", "&", "|", "^", "<<")
"""The operators whose result modulo 2^b needs the operands modulo 2^b only (the shift itself is exact)."""
_NEGATED = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}


def _merge(ways: list[Environment]) -> Environment:
    first, *rest = ways
    for way in rest:
        first = {v: join(i, way[v]) for v, i in first.items()}
    return first
