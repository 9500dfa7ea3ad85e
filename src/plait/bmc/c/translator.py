"""The translation of one process: statements, variables, and functions, which are inlined at each call."""

from __future__ import annotations

import dataclasses

from plait.bmc.c.expressions import Expressions
from plait.bmc.c.initialisers import Initial, initials, scalars
from plait.bmc.c.library import CALLS
from plait.bmc.c.model import Model
from plait.bmc.c.tree import (
    Assign,
    Block,
    Call,
    Case,
    Declaration,
    Declare,
    Definition,
    Do,
    Expression,
    FunctionName,
    If,
    Increment,
    Jump,
    Loop,
    Name,
    Number,
    Return,
    Statement,
    Switch,
    Target,
    nodes,
)
from plait.bmc.c.types import BOOL, INT, VOID, Array, CType, Integer, Pointer, Struct, Synchronization, Void, integer
from plait.bmc.c.usage import root
from plait.bmc.c.values import NOWHERE, ZERO, Located, Object, Reference, Val
from plait.bmc.program.arithmetic import operation
from plait.bmc.program.builder import CodeBuilder, Label
from plait.bmc.program.definition import LIMITS, MEMORY, Constant, Domain, Expr, Read, Variable
from plait.bmc.program.source import Place

_MOST_UNROLLED = 64
"""The number of iterations of a loop that is unrolled."""
_LARGE = 16
"""The number of scalars from which on an initialiser becomes a part of the initial state, if possible."""


@dataclasses.dataclass(eq=False)
class Frame:
    """A function that is being translated."""

    function: Definition
    exit: Label
    result: Variable | Object | None
    returned: list[Val] = dataclasses.field(default_factory=list)
    labels: dict[str, Label] = dataclasses.field(default_factory=dict)
    breaks: list[Label] = dataclasses.field(default_factory=list)
    continues: list[Label] = dataclasses.field(default_factory=list)
    cases: list[dict[int, Label]] = dataclasses.field(default_factory=list)
    """For each enclosing switch, the labels of its cases."""


