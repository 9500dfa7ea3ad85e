"""A program as the analyses see it (Saissi 2019, section 4.5.1): variables, and sequential processes of atomic steps.

A process is at a *location*, and each location has one step: so a process has at most one step to take, and its program
counter says which. A step runs its *body* at once. What a statement of the language becomes:

- an assignment, `assume`, `assert`, `lock`, `unlock`, `havoc`, `skip`, and a whole `atomic` block: one step;
- `if`, `while`, `choose`: one step for the decision, then those of the branch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Literal

from plait.bmc.language.syntax import Place, Source

Kind = Literal["int", "bool"]
Value = int | bool

ASSERTIONS, BOUNDS = "assertions", "bounds"
"""The properties that every program has: no `assert` fails, no index is out of range."""


@dataclasses.dataclass(frozen=True, eq=False)
class Variable:
    """A variable, or an array of them. Locals are variables that one process alone can name."""

    name: str
    kind: Kind
    size: int | None
    """None if it is no array."""
    initial: tuple[Value | None, ...]
    """The value of each cell; None: free."""
    low: int | None = None
    high: int | None = None
    """The range of the initial value, where it is free."""
    process: int | None = None
    """The process that it is a local of."""
    lock: bool = False
    hidden: bool = False
    """A flag that stands for a failed assertion or index."""

    @property
    def cells(self) -> int:
        """How many values it has."""
        return 1 if self.size is None else self.size


@dataclasses.dataclass(frozen=True)
class Constant:
    """A constant."""

    value: Value


@dataclasses.dataclass(frozen=True)
class Read:
    """The value of a variable, or of a cell of an array."""

    variable: Variable
    index: Expr | None = None


@dataclasses.dataclass(frozen=True)
class Input:
    """What the environment decides when the step runs."""

    number: int


@dataclasses.dataclass(frozen=True)
class Ended:
    """Whether a process has ended."""

    process: int


@dataclasses.dataclass(frozen=True)
class Not:
    """Negation."""

    operand: Expr


@dataclasses.dataclass(frozen=True)
class Operation:
    """An operator: + - * / %, comparisons, && and || (which evaluate their right side only if needed)."""

    operator: str
    left: Expr
    right: Expr


@dataclasses.dataclass(frozen=True)
class Choice:
    """`c ? a : b`."""

    condition: Expr
    then: Expr
    otherwise: Expr


Expr = Constant | Read | Input | Ended | Not | Operation | Choice


@dataclasses.dataclass(frozen=True)
class Set:
    """Write a variable."""

    variable: Variable
    index: Expr | None
    value: Expr


@dataclasses.dataclass(frozen=True)
class Require:
    """The step is not enabled unless this holds."""

    condition: Expr


NEVER = Require(Constant(False))
"""A step that begins with this is never taken."""


@dataclasses.dataclass(frozen=True)
class Ensure:
    """An assertion: if it does not hold, its flag is set and the process is stuck."""

    condition: Expr


@dataclasses.dataclass(frozen=True)
class Branch:
    """Do this or that."""

    condition: Expr
    then: tuple[Action, ...]
    otherwise: tuple[Action, ...]


@dataclasses.dataclass(frozen=True)
class Goto:
    """The location to go on at; the last thing that a step does."""

    location: int


Action = Set | Require | Ensure | Branch | Goto


@dataclasses.dataclass(frozen=True)
class Domain:
    """The values that an input can have; no range: any."""

    kind: Kind
    low: int | None = None
    high: int | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Instruction:
    """What a process does at one of its locations."""

    process: int
    location: int
    body: tuple[Action, ...]
    targets: tuple[int, ...]
    """The locations that it can go on at, without failing."""
    place: Place
    inputs: tuple[Domain, ...] = ()

    @property
    def label(self) -> str:
        """The statement, as it is written."""
        return self.place.text


@dataclasses.dataclass(frozen=True, eq=False)
class ProcessCode:
    """A process: its steps by location. It ends after the last location, and is stuck behind that after a failure."""

    name: str
    role: str
    instructions: tuple[Instruction, ...]

    @property
    def end(self) -> int:
        """The location without a step."""
        return len(self.instructions)

    @property
    def stuck(self) -> int:
        """Where a process is after a failed assertion or index."""
        return len(self.instructions) + 1


PropertyKind = Literal["always", "final", "reachable"]


@dataclasses.dataclass(frozen=True, eq=False)
class Property:
    """A condition on states: `always`, in all; `final`, in those where all processes have ended; `reachable`, in one."""

    name: str
    kind: PropertyKind
    condition: Expr
    place: Place

    @property
    def bad(self) -> Expr:
        """What is looked for: a state that violates it, or the example."""
        return self.condition if self.kind == "reachable" else Not(self.condition)


@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    """Variables, processes, the initial condition and the properties."""

    name: str
    source: Source
    variables: tuple[Variable, ...]
    processes: tuple[ProcessCode, ...]
    initial: tuple[Expr, ...]
    properties: tuple[Property, ...]
    constants: dict[str, Value] = dataclasses.field(default_factory=dict)

    @property
    def offsets(self) -> dict[Variable, int]:
        """Where the cells of each variable begin in a state."""
        found, at = {}, 0
        for variable in self.variables:
            found[variable] = at
            at += variable.cells
        return found

    @property
    def longest(self) -> int | None:
        """No run has more steps; None if a process has a loop."""
        lengths = [longest(code) for code in self.processes]
        known = [n for n in lengths if n is not None]
        return sum(known) if len(known) == len(lengths) else None

    def flag(self, name: str) -> Variable | None:
        """The hidden variable of a built-in property."""
        return next((v for v in self.variables if v.hidden and v.name == name), None)

    def find(self, name: str) -> Property | None:
        """The property of that name."""
        return next((p for p in self.properties if p.name == name), None)


def variables_of(e: Expr) -> set[Variable]:
    """The variables that an expression can read."""
    match e:
        case Read(variable, index):
            return {variable} | (variables_of(index) if index is not None else set())
        case Not(operand):
            return variables_of(operand)
        case Operation(_, left, right):
            return variables_of(left) | variables_of(right)
        case Choice(condition, then, otherwise):
            return variables_of(condition) | variables_of(then) | variables_of(otherwise)
        case _:
            return set()


def ended_in(e: Expr) -> set[int]:
    """The processes whose program counter an expression reads."""
    match e:
        case Ended(process):
            return {process}
        case Not(operand):
            return ended_in(operand)
        case Operation(_, left, right):
            return ended_in(left) | ended_in(right)
        case Choice(condition, then, otherwise):
            return ended_in(condition) | ended_in(then) | ended_in(otherwise)
        case _:
            return set()


def cases(e: Expr) -> list[Expr]:
    """Expressions one of which holds if the expression does.

    >>> x, y = (Read(Variable(name, "bool", None, (False,))) for name in "xy")
    >>> cases(Not(Operation("&&", x, Operation("&&", y, Not(x))))) == [Not(x), Not(y), x]
    True
    """
    match e:
        case Operation("||", left, right):
            return cases(left) + cases(right)
        case Not(Operation("&&", left, right)):
            return cases(Not(left)) + cases(Not(right))
        case Not(Not(operand)):
            return cases(operand)
        case _:
            return [e]


def joined(parts: list[Expr], join: Callable[[Expr, Expr], Expr]) -> Expr:
    """Of one or more parts: pairs of pairs, so that what has many of them is not deep."""
    while len(parts) > 1:
        pairs = [join(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = [*pairs, *parts[2 * len(pairs) :]]
    return parts[0]


def accesses(actions: tuple[Action, ...]) -> tuple[set[Variable], set[Variable]]:
    """The variables that actions can read, and those that they can write."""
    reads: set[Variable] = set()
    writes: set[Variable] = set()
    for action in actions:
        match action:
            case Set(variable, index, value):
                writes.add(variable)
                reads |= variables_of(value) | (variables_of(index) if index is not None else set())
            case Require(condition) | Ensure(condition):
                reads |= variables_of(condition)
            case Branch(condition, then, otherwise):
                reads |= variables_of(condition)
                for branch in (then, otherwise):
                    r, w = accesses(branch)
                    reads |= r
                    writes |= w
    return reads, writes


def distances(process: ProcessCode) -> dict[int, int]:
    """The least number of steps to each location."""
    found = {0: 0}
    queue = [0]
    for place in queue:
        if place < process.end:
            for target in process.instructions[place].targets:
                if target not in found:
                    found[target] = found[place] + 1
                    queue.append(target)
    return found


def longest(process: ProcessCode) -> int | None:
    """The most steps that a process can take; None if it has a loop."""
    known: dict[int, int] = {}
    active: set[int] = set()
    todo = [0]
    while todo:
        location = todo[-1]
        ends = location >= process.end or process.instructions[location].body[:1] == (NEVER,)
        targets = () if ends else process.instructions[location].targets
        missing = [t for t in targets if t not in known]
        if location in known or not missing:
            known.setdefault(location, 0 if ends else 1 + max((known[t] for t in targets), default=0))
            active.discard(location)
            todo.pop()
        elif active.intersection(missing) or location in missing:
            return None
        else:
            active.add(location)
            todo += missing
    return known[0]
