"""How a function uses its variables: which it assigns, whose address it takes, which it may read before they are set."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import NamedTuple

from plait.bmc.c.reading.tree import (
    Assign,
    Binary,
    Block,
    Call,
    Case,
    Cast,
    Conditional,
    Declaration,
    Declare,
    Definition,
    Evaluated,
    Expression,
    FunctionName,
    If,
    Increment,
    Index,
    Jump,
    Literal,
    Loop,
    Member,
    Name,
    Node,
    Number,
    Return,
    Statement,
    Switch,
    Target,
    Unary,
    children,
    nodes,
)
from plait.bmc.c.reading.types import Array, Integer, Pointer

ENDING = frozenset(("abort", "exit", "_exit", "_Exit", "pthread_exit", "__assert_fail", "__VERIFIER_error"))
"""Functions that do not return."""


def analyse(function: Definition) -> None:
    """Set the flags of the variables that a function uses."""
    labels: set[str] = set()
    results = {id(argument): reads for node in nodes(function.body) for argument, reads in _results(node)}
    for node in nodes(function.body):
        note(node, results)
        if isinstance(node, Target):
            labels.add(node.name)
        elif isinstance(node, Jump) and node.name in labels:
            function.jumps = True
    walk = _Assignments(results)
    walk.statement(function.body, frozenset((*function.parameters, *map(Declared, function.parameters))))


RESULTS = {
    "pthread_create": 0,
    "pthread_join": 1,
    "sem_getvalue": 1,
    "time": 0,
    "clock_gettime": 1,
    "__plait_compare_exchange": 1,
}
"""Functions that write to a variable by its address and forget the address: the position of that argument."""
_READ = frozenset(("__plait_compare_exchange",))
"""Those that also read it."""


def plain(e: Expression) -> Expression:
    """An expression without conversions of pointers."""
    while isinstance(e, Cast) and isinstance(e.type, Pointer) and isinstance(e.operand.type, Pointer):
        e = e.operand
    return e


def direct(e: Expression) -> Expression:
    """`*&x` is x."""
    inner = plain(e.operand) if isinstance(e, Unary) and e.operator == "*" else e
    return inner.operand if isinstance(inner, Unary) and inner.operator == "&" and inner is not e else e


def _results(node: Node) -> list[tuple[Expression, bool]]:
    """The arguments to which a function writes, and whether it reads them too."""
    match node:
        case Call(FunctionName(name), arguments) if name in RESULTS and len(arguments) > RESULTS[name]:
            return [(plain(arguments[RESULTS[name]]), name in _READ)]
        case _:
            return []


def note(node: Node, results: Container[int] = ()) -> None:
    """Note assignments, and whose address is taken. `results`: addresses to which a function only writes, by id."""
    match node:
        case Assign(target=target) | Increment(target=target):
            if (declared := root(target)) is not None:
                declared.assigned += 1
        case Unary("&", operand):
            if (declared := root(operand)) is not None:
                if id(node) in results:
                    declared.assigned += 1
                else:
                    declared.shared = True
    for child in children(node):
        if isinstance(child, Cast) and isinstance(child.operand.type, Array) and isinstance(child.type, Pointer):
            direct = isinstance(node, Index) and node.base is child
            if not direct and (declared := root(child.operand)) is not None:
                declared.shared = True


def root(e: Expression) -> Declaration | None:
    """The variable that an expression is a part of, if it is one."""
    match e:
        case Name(declaration):
            return declaration
        case Literal(declaration):
            return declaration
        case Member(base=base):
            return root(base)
        case Index(base=Cast(operand=operand)) if isinstance(operand.type, Array):
            return root(operand)
        case Cast(operand=operand) if operand.type == e.type:
            return root(operand)
        case _:
            return None


class Declared(NamedTuple):
    """In a state: the declaration of a variable has been executed."""

    declaration: Declaration


State = frozenset[Declaration | Declared] | None
"""The variables that are certainly assigned, and those that are declared. None: no run comes here."""


def _meet(a: State, b: State) -> State:
    return b if a is None else a if b is None else a & b


class _Assignments:
    """Finds variables that may be read before they are assigned: definite assignment, as in Java."""

    def __init__(self, results: Mapping[int, bool]) -> None:
        self.results = results
        self.breaks: list[State] = []
        self.continues: list[State] = []
        self.switches: list[State] = []
        self.defaults: list[bool] = []
        self.jumps: dict[str, State] = {}

    def statement(self, node: Statement, state: State) -> State:
        """The state after a statement."""
        match node:
            case Block(body):
                for part in body:
                    state = self.statement(part, state)
                return state
            case Declare(declarations):
                for d in declarations:
                    if state is not None:
                        state = (state - {d}) | {Declared(d)}
                    if d.initial is not None:
                        state = self.expression(d.initial, state)
                        state = None if state is None else state | {d}
                return state
            case If(condition, then, otherwise):
                state = self.expression(condition, state)
                one = self.statement(then, state)
                two = state if otherwise is None else self.statement(otherwise, state)
                return _meet(one, two)
            case Loop():
                return self.loop(node, state)
            case Switch(value, body):
                state = self.expression(value, state)
                self.breaks.append(None)
                self.switches.append(state)
                self.defaults.append(False)
                end = self.statement(body, None)
                if not self.defaults.pop():
                    end = _meet(end, state)
                self.switches.pop()
                return _meet(end, self.breaks.pop())
            case Case(low=low, body=body):
                self.defaults[-1] = self.defaults[-1] or low is None
                return self.statement(body, _meet(state, self.switches[-1]))
            case Target(name, body):
                return self.statement(body, _meet(state, self.jumps.get(name)))
            case Jump("break"):
                self.breaks[-1] = _meet(self.breaks[-1], state)
                return None
            case Jump("continue"):
                self.continues[-1] = _meet(self.continues[-1], state)
                return None
            case Jump(name=name):
                self.jumps[name] = _meet(self.jumps.get(name), state)
                return None
            case Return(value):
                if value is not None:
                    self.expression(value, state)
                return None
            case _:
                return self.expression(node.expression, state)

    def loop(self, node: Loop, state: State) -> State:
        """The state after a loop."""
        if node.initial is not None:
            state = self.statement(node.initial, state)
        self.breaks.append(None)
        self.continues.append(None)
        endless = node.condition is None or (isinstance(node.condition, Number) and node.condition.value != 0)
        if not node.first and node.condition is not None:
            state = self.expression(node.condition, state)
        end = self.statement(node.body, state)
        end = _meet(end, self.continues.pop())
        if node.step is not None:
            end = self.expression(node.step, end)
        if node.first and node.condition is not None:
            state = self.expression(node.condition, end)
        return _meet(None if endless else state, self.breaks.pop())

    def expression(self, e: Expression, state: State) -> State:
        """The state after an expression."""
        match e:
            case Name(declaration):
                if state is not None and declaration not in state and not declaration.static:
                    # The elements of an array without an initial value are checked one by one.
                    scalar = isinstance(declaration.type, Integer | Pointer)
                    declaration.unset |= scalar or declaration.initial is not None
                    declaration.skipped |= Declared(declaration) not in state
                return state
            case Assign("", target, value):
                target = direct(target)
                if not isinstance(target, Name):
                    return self.expression(value, self.expression(target, state))
                state = self.expression(value, state)
                return None if state is None else state | {target.declaration}
            case Unary("*") if direct(e) is not e:
                return self.expression(direct(e), state)
            case Unary("&", Name(declaration)):
                if self.results.get(id(e), True):
                    self.expression(e.operand, state)  # A function that gets the address may read it.
                written = id(e) in self.results
                return None if state is None else state | {declaration} if written else state
            case Binary("&&" | "||", left, right):
                state = self.expression(left, state)
                self.expression(right, state)
                return state
            case Conditional(condition, then, otherwise):
                state = self.expression(condition, state)
                return _meet(self.expression(then, state), self.expression(otherwise, state))
            case Evaluated(body):
                return self.statement(body, state)
            case Call(function, arguments):
                for part in (function, *arguments):
                    state = self.expression(part, state)
                return None if isinstance(function, FunctionName) and function.name in ENDING else state
            case Literal(declaration):
                return state if declaration.initial is None else self.expression(declaration.initial, state)
            case _:
                for child in children(e):
                    state = self.expression(child, state)  # type: ignore[arg-type]
                return state