class Translator(Expressions):
    """Translates the code of one process."""

    def __init__(self, model: Model, code: CodeBuilder, chain: tuple[str, ...]) -> None:
        super().__init__(model, code)
        self.chain = chain
        """The functions of the threads that lead to this one."""
        self.frames: list[Frame] = []
        self.loops = 0
        """The number of loops around the code: what is in none runs once."""
        self.result: Variable | None = None
        """For a thread: the variable for its result."""

    # -- functions -----------------------------------------------------------------------------------------------------

    def call(self, e: Call) -> Val:
        """The result of a call."""
        if isinstance(e.function, FunctionName):
            return self._call(e.function.name, e)
        pointer = self.value(e.function)
        if pointer.function is not None:
            return self._call(pointer.function, e)
        return self._through_pointer(pointer, e)

    def _call(self, name: str, e: Call) -> Val:
        known = CALLS.get(name)
        definition = self.model.unit.function(name)
        if known is not None and (definition is None or name in ("reach_error", "__VERIFIER_error")):
            return known(self, e)
        if definition is None and name.startswith("__VERIFIER_nondet_"):
            return self.nondeterministic(e)
        if definition is None:
            raise self.refusal(f"the function {name}, which has no body,", e.place)
        arguments = [self.value(a) for a in e.arguments]
        if not name.startswith("__VERIFIER_atomic_"):
            return self.inlined(definition, arguments, e.place)
        self.code.enter()
        value = self.inlined(definition, arguments, e.place)
        self.code.leave()
        return value

    def nondeterministic(self, e: Call) -> Val:
        """Any value of a type."""
        t = e.type
        if isinstance(e.function, FunctionName) and e.function.name.endswith("_bool"):
            return Val(self.code.choose(Domain("int", 0, 1), 1, False), BOOL)
        if not isinstance(t, Integer):
            raise self.refusal("a nondeterministic value that is not an integer", e.place)
        return Val(self.code.choose(Domain("int", t.low, t.high), t.bits, t.signed), t)

    def _through_pointer(self, pointer: Val, e: Call) -> Val:
        """A call through a pointer: a branch to each function that it may point to."""
        names = [n.removeprefix("function ") for n in self.model.resolved(pointer.origins) if n.startswith("function ")]
        arguments = [self.value(a) for a in e.arguments]
        address = self.steady(pointer.expr)
        result = None
        if isinstance(e.type, Integer | Pointer):
            result = self.code.temporary("int", integer(e.type).bits, integer(e.type).signed)
        elif isinstance(e.type, Struct):
            raise self.refusal("a call through a pointer with a struct as result", e.place)
        origins = NOWHERE
        done = self.code.label("called")
        for name in names:
            definition = self.model.unit.function(name)
            if definition is None or len(definition.parameters) != len(arguments):
                continue
            here, after = self.code.label(), self.code.label()
            self.branch(operation("==", address, Constant(self.model.address(name))), here, after)
            self.mark(here)
            value = self.inlined(definition, arguments, e.place)
            if result is not None:
                self.code.set(result, self.cast(value, e.type).expr)
                origins |= value.origins
            self.jump(done)
            self.mark(after)
        if self.code.reachable:
            self.code.ensure(Constant(False), MEMORY, "the pointer does not point to a function")
        self.mark(done)
        return Val(ZERO if result is None else Read(result), e.type, origins)

    def inlined(self, definition: Definition, arguments: list[Val], place: Place) -> Val:
        """The body of a function, with these arguments."""
        code = self.code
        depth = sum(frame.function is definition for frame in self.frames)
        if depth > self.model.options.unwind:
            text = f"{definition.name} calls itself more than {self.model.options.unwind} times"
            code.ensure(Constant(False), LIMITS, text)
            return Val(ZERO, definition.result)
        outer, self.names = self.names, {}
        t = definition.result
        result: Variable | Object | None = None
        if isinstance(t, Integer | Pointer):
            result = code.temporary("int", integer(t).bits, integer(t).signed)
        elif isinstance(t, Struct):
            result = self.model.local(self.unique("result"), t, code.number)
        for parameter, argument in zip(definition.parameters, arguments, strict=False):
            self.bind(parameter, self.cast(argument, parameter.type))
        frame = Frame(definition, code.label(f"end of {definition.name}"), result)
        self.frames.append(frame)
        self.loops += definition.jumps
        with code.scratch():
            self.statement(definition.body)
        self.loops -= definition.jumps
        self.frames.pop()
        self.mark(frame.exit)
        self.names = outer
        code.at(place)
        if isinstance(result, Object):
            return self.load(self.whole(result))
        if len(frame.returned) == 1 and isinstance(frame.returned[0].expr, Constant):
            return frame.returned[0]
        origins = frozenset().union(*(value.origins for value in frame.returned)) if frame.returned else NOWHERE
        return Val(ZERO if result is None else Read(result), t, origins)

    def bind(self, parameter: Declaration, value: Val) -> None:
        """Give a parameter its value."""
        fixed = not parameter.assigned and not parameter.shared and isinstance(value.expr, Constant)
        if fixed and value.parts is None:
            self.names[parameter] = value
            return
        found = self._object(parameter)
        self.store(self.whole(found), value)

    def _object(self, declared: Declaration, t: CType | None = None) -> Object:
        """A new local variable."""
        t = t or declared.type
        if declared.shared or _synchronizes(t):
            found = self.model.object(f"{self.code.name}.{declared.name}", t)
        else:
            found = self.model.local(self.unique(declared.name), t, self.code.number)
        self.names[declared] = found
        return found

    # -- variables -----------------------------------------------------------------------------------------------------

    def declare(self, declared: Declaration) -> None:
        """Make a local variable, and initialise it."""
        if declared.static:
            return
        t, initial = declared.type, declared.initial
        scalar = isinstance(t, Integer | Pointer)
        if scalar and initial is not None:
            outer = self.wanted
            self.wanted = t.target if isinstance(t, Pointer) and not isinstance(t.target, Void) else None
            first = initials(t, initial)
            value = self.cast(self.value(first[0][1]) if first else Val(ZERO, INT), t)
            self.wanted = outer
            if not declared.assigned and not declared.shared and isinstance(value.expr, Constant):
                self.names[declared] = value
                return
            self.store(self.whole(self._object(declared)), value)
            return
        if isinstance(t, Array) and t.count == 0 and declared.length is not None:
            length = self.value(declared.length).constant
            if length is None or length < 1:
                raise self.refusal("an array whose length is not a constant", declared.place)
            t = Array(t.element, length)
        found = self._object(declared, t)
        if initial is not None:
            self._initialise(found, initials(t, initial))
        elif declared.unset and isinstance(t, Integer) and not declared.shared:
            value = Val(self.code.choose(Domain("int", t.low, t.high), t.bits, t.signed), t)
            self.store(self.whole(found), value)

    def _initialise(self, found: Object, given: list[Initial]) -> None:
        paths = list(scalars(found.type))
        if isinstance(found.type, Synchronization) or (len(paths) > _LARGE and not self.loops):
            self._preset(found, given)
            return
        values = {path: self.value(e) for path, e in given}
        if isinstance(found.type, Struct) and () in values:
            self.store(self.whole(found), values[()])
            return
        for path, value in values.items():
            at = self._part(found, path)
            self.store(at, self.cast(value, at.type))
        inside = [path for path, value in values.items() if value.parts is not None]
        for path in paths:
            if path not in values and not any(path[: len(p)] == p for p in inside):
                at = self._part(found, path)
                self.store(at, Val(ZERO, at.type))

    def _part(self, found: Object, path: tuple[str | int, ...]) -> Reference:
        at: Reference = self.whole(found)
        for step in path:
            at = self.member(at, step) if isinstance(step, str) else self.element(at, Constant(step))
        return at

    def static(self, declared: Declaration) -> Object:
        """The object of a static variable, with its initial value."""
        known = self.model.statics.get(declared)
        if known is not None:
            return known
        if not declared.defined:
            raise self.refusal(f"the variable {declared.name}, which is declared but not defined,")
        found = self.model.statics[declared] = self.model.object(declared.name, declared.type)
        if declared.initial is not None:
            self._preset(found, initials(declared.type, declared.initial))
        return found

    def _preset(self, found: Object, given: list[Initial]) -> None:
        """Set the initial values of an object in the initial state."""
        pointers: list[tuple[Located, Val]] = []
        for path, e in given:
            at = self._part(found, path)
            assert isinstance(at, Located)
            if isinstance(at.type, Synchronization):
                kinds = [n.value for n in nodes(e) if isinstance(n, Number) and n.value]
                if at.type.kind == "mutex" and kinds:
                    _put(found, (*at.path, "kind"), at.index, kinds[0])
                continue
            value = self.cast(self.value(e), at.type)
            if value.constant is None:
                raise self.refusal("an initialiser that is not a constant", e.place)
            _put(found, at.path, at.index, value.constant)
            if value.origins:
                pointers.append((at, value))
        for at, value in pointers:
            self.flow(self.variable(at), value)

    # -- statements ----------------------------------------------------------------------------------------------------

    def block(self, body: Block) -> Val:
        """Execute a block; the value of its last expression."""
        value = Val(ZERO, VOID)
        here = self.code.here
        for number, part in enumerate(body.body):
            if isinstance(part, Do) and number == len(body.body) - 1:
                value = self.value(part.expression)
            else:
                self.statement(part)
        self.code.at(here)
        return value

    def statement(self, node: Statement) -> None:
        """Translate a statement."""
        code = self.code
        if not code.reachable and not any(isinstance(part, Target | Case) for part in nodes(node)):
            if isinstance(node, Declare):
                for declared in node.declarations:
                    if not declared.static:
                        self._object(declared)
            return
        if isinstance(node, Block):
            for part in node.body:
                self.statement(part)
            return
        if node.place.text:
            code.at(node.place)
        with code.scratch():
            self._statement(node)

    def _statement(self, node: Statement) -> None:
        code, frame = self.code, self.frames[-1]
        match node:
            case Do(expression):
                self.value(expression, needed=False)
            case Declare(declarations):
                for declared in declarations:
                    self.declare(declared)
            case If(condition, then, otherwise):
                yes, no, done = code.label(), code.label(), code.label()
                self.jump_if(condition, yes, no)
                self.mark(yes)
                self.statement(then)
                if otherwise is not None:
                    self.jump(done)
                self.mark(no)
                if otherwise is not None:
                    self.statement(otherwise)
                    self.mark(done)
            case Loop():
                self._loop(node)
            case Switch(value, body):
                self._switch(self.value(value).expr, body)
            case Case(body=body):
                self.mark(frame.cases[-1][id(node)])
                self.statement(body)
            case Target(name, body):
                self.mark(frame.labels.setdefault(name, code.label(name)), again=True)
                self.statement(body)
            case Jump("break"):
                self.jump(frame.breaks[-1])
            case Jump("continue"):
                self.jump(frame.continues[-1])
            case Jump(name=name):
                self.jump(frame.labels.setdefault(name, code.label(name)))
            case Return(value):
                self._return(value)

    def _return(self, e: Expression | None) -> None:
        frame = self.frames[-1]
        if e is not None:
            value = self.cast(self.value(e), frame.function.result)
            frame.returned.append(value)
            if isinstance(frame.result, Object):
                self.store(self.whole(frame.result), value)
            elif frame.result is not None:
                self.code.set(frame.result, value.expr)
        self.jump(frame.exit)

    def _switch(self, value: Expr, body: Statement) -> None:
        code, frame = self.code, self.frames[-1]
        cases = _own_cases(body)
        labels = {id(case): code.label() for case in cases}
        done = code.label("end of switch")
        other = done
        value = self.steady(value)
        for case in cases:
            if case.low is None or case.high is None:
                other = labels[id(case)]
                continue
            if case.low == case.high:
                condition = operation("==", value, Constant(case.low))
            else:
                condition = operation(
                    "&&",
                    operation("<=", Constant(case.low), value),
                    operation("<=", value, Constant(case.high)),
                )
            after = code.label()
            self.branch(condition, labels[id(case)], after)
            self.mark(after)
        self.jump(other)
        frame.breaks.append(done)
        frame.cases.append(labels)
        self.statement(body)
        frame.cases.pop()
        frame.breaks.pop()
        self.mark(done)

    def _loop(self, node: Loop) -> None:
        if node.initial is not None:
            self.statement(node.initial)
            self.code.at(node.place)
        values = self._iterations(node)
        if values is not None:
            self._unrolled(node, *values)
            return
        code, frame = self.code, self.frames[-1]
        head, body, again, done = (code.label(name) for name in ("loop", "body", "continue", "end of loop"))
        if node.first and isinstance(node.condition, Number) and node.condition.value == 0:
            # do { … } while (0), as macros have it: no loop.
            frame.breaks.append(done)
            frame.continues.append(done)
            self.statement(node.body)
            frame.continues.pop()
            frame.breaks.pop()
            self.mark(done)
            return
        self.loops += 1
        self.mark(head, again=True)
        if not node.first and node.condition is not None:
            with code.scratch():
                self.jump_if(node.condition, body, done)
            self.mark(body)
        frame.breaks.append(done)
        frame.continues.append(again)
        self.statement(node.body)
        frame.continues.pop()
        frame.breaks.pop()
        self.mark(again)
        code.at(node.place)
        with code.scratch():
            if node.step is not None and code.reachable:
                self.value(node.step, needed=False)
            if node.first and node.condition is not None and code.reachable:
                self.jump_if(node.condition, head, done)
            else:
                self.jump(head)
        self.loops -= 1
        self.mark(done)

    # -- loops that start or join threads ------------------------------------------------------------------------------

    def _iterations(self, node: Loop) -> tuple[Declaration, list[int], int] | None:
        """The values of the counter of a loop that starts or joins threads, if they are known, and the one after it."""
        counter = _counter(node)
        if counter is None or node.condition is None or not self._with_threads(node.body):
            return None
        assigned = [root(n.target) for n in nodes(node.body) if isinstance(n, Assign | Increment)]
        bound = self.names.get(counter)
        if counter in assigned or not isinstance(bound, Object) or bound.process is None:
            return None
        if any(isinstance(n, Target) for n in nodes(node.body)):
            return None
        value = _first_value(node, self)
        found: list[int] = []
        try:
            while value is not None and len(found) <= _MOST_UNROLLED:
                self.names[counter] = Val(Constant(value), counter.type)
                if not self.pure(node.condition):
                    return None
                go = self.value(node.condition).constant
                if go is None:
                    return None
                if not go:
                    return counter, found, value
                found.append(value)
                value = self._next_value(node.step, counter)
            return None
        finally:
            self.names[counter] = bound

    def _next_value(self, step: Expression | None, counter: Declaration) -> int | None:
        current = self.names[counter]
        assert isinstance(current, Val)
        assert current.constant is not None
        match step:
            case Increment(change=change):
                return current.constant + change
            case Assign("", _, value) if self.pure(value):
                return self.value(value).constant
            case Assign("+" | "-" as operator, _, value) if self.pure(value):
                by = self.value(value).constant
                return None if by is None else current.constant + (by if operator == "+" else -by)
            case _:
                return None

    def _unrolled(self, node: Loop, counter: Declaration, values: list[int], last: int) -> None:
        code, frame = self.code, self.frames[-1]
        variable = self.names[counter]
        assert isinstance(variable, Object)
        done = code.label("end of loop")
        frame.breaks.append(done)
        for value in values:
            known = Val(Constant(value), counter.type)
            self.store(self.whole(variable), known)
            self.names[counter] = known
            again = code.label("continue")
            frame.continues.append(again)
            self.statement(node.body)
            frame.continues.pop()
            self.mark(again)
            self.names[counter] = variable
        code.at(node.place)
        self.store(self.whole(variable), Val(Constant(last), counter.type))
        frame.breaks.pop()
        self.mark(done)

    def _with_threads(self, body: Statement, seen: frozenset[str] = frozenset()) -> bool:
        for node in nodes(body):
            if isinstance(node, Call) and isinstance(node.function, FunctionName):
                name = node.function.name
                if name in ("pthread_create", "pthread_join"):
                    return True
                inner = self.model.unit.function(name) if name not in seen else None
                if inner is not None and self._with_threads(inner.body, seen | {name}):
                    return True
        return False


