"""Random programs with typed numbers, named checks, inputs, waiting steps and atomic sections, built directly."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from msgspec import structs

from plait.bmc.analysis.intervals import type_range
from plait.bmc.program.definition import (
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
)
from plait.bmc.program.source import Place, Source

CHECKS = ("assertions", "bounds", "division", "overflow")
BITS = (2, 3, 4, 8, 32)
PLACE = Place(1, 1, "step")


class Typed(NamedTuple):
    """A program, and the expressions to watch."""

    program: Program
    watched: list[Expr]


class _Draw:
    """What one random program consists of."""

    def __init__(self, draw: DrawFn, *, exclusive: bool, counters: bool) -> None:
        self.draw, self.counters, self.exclusive = draw, counters, exclusive
        self.count = draw(st.integers(1, 3))
        self.flags = [Variable(check, "bool", None, (False,), hidden=True) for check in CHECKS]
        self.numbers = [self._variable(f"x{n}") for n in range(2)]
        self.array = self._variable("a", draw(st.integers(2, 3)))
        self.truth = Variable("b", "bool", None, (draw(st.booleans()),))
        self.plain = Variable("m", "int", None, (draw(st.integers(-2, 2)),))
        self.locals = [self._variable(f"t{p}", process=p) for p in range(self.count)]
        self.inputs: list[Domain] = []
        self.process = 0

    def one_of(self, *options: str) -> str:
        return self.draw(st.sampled_from(options))

    def _type(self) -> tuple[int, bool]:
        return self.draw(st.sampled_from(BITS)), self.draw(st.booleans())

    def _near(self, bits: int, signed: bool) -> int:
        low, high = type_range(bits, signed)
        return self.draw(st.sampled_from([low, low + 1, high - 1, high, max(low, -1), 0, 1]))

    def _variable(self, name: str, size: int | None = None, process: int | None = None) -> Variable:
        bits, signed = self._type()
        initial: list[Value | None] = [self._near(bits, signed) for _ in range(size or 1)]
        low = high = None
        if self.draw(st.integers(0, 3)) == 0:
            initial[0] = None
            if bits > 3 or self.draw(st.booleans()):
                ends = [self._near(bits, signed)]
                low, high = ends[0], min(ends[0] + 1, type_range(bits, signed)[1])
            else:
                low, high = type_range(bits, signed)
        return Variable(name, "int", size, tuple(initial), low, high, process, bits=bits, signed=signed)

    def number(self, depth: int = 0) -> Expr:
        kinds = ["constant", "read", "read", "local", "cell", "input"]
        if depth < 3:
            kinds += ["sum", "sum", "wrap", "divide", "shift", "choice", "bitwise"]
        match self.one_of(*kinds):
            case "constant":
                return Constant(self.draw(st.sampled_from([-9, -2, -1, 0, 1, 2, 3, 7, 255, 1 << 31])))
            case "read":
                return Read(self.draw(st.sampled_from([*self.numbers, self.plain])))
            case "local":
                return Read(self.locals[self.process])
            case "cell":
                return Read(self.array, self.index(depth + 1))
            case "input":
                if len(self.inputs) < 2:
                    low = self.draw(st.sampled_from([-1, 0, 3, 127, (1 << 31) - 1]))
                    self.inputs.append(Domain("int", low, low + self.draw(st.integers(0, 2))))
                    return Input(len(self.inputs) - 1)
                return Constant(1)
            case "sum":
                return Operation(self.one_of("+", "-", "*"), self.number(depth + 1), self.number(depth + 1))
            case "wrap":
                return Wrap(self.number(depth + 1), *self._type())
            case "divide":
                name, divisor = self.one_of("/", "%", "quot", "rem"), self.number(depth + 1)
                nonzero = Operation("!=", divisor, Constant(0))
                return Choice(nonzero, Operation(name, self.number(depth + 1), divisor), self.number(depth + 2))
            case "shift":
                by: Expr = Constant(self.draw(st.integers(0, 5)))
                if self.draw(st.booleans()):
                    by = Wrap(self.number(depth + 2), self.draw(st.integers(1, 3)), False)
                return Operation(self.one_of("<<", ">>"), self.number(depth + 1), by)
            case "bitwise":
                return Operation(self.one_of("&", "|", "^"), self.number(depth + 1), self.number(depth + 1))
            case _:
                return Choice(self.condition(depth + 1), self.number(depth + 1), self.number(depth + 1))

    def index(self, depth: int) -> Expr:
        if self.draw(st.booleans()):
            return Constant(self.draw(st.integers(0, self.array.cells - 1)))
        return Wrap(self.number(depth), self.draw(st.integers(1, 2)), self.draw(st.booleans()))

    def condition(self, depth: int = 0) -> Expr:
        kinds = ["compare", "compare", "compare", "truth"]
        if depth < 2:
            kinds += ["and", "or", "not", "equal", "input"]
        if self.counters:
            kinds.append("counter")
        match self.one_of(*kinds):
            case "compare":
                name = self.one_of("<", "<=", "==", "!=", ">", ">=")
                return Operation(name, self.number(depth + 2), self.number(depth + 2))
            case "truth":
                return Read(self.truth)
            case "and":
                return Operation("&&", self.condition(depth + 1), self.condition(depth + 1))
            case "or":
                return Operation("||", self.condition(depth + 1), self.condition(depth + 1))
            case "equal":
                return Operation("==", self.condition(depth + 1), self.condition(depth + 1))
            case "not":
                return Not(self.condition(depth + 1))
            case "input" if len(self.inputs) < 2:
                self.inputs.append(Domain("bool"))
                return Input(len(self.inputs) - 1)
            case "counter":
                other = self.draw(st.integers(0, self.count - 1))
                return Ended(other) if self.draw(st.booleans()) else At(other, self.draw(st.integers(0, 2)))
            case _:
                return Constant(True)

    def action(self, depth: int = 0) -> Action:
        match self.one_of("number", "number", "cell", "local", "plain", "truth", "require", "ensure", "branch"):
            case "cell":
                value = Wrap(self.number(), self.array.bits or 8, self.array.signed)
                return Set(self.array, self.index(1), value)
            case "local":
                return self._set(self.locals[self.process])
            case "plain":
                value = Operation("+", Read(self.plain), Constant(self.draw(st.integers(-2, 2))))
                return Set(self.plain, None, Wrap(value, 4, True))
            case "truth":
                return Set(self.truth, None, self.condition())
            case "require":
                return Require(self.condition())
            case "ensure":
                return Ensure(self.condition(), self.draw(st.sampled_from(CHECKS)), "the check fails")
            case "branch" if depth < 1:
                sides = [tuple(self.action(depth + 1) for _ in range(self.draw(st.integers(0, 2)))) for _ in "ab"]
                return Branch(self.condition(), sides[0], sides[1])
            case _:
                return self._set(self.draw(st.sampled_from(self.numbers)))

    def _set(self, variable: Variable) -> Action:
        return Set(variable, None, Wrap(self.number(), variable.bits or 8, variable.signed))

    def code(self, p: int) -> ProcessCode:
        self.process = p
        count = self.draw(st.integers(1, 3))
        spawned = self.draw(st.integers(0, 3)) == 0
        steps = []
        for place in range(count):
            self.inputs = []
            body = [self.action() for _ in range(self.draw(st.integers(1, 2)))]
            if spawned and place == 0:
                body.insert(0, Require(Read(self.truth)))
            target = place + 1 if self.draw(st.integers(0, 3)) else self.draw(st.integers(0, count))
            targets = {target}
            last: Action = Goto(target)
            if self.draw(st.integers(0, 3)) == 0:
                other = self.draw(st.integers(0, count))
                last = Branch(self.condition(1), (Goto(target),), (Goto(other),))
                targets.add(other)
            step = Instruction(p, place, (*body, last), tuple(targets), PLACE, tuple(self.inputs))
            kinds = {"waits": self.draw(st.booleans()), "synchronizes": self.draw(st.booleans())}
            inside = self.exclusive and place > 0 and self.draw(st.booleans())
            steps.append(structs.replace(step, exclusive=inside, **kinds))
        return ProcessCode(f"p{p}", "p", tuple(steps), spawned, self.draw(st.integers(0, 3)) > 0)


@st.composite
def typed_programs(draw: DrawFn, *, exclusive: bool = False, counters: bool = False) -> Typed:
    """A random program. With `exclusive`, it has atomic sections; with `counters`, steps read program counters."""
    of = _Draw(draw, exclusive=exclusive, counters=counters)
    codes = tuple(of.code(p) for p in range(of.count))
    variables = (*of.numbers, of.array, of.truth, of.plain, *of.locals, *of.flags)
    program = Program("random", Source("random", ""), variables, codes, (), ())
    options: list[Expr] = [Read(v, Constant(0) if v.size else None) for v in variables]
    options += [At(p, draw(st.integers(0, code.stuck))) for p, code in enumerate(codes)]
    return Typed(program, draw(st.lists(st.sampled_from(options), min_size=1, max_size=2, unique=True)))


def text(program: Program) -> str:
    """The program as text, for messages."""
    lines = [f"{v.name} {v.kind} {v.size} {v.initial} {v.low}..{v.high} {v.bits} {v.signed}" for v in program.variables]
    for code in program.processes:
        lines.append(f"{code.name} spawned={code.spawned} required={code.required}")
        lines += [
            f"  {s.location}: {s.inputs} waits={s.waits} synchronizes={s.synchronizes} exclusive={s.exclusive}\n    "
            + "\n    ".join(map(_short, s.body))
            for s in code.instructions
        ]
    return "\n".join(lines)


def _short(node: object) -> str:
    if isinstance(node, Variable):
        return node.name
    if isinstance(node, tuple):
        return "(" + ", ".join(map(_short, node)) + ")"
    if isinstance(node, msgspec.Struct):
        parts = ", ".join(_short(getattr(node, field)) for field in node.__struct_fields__)
        return f"{type(node).__name__}({parts})"
    return repr(node)
