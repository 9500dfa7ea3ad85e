"""The compiled program (Saissi 2019, section 4.5.1): variables, and sequential processes of atomic steps.

A process is at a *location*, and each location has one step. So a process has at most one next step, and its program
counter determines it. A step executes its *body* atomically. Statements of the language become steps:

- an assignment, `assume`, `assert`, `lock`, `unlock`, `havoc`, `skip`, and a whole `atomic` block: one step;
- `if`, `while`, `choose`: one step for the decision, then the steps of the branch;
- each further access to a variable that several processes use: a step of its own, before this one. `x = x + 1` is two
  steps. Only `assume` reads several variables in one step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from plait.bmc.program.source import Place, Source

Kind = Literal["int", "bool"]
Value = int | bool

ASSERTIONS, BOUNDS, DIVISION, OVERFLOW = "assertions", "bounds", "division", "overflow"
"""Built-in properties: no `assert` fails, no index is out of range, no divisor is 0, no signed number overflows."""
LOCKS, MEMORY, LEAKS = "locks", "memory", "leaks"
"""No thread misuses a lock or another synchronization object, no pointer is invalid, no thread is left behind."""
DEADLOCK, RACES = "deadlock", "races"
"""Not all threads wait forever, and no two conflicting accesses are possible at the same time."""
LIMITS = "limits"
"""No run reaches a limit of the front end: recursion, allocated objects, threads. It bounds every verdict."""


class Variable(msgspec.Struct, frozen=True, eq=False):
    """A variable or an array. A local is a variable that only one process can name."""

    name: str
    kind: Kind
    size: int | None
    """None: not an array."""
    initial: tuple[Value | None, ...]
    """The initial value of each cell. None: free."""
    low: int | None = None
    high: int | None = None
    """The range of a free initial value."""
    process: int | None = None
    """The process of a local. None: a shared variable."""
    lock: bool = False
    hidden: bool = False
    """Whether it is the flag of a built-in property: an assertion failed, or an index was out of range."""
    bits: int | None = None
    """The number of bits of a number, if its type has one. Every value that is written fits (see `Wrap`)."""
    signed: bool = True
    temporary: bool = False
    """Whether a front end made it for an intermediate value: traces do not show it."""

    @property
    def cells(self) -> int:
        """The number of cells."""
        return 1 if self.size is None else self.size


class Constant(msgspec.Struct, frozen=True):
    """A constant."""

    value: Value


class Read(msgspec.Struct, frozen=True):
    """The value of a variable, or of a cell of an array."""

    variable: Variable
    index: Expr | None = None


class Input(msgspec.Struct, frozen=True):
    """A value that the environment chooses when the step runs."""

    number: int


class Ended(msgspec.Struct, frozen=True):
    """Whether a process has ended."""

    process: int


class At(msgspec.Struct, frozen=True):
    """Whether a process is at a location."""

    process: int
    location: int


class Not(msgspec.Struct, frozen=True):
    """Negation."""

    operand: Expr


class Operation(msgspec.Struct, frozen=True):
    """An operator: arithmetic, comparisons, && and || (these evaluate the right side only if necessary).

    `/` and `%` round down; `quot` and `rem` round towards zero, as in C. `& | ^ << >>` work on numbers in two's
    complement. A divisor is not 0, and a shift is 0 to 64: the front end checks this first.
    """

    operator: str
    left: Expr
    right: Expr


class Choice(msgspec.Struct, frozen=True):
    """`c ? a : b`."""

    condition: Expr
    then: Expr
    otherwise: Expr


class Wrap(msgspec.Struct, frozen=True):
    """A number modulo 2^bits: from 0, or with a sign in two's complement."""

    operand: Expr
    bits: int
    signed: bool


Expr = Constant | Read | Input | Ended | At | Not | Operation | Choice | Wrap


class Set(msgspec.Struct, frozen=True):
    """Write a variable."""

    variable: Variable
    index: Expr | None
    value: Expr


class Require(msgspec.Struct, frozen=True):
    """The step is enabled only if the condition holds."""

    condition: Expr


NEVER = Require(Constant(False))
"""A step that begins with this action is never enabled."""


class Ensure(msgspec.Struct, frozen=True):
    """A check: if the condition does not hold, the flag of the built-in property is set and the process is stuck."""

    condition: Expr
    check: str = ASSERTIONS
    text: str = "the assertion fails"
    """What happens if the condition does not hold."""