def _own_cases(body: Statement) -> list[Case]:
    """The cases of a switch, without those of a switch inside."""
    found: list[Case] = []
    todo: list[Statement] = [body]
    while todo:
        node = todo.pop(0)
        match node:
            case Case():
                found.append(node)
                todo.insert(0, node.body)
            case Block():
                todo = [*node.body, *todo]
            case If():
                todo = [node.then, *([] if node.otherwise is None else [node.otherwise]), *todo]
            case Loop() | Target():
                todo.insert(0, node.body)
    return found


def _counter(node: Loop) -> Declaration | None:
    match node.step:
        case Increment(target=Name(declaration)) | Assign(target=Name(declaration)):
            return None if declaration.static or declaration.shared else declaration
        case _:
            return None


def _first_value(node: Loop, of: Translator) -> int | None:
    counter = _counter(node)
    match node.initial:
        case Declare(declarations) if len(declarations) == 1 and declarations[0] is counter:
            e = declarations[0].initial
        case Do(Assign("", Name(declaration), value)) if declaration is counter:
            e = value
        case _:
            return None
    return of.value(e).constant if e is not None and of.pure(e) else None


def _synchronizes(t: CType) -> bool:
    """Whether a type contains a synchronization object: functions get its address."""
    match t:
        case Synchronization():
            return True
        case Array(element):
            return _synchronizes(element)
        case Struct():
            return any(map(_synchronizes, t.fields.values()))
        case _:
            return False


def _put(found: Object, key: tuple[str, ...], index: Expr, value: int) -> None:
    assert isinstance(index, Constant)
    values = found.initial.setdefault(key, [])
    values += [0] * (int(index.value) + 1 - len(values))
    values[int(index.value)] = value
