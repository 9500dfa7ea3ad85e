"""The interpreter: it executes a program step by step, and records the reads and writes of each step.

It defines the semantics of the language. It executes every run of a solver before the run is reported.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from plait.bmc.program.arithmetic import calculate, wrapped
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
    Not,
    Operation,
    Program,
    Read,
    Require,
    Set,
    Value,
    Variable,
    Wrap,
)
from plait.kernel.errors import Argument, UsageError

MOST_VALUES = 1 << 16
"""The maximal number of values of a free variable that is enumerated."""


class State(NamedTuple):
    """The values of all cells, in the order of the variables, and the location of each process."""

    values: tuple[Value, ...]
    locations: tuple[int, ...]


Cell = tuple[Variable, int] | int
"""A variable and an index (0 if it is not an array); or the program counter of a process, by its number."""


class Step(NamedTuple):
    """A step of a run: the state after it, and its footprint (read and write sets, Saissi 2019, section 4.4.1)."""

    process: int
    location: int
    inputs: tuple[Value, ...]
    state: State
    reads: frozenset[Cell]
    writes: frozenset[Cell]
    failure: str | None = None
    """Why a check failed, in words: a violated assertion, an index out of range."""


class _FailedError(Exception):
    """A check failed: its name, and what happened in words."""

    def __init__(self, check: str, text: str) -> None:
        super().__init__(text)
        self.check, self.text = check, text


class _BlockedError(Exception):
    """The step is not enabled."""


class Interpreter:
    """Executes a program. With a `width`, numbers have that number of bits and wrap around (two's complement)."""

    def __init__(self, program: Program, width: int | None = None) -> None:
        self.program, self.width = program, width
        self.offsets = program.offsets
        self.flags = {variable.name: variable for variable in program.variables if variable.hidden}
        self.exclusive = [frozenset(i.location for i in code.instructions if i.exclusive) for code in program.processes]
        """For each process, the locations inside of atomic sections."""

    # -- initial states ------------------------------------------------------------------------------------------------

    def initial_states(self) -> Iterator[State]:
        """All initial states. A free variable without a range can be enumerated only if numbers have few bits."""
        choices: list[Sequence[Value]] = []
        for variable in self.program.variables:
            domain = Domain(variable.kind, variable.low, variable.high)
            free = self.domain(domain, variable.name) if None in variable.initial else ()
            choices += [free if value is None else (self.wrap(value),) for value in variable.initial]
        locations = (0,) * len(self.program.processes)
        for values in itertools.product(*choices):
            state = State(values, locations)
            if self.starts(state):
                yield state

    def enumerable(self) -> None:
        """Raise an error if a free variable or an input has too many values to enumerate."""
        for variable in self.program.variables:
            if None in variable.initial:
                self.domain(Domain(variable.kind, variable.low, variable.high), variable.name)
        for code in self.program.processes:
            for step in code.instructions:
                for domain in step.inputs:
                    file = f"{step.place.file}, " if step.place.file else ""
                    self.domain(domain, f"{file}line {step.place.line}: {step.label}")

    def starts(self, state: State) -> bool:
        """Whether the initial condition holds."""
        return all(self.evaluate(e, state) for e in self.program.initial)

    def domain(self, domain: Domain, what: str) -> Sequence[Value]:
        """The possible values of a free variable or input."""
        if domain.kind == "bool":
            return (False, True)
        low, high = domain.low, domain.high
        if low is None or high is None:
            if self.width is None:
                raise UsageError(
                    f"{what} can be any number, so its values cannot be enumerated",
                    hint=(
                        f"give it a range, for example int {what.rpartition('.')[2]} in 0..3; or set ",
                        Argument("width", 4),
                    ),
                )
            low, high = -(1 << (self.width - 1)), (1 << (self.width - 1)) - 1
        if high - low >= MOST_VALUES:
            raise UsageError(
                f"{what} has too many values: {high - low + 1:,}",
                hint=("give it a smaller range, or let a solver decide: ", Argument("encoding", "clock")),
            )
        return tuple(dict.fromkeys(self.wrap(value) for value in range(low, high + 1)))

    def wrap(self, value: Value) -> Value:
        """A number, wrapped around to the width."""
        if self.width is None or isinstance(value, bool):
            return value
        half = 1 << (self.width - 1)
        return (value + half) % (2 * half) - half

    # -- steps ---------------------------------------------------------------------------------------------------------

    def ready(self, state: State, process: int) -> bool:
        """Whether the process has a next step, enabled or not, and no other process is in an atomic section."""
        return state.locations[process] < self.program.processes[process].end and not any(
            place in inside and p != process
            for p, (place, inside) in enumerate(zip(state.locations, self.exclusive, strict=True))
        )

    def inputs(self, state: State, process: int) -> Iterator[tuple[Value, ...]]:
        """The possible choices of the environment for the next step of a process."""
        step = self.program.processes[process].instructions[state.locations[process]]
        return itertools.product(*(self.domain(d, f"line {step.place.line}: {step.label}") for d in step.inputs))

    def successors(self, state: State) -> Iterator[Step]:
        """All enabled steps."""
        for process in range(len(self.program.processes)):
            if self.ready(state, process):
                for inputs in self.inputs(state, process):
                    taken = self.step(state, process, inputs)
                    if taken is not None:
                        yield taken

    def step(self, state: State, process: int, inputs: Sequence[Value] = ()) -> Step | None:
        """Take the next step of a process. None: it is not enabled."""
        if not self.ready(state, process):
            return None
        code = self.program.processes[process]
        location = state.locations[process]
        run = _Run(self, state, tuple(map(self.wrap, inputs)))
        failure = None
        try:
            target = run.actions(code.instructions[location].body)
        except _BlockedError:
            return None
        except _FailedError as error:
            run.write(self.flags[error.check], 0, True)
            target, failure = code.stuck, error.text
        locations = (*state.locations[:process], target, *state.locations[process + 1 :])
        after = State(tuple(run.values), locations)
        return Step(
            process,
            location,
            run.inputs,
            after,
            frozenset(run.reads) | {process},
            frozenset(run.writes) | {process},
            failure,
        )

    def evaluate(self, e: Expr, state: State, reads: set[Cell] | None = None) -> Value:
        """The value of an expression in a state."""
        run = _Run(self, state, ())
        value = run.value(e)
        if reads is not None:
            reads |= run.reads
        return value

    def shown(self, state: State, variable: Variable) -> Value | list[Value]:
        """The value of a variable in a state: a value, or a list for an array."""
        at = self.offsets[variable]
        found = list(state.values[at : at + variable.cells])
        return found[0] if variable.size is None else found

    def initial(self, values: Mapping[Variable, Sequence[Value]]) -> State:
        """The initial state with these values."""
        flat = [v for variable in self.program.variables for v in values[variable]]
        return State(tuple(map(self.wrap, flat)), (0,) * len(self.program.processes))


class _Run:
    """The execution of one step."""

    def __init__(self, of: Interpreter, state: State, inputs: tuple[Value, ...]) -> None:
        self.of, self.state, self.inputs = of, state, inputs
        self.values = list(state.values)
        self.reads: set[Cell] = set()
        self.writes: set[Cell] = set()

    def actions(self, actions: Sequence[Action]) -> int:
        """Execute actions, and return the next location."""
        for action in actions:
            match action:
                case Set(variable, index, value):
                    at = self.index(variable, index)
                    self.write(variable, at, self.value(value))
                case Require(condition):
                    if not self.value(condition):
                        raise _BlockedError
                case Ensure(condition, check, text):
                    if not self.value(condition):
                        raise _FailedError(check, text)
                case Branch(condition, then, otherwise):
                    branch = then if self.value(condition) else otherwise
                    target = self.actions(branch)
                    if target != _ON:
                        return target
                case Goto(location):
                    return location
        return _ON

    def write(self, variable: Variable, at: int, value: Value) -> None:
        self.values[self.of.offsets[variable] + at] = self.of.wrap(value)
        self.writes.add((variable, at))

    def index(self, variable: Variable, index: Expr | None) -> int:
        if index is None:
            return 0
        at = int(self.value(index))
        if not 0 <= at < variable.cells:
            raise _FailedError(BOUNDS, f"the index {at} is out of range: {variable.name} has {variable.cells} cells")
        return at

    def value(self, e: Expr) -> Value:
        match e:
            case Constant(value):
                return self.of.wrap(value)
            case Read(variable, index):
                at = self.index(variable, index)
                if (variable, at) not in self.writes:
                    self.reads.add((variable, at))
                return self.values[self.of.offsets[variable] + at]
            case Input(number):
                return self.inputs[number]
            case Ended(process):
                self.reads.add(process)
                return self.state.locations[process] == self.of.program.processes[process].end
            case At(process, location):
                self.reads.add(process)
                return self.state.locations[process] == location
            case Not(operand):
                return not self.value(operand)
            case Wrap(operand, bits, signed):
                return wrapped(self.value(operand), bits, signed)
            case Operation("&&", left, right):
                return bool(self.value(left) and self.value(right))
            case Operation("||", left, right):
                return bool(self.value(left) or self.value(right))
            case Operation(operator, left, right):
                return self.of.wrap(calculate(operator, self.value(left), self.value(right)))
            case Choice(condition, then, otherwise):
                return self.value(then) if self.value(condition) else self.value(otherwise)


_ON = -1
"""No next location yet: the step continues."""