class Branch(msgspec.Struct, frozen=True):
    """Execute one of two branches."""

    condition: Expr
    then: tuple[Action, ...]
    otherwise: tuple[Action, ...]


class Goto(msgspec.Struct, frozen=True):
    """The next location: the last action of a step."""

    location: int


Action = Set | Require | Ensure | Branch | Goto


class Domain(msgspec.Struct, frozen=True):
    """The possible values of an input. Without a range: any value."""

    kind: Kind
    low: int | None = None
    high: int | None = None


class Instruction(msgspec.Struct, frozen=True, eq=False):
    """The step of a process at one of its locations."""

    process: int
    location: int
    body: tuple[Action, ...]
    targets: tuple[int, ...]
    """The possible next locations, if the step does not fail."""
    place: Place
    inputs: tuple[Domain, ...] = ()
    waits: bool = False
    """Whether the step waits for other threads while it is not enabled: a lock, a join. Otherwise, it is an `assume`:
    a run in which the process never continues is not a deadlock."""
    owner: Read | None = None
    """If the step waits for a lock that only its owner can release: the owner, as the number of a process plus one."""
    synchronizes: bool = False
    """Whether its accesses are atomic for the language (locks, atomics): two such accesses are not a data race."""
    exclusive: bool = False
    """Whether the process is inside an atomic section: while it is at this location, no other process takes a step."""

    @property
    def label(self) -> str:
        """The text of the statement."""
        return self.place.text


class ProcessCode(msgspec.Struct, frozen=True, eq=False):
    """A process: its steps by location. The location after the last step is its end; the one after that means stuck."""

    name: str
    role: str
    instructions: tuple[Instruction, ...]
    spawned: bool = False
    """Whether another process starts it: until then, it is at location 0, which is not enabled."""
    required: bool = True
    """Whether the program is not over before this process has ended."""

    @property
    def end(self) -> int:
        """The location of a process that has ended."""
        return len(self.instructions)

    @property
    def stuck(self) -> int:
        """The location of a process after a failed assertion or an index out of range."""
        return len(self.instructions) + 1


PropertyKind = Literal["always", "final", "reachable"]


class Property(msgspec.Struct, frozen=True, eq=False):
    """A condition: `always` on all states, `final` on states in which all processes ended, `reachable` on one state."""

    name: str
    kind: PropertyKind
    condition: Expr
    place: Place

    @property
    def bad(self) -> Expr:
        """The condition of a state that decides the property: a violation, or the example of `reachable`."""
        return self.condition if self.kind == "reachable" else Not(self.condition)


class Program(msgspec.Struct, frozen=True, eq=False):
    """Variables, processes, the initial condition and the properties."""

    name: str
    source: Source
    variables: tuple[Variable, ...]
    processes: tuple[ProcessCode, ...]
    initial: tuple[Expr, ...]
    properties: tuple[Property, ...]
    constants: dict[str, Value] = msgspec.field(default_factory=dict)
    undefined: bool = False
    """Whether a program continues after a failed check, in a way that is not known: not in the small language, where the
    process is stuck."""
    notes: tuple[str, ...] = ()
    """What the author should know: statements that are several steps, for example."""

    @property
    def offsets(self) -> dict[Variable, int]:
        """The position of the first cell of each variable in a state."""
        found, at = {}, 0
        for variable in self.variables:
            found[variable] = at
            at += variable.cells
        return found

    @property
    def longest(self) -> int | None:
        """The maximal number of steps of a run. None: a process has a loop."""
        lengths = [longest(code) for code in self.processes]
        known = [n for n in lengths if n is not None]
        return sum(known) if len(known) == len(lengths) else None

    @property
    def has_atomic_sections(self) -> bool:
        """Whether a process can be inside an atomic section of several steps."""
        return any(step.exclusive for code in self.processes for step in code.instructions)

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
        case Not(operand) | Wrap(operand):
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
        case Ended(process) | At(process):
            return {process}
        case Not(operand) | Wrap(operand):
            return ended_in(operand)
        case Operation(_, left, right):
            return ended_in(left) | ended_in(right)
        case Choice(condition, then, otherwise):
            return ended_in(condition) | ended_in(then) | ended_in(otherwise)
        case _:
            return set()


def cases(e: Expr) -> list[Expr]:
    """Split an expression into cases: it holds if and only if one of them holds.

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
    """Join one or more parts as a balanced tree: many parts do not give a deep expression."""
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
    """The minimal number of steps to each location."""
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
    """The maximal number of steps of a process. None: it has a loop."""
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
