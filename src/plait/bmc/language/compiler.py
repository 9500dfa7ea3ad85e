"""Compile a syntax tree to a Program: check names and types, turn each process into steps between locations."""

from __future__ import annotations

from collections.abc import Mapping

from plait.bmc.language import syntax as s
from plait.bmc.language.accesses import SingleAccesses
from plait.bmc.language.expressions import MANY, Scope
from plait.bmc.program.arithmetic import negate, operation
from plait.bmc.program.builder import loose
from plait.bmc.program.definition import (
    ASSERTIONS,
    BOUNDS,
    Action,
    Branch,
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
    ProcessCode,
    Program,
    Property,
    PropertyKind,
    Read,
    Require,
    Set,
    Value,
    Variable,
    accesses,
)
from plait.bmc.program.source import Place
from plait.bmc.program.steps import targets_of
from plait.kernel.errors import Argument, UsageError

_KINDS: dict[str, Kind] = {"int": "int", "bool": "bool", "lock": "bool"}


def compile_program(tree: s.ProgramTree, parameters: Mapping[str, str | int | bool] | None = None) -> Program:
    """Check a tree and compile it to a program; `parameters` replace constants.

    >>> from plait.bmc.language.parser import parse
    >>> program = compile_program(parse("const n = 2; int x = 0; process p[i in 1..n] { x = x + i; }"), {"n": 3})
    >>> [process.name for process in program.processes]
    ['p[1]', 'p[2]', 'p[3]']
    """
    atomic = _Compiler(tree, dict(parameters or {}), frozenset()).program()
    if tree.atomic or not (contended := _contended(atomic)):
        return atomic
    return _Compiler(tree, dict(parameters or {}), contended).program()


def _contended(program: Program) -> frozenset[str]:
    """The variables that several processes access, and that some process writes."""
    users: dict[Variable, set[int]] = {}
    written: set[Variable] = set()
    for code in program.processes:
        for step in code.instructions:
            reads, writes = accesses(step.body)
            written |= writes
            for variable in reads | writes:
                users.setdefault(variable, set()).add(step.process)
    return frozenset(v.name for v, those in users.items() if v in written and v.process is None and len(those) > 1)


