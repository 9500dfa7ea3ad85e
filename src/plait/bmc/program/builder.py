"""The builder of programs: a front end writes the code of each process with labels and jumps, and gets a `Program`.

A front end translates one process (a thread with its inlined functions) after the other. Expressions read only the
variables of their own process; `load` copies the value of a shared variable to a temporary variable first. So each
access to shared memory is an operation of its own, and `steps.py` can make steps with at most one such access.
Operations that the language guarantees to be atomic (a lock, an atomic counter) are one operation with several actions.

    program = ProgramBuilder("counter", source)
    x = program.shared("x")
    code = program.process("main")
    code.at(place)
    value = code.load(x)  # one step
    code.set(x, operation("+", value, Constant(1)))  # another step
    code.end()
    program.build()
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from plait.bmc.program.arithmetic import negate
from plait.bmc.program.definition import (
    ASSERTIONS,
    BOUNDS,
    Action,
    Branch,
    Choice,
    Constant,
    Domain,
    Ensure,
    Expr,
    Input,
    Kind,
    Not,
    Operation,
    ProcessCode,
    Program,
    Property,
    PropertyKind,
    Read,
    Require,
    Set,
    Value,
    Variable,
    Wrap,
    accesses,
)
from plait.bmc.program.source import Place, Source

Deferred = Callable[[], tuple[Sequence[Action], tuple[Domain, ...]]]
"""Actions and inputs that are known only after all processes have been translated."""


class Label(msgspec.Struct, eq=False):
    """A place in the code of a process that jumps can name."""

    name: str = ""
    operation: int | None = None
    """The number of the operation at this place, once it is known."""


class Code(msgspec.Struct, eq=False):
    """An operation of a process: actions, then the next operation."""

    actions: Sequence[Action]
    place: Place
    condition: Expr | None = None
    """After the actions, continue at `then` if the condition holds, else at `otherwise`. None: always at `then`."""
    then: Label | None = None
    """None: the process ends."""
    otherwise: Label | None = None
    inputs: tuple[Domain, ...] = ()
    waits: bool = False
    owner: Read | None = None
    """The owner of the lock that it waits for (see `Instruction`)."""
    synchronizes: bool = False
    assumes: bool = False
    section: bool = False
    """Whether it is inside an atomic section."""
    entry: bool = False
    """Whether other processes can run before it although it is inside an atomic section: its first operation."""


class ProgramBuilder:
    """Collects the variables, processes and properties of a program."""

    def __init__(self, name: str, source: Source) -> None:
        self.name, self.source = name, source
        self.variables: list[Variable] = []
        self.processes: list[CodeBuilder] = []
        self.properties: list[Property] = []
        self.initial: list[Expr] = []
        self.waiters: dict[int, Variable] = {}
        """The variables `waiting` of the processes that wait for a condition variable or a barrier."""

    def shared(
        self,
        name: str,
        kind: Kind = "int",
        *,
        size: int | None = None,
        initial: Value | Sequence[Value | None] | None = 0,
        bits: int | None = None,
        signed: bool = True,
        low: int | None = None,
        high: int | None = None,
        lock: bool = False,
        temporary: bool = False,
        process: int | None = None,
    ) -> Variable:
        """A variable that all processes share. `initial` is one value for all cells, or one for each; None is free."""
        if not isinstance(initial, Sequence):
            initial = [bool(initial) if kind == "bool" and initial is not None else initial] * (size or 1)
        variable = Variable(
            name,
            kind,
            size,
            tuple(initial),
            low,
            high,
            process,
            lock,
            bits=bits,
            signed=signed,
            temporary=temporary,
        )
        self.variables.append(variable)
        return variable

    def process(self, name: str, role: str = "", *, spawned: bool = False, required: bool = True) -> CodeBuilder:
        """A new process. A spawned one waits until another process starts it."""
        code = CodeBuilder(self, len(self.processes), name, role or name, spawned, required)
        self.processes.append(code)
        return code

    def property(self, kind: PropertyKind, name: str, condition: Expr, place: Place) -> None:
        """A property of the program."""
        self.properties.append(Property(name, kind, condition, place))

    def build(self) -> Program:
        """The program, with a property for each kind of check in it, and for assertions in any case."""
        from plait.bmc.program.steps import instructions, signals_of

        for code in self.processes:
            code.resolve()
        private = self._private()
        signals = signals_of((o for code in self.processes for o in code.operations), self.variables)
        processes = tuple(
            ProcessCode(code.name, code.role, instructions(code, private, signals), code.spawned, code.required)
            for code in self.processes
        )
        checks: dict[str, None] = {ASSERTIONS: None}
        used: set[Variable] = set()
        for process in processes:
            for instruction in process.instructions:
                checks.update(dict.fromkeys(checks_of(instruction.body)))
                used.update(*accesses(instruction.body))
        kept = [v for v in self.variables if v in used or not v.temporary]
        for check in checks:
            flag = Variable(check, "bool", None, (False,), hidden=True)
            kept.append(flag)
            self.property("always", check, Not(Read(flag)), Place(1, 1))
        initial, properties = tuple(self.initial), tuple(self.properties)
        return Program(self.name, self.source, tuple(kept), processes, initial, properties, undefined=True)

    def _private(self) -> set[Variable]:
        """The variables that are never written, or that only one process accesses: no other process sees the order."""
        readers: dict[Variable, set[int]] = {}
        written: set[Variable] = set()
        for code in self.processes:
            for operation in code.operations:
                reads, writes = accesses(tuple(operation.actions))
                if operation.condition is not None:
                    reads = reads | accesses((Require(operation.condition),))[0]
                written |= writes
                for variable in reads | writes:
                    readers.setdefault(variable, set()).add(code.number)
        named = {v for p in self.properties for v in accesses((Require(p.condition),))[0]}
        return {v for v, users in readers.items() if (len(users) == 1 or v not in written) and v not in named}


class CodeBuilder:
    """Writes the code of one process."""

    def __init__(
        self, program: ProgramBuilder, number: int, name: str, role: str, spawned: bool, required: bool
    ) -> None:
        self.program, self.number, self.name, self.role = program, number, name, role
        self.spawned, self.required = spawned, required
        self.operations: list[Code] = []
        self.deferred: list[tuple[int, Deferred]] = []
        self.here = Place(1, 1)
        self.pending: list[Label] = []
        """The labels of the next operation."""
        self.reachable = True
        """Whether the next operation can be reached: not after a jump, until a label is placed."""
        self.sections = 0
        self.entering = False
        self.free: dict[tuple[Kind, int | None, bool], list[Variable]] = {}
        self.taken: list[tuple[tuple[Kind, int | None, bool], Variable]] = []
        self.names: dict[str, int] = {}
        self.exit = Label("exit")
        flag = {"kind": "bool", "initial": False, "temporary": True}
        self.started = program.shared(f"{name} started", **flag)  # type: ignore[arg-type]
        self.finished = program.shared(f"{name} finished", **flag)  # type: ignore[arg-type]
        """Whether the process has ended, for those who wait for it."""
        self.waiting = program.shared(f"{name} waiting", temporary=True)
        """The number of the object that the process waits for: a condition variable, for example. 0: none."""
        if spawned:
            self.step([Require(Read(self.started))], place=Place(1, 1, f"{name} starts"))

    # -- variables -----------------------------------------------------------------------------------------------------

    def local(
        self,
        name: str,
        kind: Kind = "int",
        *,
        size: int | None = None,
        initial: Value | Sequence[Value | None] | None = 0,
        bits: int | None = None,
        signed: bool = True,
        temporary: bool = False,
    ) -> Variable:
        """A variable of this process. If the name is taken (an inlined function), it gets a number."""
        count = self.names.get(name, 0)
        self.names[name] = count + 1
        full = f"{self.name}.{name}" + (f"#{count + 1}" if count else "")
        return self.program.shared(
            full,
            kind,
            size=size,
            initial=initial,
            bits=bits,
            signed=signed,
            temporary=temporary,
            process=self.number,
        )

    def temporary(self, kind: Kind = "int", bits: int | None = None, signed: bool = True) -> Variable:
        """A variable for an intermediate value, free until the end of `scratch`."""
        key = (kind, bits, signed)
        known = self.free.setdefault(key, [])
        initial: Value = False if kind == "bool" else 0
        variable = (
            known.pop()
            if known
            else self.local("temporary", kind, initial=initial, bits=bits, signed=signed, temporary=True)
        )
        self.taken.append((key, variable))
        return variable

    @contextmanager
    def scratch(self) -> Iterator[None]:
        """The temporary variables that are made inside can be used again afterwards: around each statement."""
        mark = len(self.taken)
        yield
        for key, variable in self.taken[mark:]:
            self.free[key].append(variable)
        del self.taken[mark:]

    # -- control flow --------------------------------------------------------------------------------------------------

    def at(self, place: Place) -> None:
        """The place in the source of the following operations."""
        self.here = place

    def label(self, name: str = "") -> Label:
        """A label, to be placed with `mark`."""
        return Label(name)

    def mark(self, label: Label) -> None:
        """The next operation is at this label."""
        self.pending.append(label)
        self.reachable = True

    def jump(self, label: Label) -> None:
        """Continue at a label."""
        self._add(Code((), self.here, then=label))
        self.reachable = False

    def branch(self, condition: Expr, then: Label, otherwise: Label) -> None:
        """Continue at one of two labels. The condition reads only variables of this process."""
        if isinstance(condition, Constant):
            self.jump(then if condition.value else otherwise)
            return
        self._add(Code((), self.here, condition, then, otherwise))
        self.reachable = False

    def end(self) -> None:
        """Finish the code of the process: jumps to `exit` lead here."""
        self.mark(self.exit)
        self.here = Place(self.here.line, 1, f"{self.name} ends", self.here.file)
        self.step([Set(self.finished, None, Constant(True))])
        self.operations[-1].then = None

    # -- operations ----------------------------------------------------------------------------------------------------

    def load(self, variable: Variable, index: Expr | None = None, *, synchronizes: bool = False) -> Expr:
        """The value of a variable. A shared variable is read in an operation of its own."""
        if variable.process is not None:
            return Read(variable, index)
        found = self.temporary(variable.kind, variable.bits, variable.signed)
        self.set(found, Read(variable, index), synchronizes=synchronizes)
        return Read(found)

    def kept(self, value: Expr, kind: Kind = "int", bits: int | None = None, signed: bool = True) -> Expr:
        """A copy of a value in a temporary variable: later assignments do not change it."""
        if isinstance(value, Constant):
            return value
        found = self.temporary(kind, bits, signed)
        self.set(found, value)
        return Read(found)

    def set(self, variable: Variable, value: Expr, index: Expr | None = None, *, synchronizes: bool = False) -> None:
        """Assign a variable. The index and the value read at most one shared variable, and none if this one is shared."""
        self._add(Code((Set(variable, index, value),), self.here, synchronizes=synchronizes))

    def ensure(self, condition: Expr, check: str = ASSERTIONS, text: str = "the assertion fails") -> None:
        """Check a condition over variables of this process."""
        if condition != Constant(True):
            self._add(Code((Ensure(condition, check, text),), self.here))

    def assume(self, condition: Expr) -> None:
        """Discard runs in which a condition over variables of this process does not hold."""
        if condition != Constant(True):
            self._add(Code((Require(condition),), self.here, assumes=True))

    def choose(self, domain: Domain, bits: int | None = None, signed: bool = True) -> Expr:
        """Any value of a domain."""
        found = self.temporary(domain.kind, bits, signed)
        self._add(Code((Set(found, None, Input(0)),), self.here, inputs=(domain,)))
        return Read(found)

    def step(
        self,
        actions: Sequence[Action] | Deferred,
        *,
        waits: bool = False,
        owner: Read | None = None,
        inputs: tuple[Domain, ...] = (),
        place: Place | None = None,
        synchronizes: bool = True,
    ) -> None:
        """An operation that is atomic in the language: a lock, an atomic counter. `waits`: it can wait for others.

        `owner`: who holds the lock that it waits for. Not `synchronizes`: an ordinary access with checks that are a part
        of it.
        """
        here = place or self.here
        added = self._add(Code((), here, inputs=inputs, waits=waits, owner=owner, synchronizes=synchronizes))
        if callable(actions):
            self.deferred.append((added, actions))
        else:
            self.operations[added].actions = actions

    def enter(self) -> None:
        """Begin an atomic section. Sections can be nested."""
        self.sections += 1
        self.entering = self.entering or self.sections == 1

    def leave(self) -> None:
        """End an atomic section."""
        self.sections -= 1
        self.entering = False

    def pause(self) -> None:
        """Inside an atomic section: other processes can run before the next operation."""
        self.entering = self.sections > 0

    def _add(self, operation: Code) -> int:
        number = len(self.operations)
        if not self.reachable and not self.pending:
            # Code after a jump: nothing leads here.
            self.pending.append(Label("unreachable"))
        for label in self.pending:
            label.operation = number
        if self.operations and self.operations[-1].then is None and self.operations[-1].condition is None:
            self.operations[-1].then = Label("next", number)
        self.pending = []
        operation.section = self.sections > 0
        operation.entry, self.entering = self.entering, False
        self.operations.append(operation)
        return number

    def resolve(self) -> None:
        """Make deferred actions."""
        for number, actions in self.deferred:
            self.operations[number].actions, self.operations[number].inputs = actions()


def checks_of(actions: Sequence[Action]) -> Iterator[str]:
    """The checks that actions can fail."""
    for action in actions:
        match action:
            case Set(variable, index, value):
                expressions = [value] if index is None else [Read(variable, index), value]
            case Require(condition):
                expressions = [condition]
            case Ensure(condition, check):
                yield check
                expressions = [condition]
            case Branch(condition, then, otherwise):
                expressions = [condition]
                yield from checks_of((*then, *otherwise))
            case _:
                expressions = []
        if any(map(loose, expressions)):
            yield BOUNDS


def loose(e: Expr) -> bool:
    """Whether an index in an expression may be out of range."""
    match e:
        case Read(variable, index) if index is not None:
            known = isinstance(index, Constant) and 0 <= index.value < variable.cells
            return not known
        case Not(operand) | Wrap(operand):
            return loose(operand)
        case Operation(_, left, right):
            return loose(left) or loose(right)
        case Choice(condition, then, otherwise):
            return loose(condition) or loose(then) or loose(otherwise)
        case _:
            return False


def substituted(e: Expr, inputs: Mapping[int, int]) -> Expr:
    """An expression with other numbers of inputs."""
    match e:
        case Input(number):
            return Input(inputs.get(number, number))
        case Read(variable, index) if index is not None:
            return Read(variable, substituted(index, inputs))
        case Not(operand):
            return negate(substituted(operand, inputs))
        case Wrap(operand, bits, signed):
            return Wrap(substituted(operand, inputs), bits, signed)
        case Operation(name, left, right):
            return Operation(name, substituted(left, inputs), substituted(right, inputs))
        case Choice(condition, then, otherwise):
            return Choice(*(substituted(part, inputs) for part in (condition, then, otherwise)))
        case _:
            return e
