"""Statements: control flow with labels and jumps. Loops that start or join threads are unrolled if possible."""

from __future__ import annotations

import abc

import msgspec

from plait.bmc.c.reading.tree import (
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
from plait.bmc.c.reading.types import VOID
from plait.bmc.c.reading.usage import root
from plait.bmc.c.translation.expressions import Expressions
from plait.bmc.c.translation.model import Model
from plait.bmc.c.translation.values import ZERO, Object, Val
from plait.bmc.program.arithmetic import operation
from plait.bmc.program.builder import CodeBuilder, Label
from plait.bmc.program.definition import Constant, Expr, Variable

_MOST_UNROLLED = 64
"""The number of iterations of a loop that is unrolled."""


class Frame(msgspec.Struct, eq=False):
    """A function that is being translated."""

    function: Definition
    exit: Label
    result: Variable | Object | None
    returned: list[Val] = msgspec.field(default_factory=list)
    labels: dict[str, Label] = msgspec.field(default_factory=dict)
    breaks: list[Label] = msgspec.field(default_factory=list)
    continues: list[Label] = msgspec.field(default_factory=list)
    cases: list[dict[int, Label]] = msgspec.field(default_factory=list)
    """For each enclosing switch, the labels of its cases."""


class Statements(Expressions, abc.ABC):
    """Translates statements."""

    def __init__(self, model: Model, code: CodeBuilder) -> None:
        super().__init__(model, code)
        self.frames: list[Frame] = []
        self.loops = 0
        """The number of loops around the code: what is in none runs once."""

    @abc.abstractmethod
    def local(self, declared: Declaration) -> Object:
        """A new local variable."""

    @abc.abstractmethod
    def valueless(self, found: Object, declared: Declaration) -> None:
        """A local variable that has no value at first."""

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
                        found = self.local(declared)
                        if declared.skipped:
                            self.valueless(found, declared)
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


def _first_value(node: Loop, of: Statements) -> int | None:
    counter = _counter(node)
    match node.initial:
        case Declare(declarations) if len(declarations) == 1 and declarations[0] is counter:
            e = declarations[0].initial
        case Do(Assign("", Name(declaration), value)) if declaration is counter:
            e = value
        case _:
            return None
    return of.value(e).constant if e is not None and of.pure(e) else None