class _Compiler:
    """Compiles a program. A step has at most one access to the `contended` variables."""

    def __init__(self, tree: s.ProgramTree, parameters: dict[str, str | int | bool], contended: frozenset[str]) -> None:
        self.tree, self.source, self.contended = tree, tree.source, contended
        self.divided: dict[int, Place] = {}
        """By line: the statements that are several steps."""
        self.constants = self._constants(parameters)
        self.taken: dict[str, str] = dict.fromkeys(self.constants, "a constant")
        self.variables: list[Variable] = []
        self.top = Scope(self.source, self.constants, {})
        self.shared: dict[str, Variable] = {}
        for declaration in tree.variables:
            self._new(declaration, declaration.name, "a variable")
            self.shared[declaration.name] = self._declare(declaration, self.top, None)
        self.checked = False
        """Whether an index of the program may be out of range."""
        self.asserted = False

    def _new(self, node: s.Node, name: str, what: str) -> None:
        if name in self.taken:
            raise self.source.error(node.place, f"{name} is already {self.taken[name]}", "choose another name")
        self.taken[name] = what

    def _constants(self, parameters: dict[str, str | int | bool]) -> dict[str, Value]:
        found: dict[str, Value] = {}
        for constant in self.tree.constants:
            if constant.name in found:
                raise self.source.error(constant.place, f"{constant.name} is already a constant", "choose another name")
            value, kind = Scope(self.source, found, {}).expression(constant.value)
            if not isinstance(value, Constant):
                raise self.source.error(
                    constant.place, f"the value of {constant.name} is not constant", "use numbers and constants"
                )
            given = parameters.pop(constant.name, None)
            found[constant.name] = value.value if given is None else _parameter(constant.name, given, kind)
        if parameters:
            name = next(iter(parameters))
            known = ", ".join(found) or "none"
            raise UsageError(f"{self.source.name} has no constant {name!r}", hint=f"its constants are: {known}")
        return found

    def _declare(self, d: s.Declaration, scope: Scope, process: int | None, owner: str = "") -> Variable:
        kind = _KINDS[d.kind]
        size = None if d.size is None else scope.number(d.size, "the size of an array")
        if size is not None and not 1 <= size <= MANY:
            raise scope.error(d, f"{d.name} has {size} cells", f"give 1 to {MANY:,} cells")
        cells = 1 if size is None else size
        if d.kind == "lock" and (d.initial is not None or d.low is not None):
            raise scope.error(
                d, f"the lock {d.name} has an initial value", "remove the value: locks are free initially"
            )
        values: list[Value | None] = [None] * cells
        if d.kind == "lock":
            values = [False] * cells
        elif d.initial is not None:
            if d.listed and size is None:
                raise scope.error(d, f"{d.name} has a list of values, but is not an array", f"declare {d.name}[SIZE]")
            if d.listed and len(d.initial) != cells:
                raise scope.error(
                    d, f"{d.name} has {cells} cells, but {len(d.initial)} values", "give one value per cell"
                )
            known = []
            for e in d.initial:
                value = scope.typed(e, kind)
                if not isinstance(value, Constant):
                    raise scope.error(e, "an initial value must be constant", "remove it, and add a condition: init …;")
                known.append(value.value)
            values = list(known) if d.listed else [known[0]] * cells
        low = high = None
        if d.low is not None and d.high is not None:
            if kind != "int":
                raise scope.error(d, f"{d.name} is a bool, but has a range", "remove the range")
            low, high = scope.number(d.low, "a range"), scope.number(d.high, "a range")
            if low > high:
                raise scope.error(d, f"the range {low}..{high} is empty", "write the smaller number first")
        variable = Variable(owner + d.name, kind, size, tuple(values), low, high, process, d.kind == "lock")
        self.variables.append(variable)
        return variable

    def program(self) -> Program:
        processes: list[ProcessCode] = []
        locals_: dict[str, dict[int | None, dict[str, Variable]]] = {}
        numbers: dict[str, dict[int | None, int]] = {}
        for declaration in self.tree.processes:
            self._new(declaration, declaration.name, "a process")
            locals_[declaration.name], numbers[declaration.name] = {}, {}
            for index in self._indices(declaration):
                number = len(processes)
                code, names = self._process(declaration, index, number)
                processes.append(code)
                locals_[declaration.name][index], numbers[declaration.name][index] = names, number
        if not processes:
            raise self.source.error(Place(1, 1), "the program has no process", "add one: process p { … }")
        if self.tree.count is not None:
            place, e = self.tree.count
            if (count := self.top.number(e, "the number of processes")) != len(processes):
                raise self.source.error(
                    place, f"the number of processes is {len(processes)}, not {count}", "correct the number"
                )
        outside = Scope(self.source, self.constants, self.shared, locals_, numbers)
        initial = tuple(outside.typed(e, "bool") for e in self.tree.initial)
        for e, condition in zip(self.tree.initial, initial, strict=True):
            _no_loose_index(condition, outside, e)
        properties = [self._property(d, outside, len(processes)) for d in self.tree.properties]
        for name, used in ((ASSERTIONS, self.asserted), (BOUNDS, self.checked)):
            if used:
                flag = Variable(name, "bool", None, (False,), hidden=True)
                self.variables.append(flag)
                self._new(self.tree.processes[0], name, "a built-in property")
                properties.append(Property(name, "always", Not(Read(flag)), self.tree.processes[0].place))
        return Program(
            self.tree.name,
            self.source,
            tuple(self.variables),
            tuple(processes),
            initial,
            tuple(properties),
            self.constants,
            notes=self._notes(),
        )

    def _notes(self) -> tuple[str, ...]:
        if not self.divided:
            return ()
        line, place = min(self.divided.items())
        count = "1 statement is" if len(self.divided) == 1 else f"{len(self.divided)} statements are"
        return (f"{count} several steps, for example line {line}: {place.text}",)

    def _indices(self, d: s.ProcessDeclaration) -> list[int | None]:
        if d.variable is None or d.low is None or d.high is None:
            return [None]
        low, high = self.top.number(d.low, "the range of a process"), self.top.number(d.high, "the range of a process")
        if not low <= high < low + MANY:
            raise self.source.error(
                d.place,
                f"{d.name} has {high - low + 1} instances",
                f"write the smaller number first; the maximum is {MANY:,} instances",
            )
        return list(range(low, high + 1))

    def _property(self, d: s.PropertyDeclaration, scope: Scope, processes: int) -> Property:
        self._new(d, d.name, "a property")
        condition = scope.typed(d.condition, "bool")
        _no_loose_index(condition, scope, d)
        kind: PropertyKind = "reachable" if d.kind == "reachable" else "final" if d.kind == "final" else "always"
        if kind == "final":
            done: Expr = Constant(True)
            for number in range(processes):
                done = operation("&&", done, Ended(number))
            condition = operation("||", negate(done), condition)
        return Property(d.name, kind, condition, d.place)

    def _process(
        self, d: s.ProcessDeclaration, index: int | None, number: int
    ) -> tuple[ProcessCode, dict[str, Variable]]:
        constants = dict(self.constants)
        own: set[str] = set()

        def fresh(node: s.Node, name: str) -> None:
            if name in own or name in self.taken:
                meaning = self.taken.get(name, "a name of this process")
                raise self.source.error(node.place, f"{name} is already {meaning}", "choose another name")
            own.add(name)

        if d.variable is not None and index is not None:
            fresh(d, d.variable)
            constants[d.variable] = index
        for p in d.parameters:
            fresh(p, p.name)
            value, _ = Scope(self.source, constants, {}).expression(p.value)
            if not isinstance(value, Constant):
                raise self.source.error(
                    p.place, f"the value of the parameter {p.name} is not constant", "use numbers and constants"
                )
            constants[p.name] = value.value
        name = d.name if index is None else f"{d.name}[{index}]"
        names: dict[str, Variable] = {}
        for declaration in d.locals:
            fresh(declaration, declaration.name)
            scope = Scope(self.source, constants, {})
            names[declaration.name] = self._declare(declaration, scope, number, f"{name}.")
        scope = Scope(self.source, constants, self.shared | names)
        return _ProcessCompiler(self, scope, number).code(name, d.name, d.body), names


class _Step:
    """A step whose location is known, and whose actions may follow later."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.actions: list[Action] = []
        self.inputs: tuple[Domain, ...] = ()
        self.waits = self.synchronizes = False


class _ProcessCompiler:
    """Turns the statements of one process into steps."""

    def __init__(self, whole: _Compiler, scope: Scope, number: int) -> None:
        self.whole, self.scope, self.number = whole, scope, number
        self.steps: list[_Step] = []
        self.inputs: list[Domain] = []
        self.accesses = SingleAccesses(self, whole.contended)

    def code(self, name: str, role: str, body: tuple[s.Statement, ...]) -> ProcessCode:
        self.name = name
        self._block(body)
        steps = tuple(
            Instruction(
                self.number,
                at,
                tuple(step.actions),
                targets_of(step.actions),
                step.place,
                step.inputs,
                waits=step.waits,
                synchronizes=step.synchronizes or self.whole.tree.atomic,
            )
            for at, step in enumerate(self.steps)
        )
        return ProcessCode(name, role, steps)

    def new_step(self, place: Place) -> int:
        """A step whose actions follow later, and its location."""
        self.steps.append(_Step(place))
        return len(self.steps) - 1

    def fill(self, at: int, actions: list[Action]) -> None:
        """Set the actions of a step."""
        self.steps[at].actions, self.steps[at].inputs = actions, tuple(self.inputs)
        self.inputs = []

    def add_variable(self, variable: Variable) -> None:
        """Add a variable of the process."""
        self.whole.variables.append(variable)

    def _block(self, statements: tuple[s.Statement, ...]) -> int:
        """Add the steps of the statements, and return the location after them."""
        for statement in statements:
            self._statement(statement)
        return len(self.steps)

    def _divided(self, place: Place, first: int) -> None:
        """Note that a statement has several steps: from a location to the last one."""
        if len(self.steps) - first > 1:
            self.whole.divided[place.line] = place

    def _statement(self, statement: s.Statement) -> None:
        first = len(self.steps)
        match statement:
            case s.If(place, condition, then, otherwise):
                test = self.accesses.single(self._condition(condition), place)
                if isinstance(test, Constant):
                    # The condition is constant: the decision needs no step.
                    self._block(then if test.value else otherwise)
                    return
                at = self.new_step(place)
                self._divided(place, first)
                inside = len(self.steps)
                self._block(then)
                self._branches(at, inside, otherwise, test)
            case s.While(place, condition, body):
                test = self._condition(condition)
                if test == Constant(False):
                    return
                test = self.accesses.single(test, place)
                at = self.new_step(place)
                self._divided(place, first)
                behind = self._block(body)
                self._redirect(range(at + 1, behind), behind, first)
                self.fill(at, [Branch(test, (Goto(at + 1 if body else first),), (Goto(behind),))])
            case s.Choose(place, branches):
                at = self.new_step(place)
                starts, ends = [], []
                for branch in branches:
                    starts.append(len(self.steps))
                    ends.append(self._block(branch))
                behind = len(self.steps)
                for i, (start, end) in enumerate(zip(starts, ends, strict=True)):
                    self._redirect(range(start, end), end, behind)
                    starts[i] = start if start != end else behind
                chosen: list[Action] = [Goto(starts[-1])]
                for i in reversed(range(len(starts) - 1)):
                    chosen = [Branch(Operation("==", Input(0), Constant(i)), (Goto(starts[i]),), tuple(chosen))]
                self.inputs = [Domain("int", 0, len(starts) - 1)]
                self.fill(at, chosen)
            case _:
                actions = self._atomic(statement)
                if not isinstance(statement, s.Atomic | s.Assume):
                    inputs, self.inputs = self.inputs, []
                    actions = [self.accesses.single_action(action, statement.place) for action in actions]
                    self.inputs = inputs
                at = self.new_step(statement.place)
                self._divided(statement.place, first)
                self.fill(at, [*actions, Goto(at + 1)])
                locks, assumes = _blocking(statement)
                self.steps[at].waits = locks and not assumes
                self.steps[at].synchronizes = isinstance(statement, s.Atomic | s.Locking)

    def _branches(self, at: int, start: int, otherwise: tuple[s.Statement, ...], test: Expr) -> None:
        """Add the `else` branch of an `if`, and the decision."""
        end = len(self.steps)
        if not otherwise:
            self.fill(at, [Branch(test, (Goto(start),), (Goto(end),))])
            return
        behind = self._block(otherwise)
        self._redirect(range(start, end), end, behind)
        self.fill(at, [Branch(test, (Goto(start if start != end else behind),), (Goto(end),))])

    def _redirect(self, locations: range, old: int, new: int) -> None:
        for at in locations:
            self.steps[at].actions = [_redirected(a, old, new) for a in self.steps[at].actions]

    # -- single steps --------------------------------------------------------------------------------------------------

    def _condition(self, e: s.Expression) -> Expr:
        test = self.scope.typed(e, "bool")
        self._note(test)
        return test

    def _note(self, e: Expr | None) -> None:
        if e is not None and loose(e):
            self.whole.checked = True

    def _target(self, name: s.Name) -> tuple[Variable, Expr | None]:
        variable, index = self.scope.cell(name)
        if variable.size is not None:
            self._note(Read(variable, index))
        return variable, index

    def _atomic(self, statement: s.Statement) -> list[Action]:
        """The actions of a statement that is one step, or part of one."""
        match statement:
            case s.Assign(_, target, value):
                variable, index = self._target(target)
                if variable.lock:
                    raise self.scope.error(
                        statement, f"{target.name} is a lock: it cannot be assigned", f"write lock({target.name});"
                    )
                found = self.scope.typed(value, variable.kind)
                self._note(found)
                return [Set(variable, index, found)]
            case s.Havoc(_, target, low, high):
                variable, index = self._target(target)
                self.inputs.append(self._domain(statement, variable, low, high))
                return [Set(variable, index, Input(len(self.inputs) - 1))]
            case s.Assume(_, condition):
                return [Require(self._condition(condition))]
            case s.Assert(_, condition):
                self.whole.asserted = True
                return [Ensure(self._condition(condition))]
            case s.Locking(_, target, taken):
                variable, index = self._target(target)
                if not variable.lock:
                    raise self.scope.error(target, f"{target.name} is not a lock", f"declare lock {target.name};")
                wait: list[Action] = [Require(Not(Read(variable, index)))] if taken else []
                return [*wait, Set(variable, index, Constant(taken))]
            case s.Skip():
                return []
            case s.If(_, condition, then, otherwise):
                test = self._condition(condition)
                return [Branch(test, tuple(self._sequence(then)), tuple(self._sequence(otherwise)))]
            case s.Choose(_, branches):
                self.inputs.append(Domain("int", 0, len(branches) - 1))
                chosen = Input(len(self.inputs) - 1)
                rest = self._sequence(branches[-1])
                for i in reversed(range(len(branches) - 1)):
                    this = tuple(self._sequence(branches[i]))
                    rest = [Branch(Operation("==", chosen, Constant(i)), this, tuple(rest))]
                return rest
            case s.Atomic(_, body):
                return self._sequence(body)
            case s.While():
                raise self.scope.error(statement, "an atomic block contains a while", "move the loop out of atomic { }")

    def _sequence(self, statements: tuple[s.Statement, ...]) -> list[Action]:
        return [action for statement in statements for action in self._atomic(statement)]

    def _domain(self, node: s.Node, variable: Variable, low: s.Expression | None, high: s.Expression | None) -> Domain:
        if variable.lock:
            raise self.scope.error(
                node, f"{variable.name} is a lock: it has no free value", "use lock(…); and unlock(…);"
            )
        if low is None or high is None:
            return Domain(variable.kind)
        if variable.kind == "bool":
            raise self.scope.error(node, f"{variable.name} is a bool, but has a range", "remove the range")
        least, most = self.scope.number(low, "a range"), self.scope.number(high, "a range")
        if least > most:
            raise self.scope.error(node, f"the range {least}..{most} is empty", "write the smaller number first")
        return Domain("int", least, most)


def _redirected(action: Action, old: int, new: int) -> Action:
    match action:
        case Goto(location) if location == old:
            return Goto(new)
        case Branch(condition, then, otherwise):
            return Branch(
                condition,
                tuple(_redirected(a, old, new) for a in then),
                tuple(_redirected(a, old, new) for a in otherwise),
            )
        case _:
            return action


def _blocking(statement: s.Statement) -> tuple[bool, bool]:
    """Whether a statement takes a lock, and whether it assumes a condition."""
    match statement:
        case s.Locking(_, _, taken):
            return taken, False
        case s.Assume():
            return False, True
        case s.Atomic(_, body):
            inside = [_blocking(each) for each in body]
        case s.If(_, _, then, otherwise):
            inside = [_blocking(each) for each in (*then, *otherwise)]
        case s.Choose(_, branches):
            inside = [_blocking(each) for branch in branches for each in branch]
        case _:
            return False, False
    return any(locks for locks, _ in inside), any(assumes for _, assumes in inside)


def _no_loose_index(e: Expr, scope: Scope, node: s.Node) -> None:
    """Raise an error if an index may be out of range: outside of a process, no step can fail."""
    if loose(e):
        raise scope.error(
            node, "an index outside of a process may be out of range", "use constants or quantifiers as indices"
        )


def _parameter(name: str, given: str | int | bool, kind: Kind) -> Value:
    if kind == "bool":
        found = {"true": True, "false": False}.get(str(given).lower())
        if found is None:
            raise UsageError(
                f"{name}={given!r} does not fit: expected a bool (true or false)",
                hint=("for example ", Argument(name, "true", parameter=True)),
            )
        return found
    try:
        return int(str(given).replace("_", ""))
    except ValueError:
        raise UsageError(
            f"{name}={given!r} does not fit: expected a number",
            hint=("for example ", Argument(name, 3, parameter=True)),
        ) from None
