"""Numbers with a type, bitwise operators and C's division: formulas against the interpreter and Python."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from msgspec import structs

from plait.bmc import check, parse_program
from plait.bmc.analysis.ranges import ranges
from plait.bmc.analysis.slices import slices
from plait.bmc.analysis.width import fits
from plait.bmc.encoding.clock import ClockEncoding, supports
from plait.bmc.encoding.induction import Induction
from plait.bmc.encoding.smt import CannotEncodeError, Formula
from plait.bmc.encoding.steps import StepsEncoding
from plait.bmc.encoding.z3_solver import Answer, solve
from plait.bmc.program.arithmetic import ARITHMETIC, calculate, wrapped
from plait.bmc.program.definition import (
    Choice,
    Constant,
    Domain,
    Expr,
    Goto,
    Input,
    Instruction,
    Operation,
    ProcessCode,
    Program,
    Property,
    Read,
    Set,
    Variable,
    Wrap,
)
from plait.bmc.program.source import Source
from plait.kernel.errors import UsageError
from tests.bmc.encodings import WAYS, compare_program
from tests.bmc.typed_programs import PLACE, Typed, text, typed_programs

_SETTINGS: dict[str, Any] = {"deadline": None, "suppress_health_check": list(HealthCheck)}
STEPS = {name: way for name, way in WAYS.items() if name.startswith("steps")}
ORDERED = {"steps, ordered": WAYS["steps"].func}
DEEPEST = 4


@pytest.mark.slow
@settings(max_examples=400, **_SETTINGS)
@given(typed_programs())
def test_encodings_agree_with_the_enumeration(typed: Typed) -> None:
    compare_program(typed.program, typed.watched, WAYS | ORDERED, text(typed.program), deepest=DEEPEST)


@pytest.mark.slow
@settings(max_examples=200, **_SETTINGS)
@given(typed_programs(exclusive=True, counters=True))
def test_atomic_sections_and_program_counters(typed: Typed) -> None:
    compare_program(typed.program, typed.watched, STEPS | ORDERED, text(typed.program), deepest=DEEPEST)


# -- formulas ----------------------------------------------------------------------------------------------------------


def edges(bits: int) -> list[int]:
    """Numbers at the boundaries of a type with a sign."""
    half = 1 << (bits - 1)
    return [-half, 1 - half, -2, -1, 0, 1, 2, 3, half - 1]


@pytest.mark.slow
@pytest.mark.parametrize("bits", [5, 65, None])
@pytest.mark.parametrize("operator", ARITHMETIC)
def test_operators_at_the_boundaries(operator: str, bits: int | None) -> None:
    """All pairs of boundary values in one formula: the solver and Python have the same results."""
    f = Formula(bits)
    wrong = []
    numbers = edges(4 if bits == 5 else 32)
    for n, (a, b) in enumerate(itertools.product(numbers, numbers)):
        if (operator in ("/", "%", "quot", "rem") and b == 0) or (operator in ("<<", ">>") and not 0 <= b <= 64):
            continue
        one, two = f.number(f"a {n}"), f.number(f"b {n}")
        f.add(f.all(f.equal(one, f.wrap(a)), f.equal(two, f.wrap(b))))
        result = f.wrap(int(calculate(operator, a, b)))
        for left, right in ((one, b), (a, two), (one, two)):
            try:
                wrong.append(f.not_(f.equal(f.operate(operator, left, right), result)))
            except CannotEncodeError:
                assert bits is None
                assert operator in ("&", "|", "^", "<<", ">>")
    assert not wrong or solve(f.text([f.any(*wrong)])).outcome == "unsat"


@pytest.mark.slow
@pytest.mark.parametrize(("bits", "signed"), [(3, True), (3, False), (8, True), (8, False), (32, True), (31, False)])
@pytest.mark.parametrize("width", [32, 33, 70, None])
def test_wrapping_at_the_boundaries(bits: int, signed: bool, width: int | None) -> None:
    """Of a number that is exact, and of one that is right modulo 2^bits only."""
    f = Formula(width)
    wrong = []
    for n, a in enumerate([*edges(bits), *(e + (1 << bits) for e in edges(bits)), (1 << 31) - 1]):
        term = f.number(f"a {n}")
        f.add(f.equal(term, f.wrap(a)))
        result = wrapped(a, bits, signed)
        wrong.append(f.not_(f.equal(f.modulo(term, bits, signed), f.wrap(result))))
    assert solve(f.text([f.any(*wrong)])).outcome == "unsat"


# -- the number of bits ------------------------------------------------------------------------------------------------

INT, UNSIGNED = Domain("int", -(1 << 31), (1 << 31) - 1), Domain("int", 0, (1 << 32) - 1)


def program_of(variables: list[Variable], value: Expr, *inputs: Domain, condition: Expr | None = None) -> Program:
    """One process with one step that sets the first variable."""
    body = (Set(variables[0], None, value), Goto(1))
    step = Instruction(0, 0, body, (1,), PLACE, inputs)
    wanted = () if condition is None else (Property("wanted", "always", condition, PLACE),)
    return Program("one", Source("one", ""), tuple(variables), (ProcessCode("p", "p", (step,)),), (), wanted)


@pytest.mark.parametrize(("operator", "bits", "signed", "expected"), [
    ("+", 32, True, 32), ("-", 32, True, 32), ("*", 32, True, 32), ("^", 32, True, 32), ("quot", 32, True, 32),
    ("*", 32, False, 33), ("*", 64, True, 64), ("*", 64, False, 65),
])  # fmt: skip
def test_arithmetic_of_c_needs_the_bits_of_its_types(operator: str, bits: int, signed: bool, expected: int) -> None:
    x, y = (Variable(name, "int", None, (None,), bits=bits, signed=signed) for name in "xy")
    program = program_of([x, y], Wrap(Operation(operator, Read(x), Read(y)), bits, signed))
    assert ranges(program, 3).bits == expected


def test_a_comparison_of_a_sum_needs_the_whole_sum() -> None:
    x, y = (Variable(name, "int", None, (None,), bits=32) for name in "xy")
    total = Operation("+", Read(x), Read(y))
    program = program_of([x, y], Constant(0), condition=Operation("<=", total, Constant((1 << 31) - 1)))
    assert ranges(program, 3).bits == 33
    assert check(program, encoding="steps").status == "violated"


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["steps", "clock"])
@pytest.mark.parametrize(("domain", "signed"), [(INT, True), (UNSIGNED, False)])
def test_an_input_of_32_bits_has_every_value(domain: Domain, signed: bool, encoding: Any) -> None:
    assert domain.low is not None
    assert domain.high is not None
    for wanted in (domain.low, domain.high, 0, 12_345):
        x = Variable("x", "int", None, (1,), bits=32, signed=signed)
        program = program_of([x], Input(0), domain, condition=Operation("!=", Read(x), Constant(wanted)))
        assert check(program, encoding=encoding).status == "violated"
    x = Variable("x", "int", None, (1,), bits=32, signed=signed)
    program = program_of([x], Input(0), domain, condition=Operation("<=", Read(x), Constant(domain.high)))
    assert check(program, encoding=encoding).status == "holds"


def test_an_input_that_is_never_used_does_not_disable_a_step() -> None:
    """x is 1, so the other side of the choice is never evaluated; its input needs more bits than all other numbers."""
    x = Variable("x", "int", None, (1,), bits=8)
    value = Choice(Operation("!=", Read(x), Constant(0)), Constant(2), Wrap(Input(0), 8, True))
    program = program_of([x], value, Domain("int", (1 << 31) - 1, 1 << 31))
    compare_program(program, [Read(x)], WAYS, "one step", deepest=1)


def endless(value: Expr, variable: Variable, condition: Expr, *, exclusive: bool = False) -> Program:
    """A process that sets a variable again and again."""
    body = (Set(variable, None, value), Goto(0))
    step = Instruction(0, 0, body, (0,), PLACE, exclusive=exclusive)
    wanted = (Property("wanted", "always", condition, PLACE),)
    return Program("endless", Source("endless", ""), (variable,), (ProcessCode("p", "p", (step,)),), (), wanted)


@pytest.mark.slow
def test_a_counter_of_four_bits_wraps_around_by_induction() -> None:
    """Every second number: the others are never reached, and the largest one is."""
    x = Variable("x", "int", None, (0,), bits=4, signed=False)
    more = Wrap(Operation("+", Read(x), Constant(2)), 4, False)
    odd = Operation("!=", Operation("&", Read(x), Constant(1)), Constant(1))
    assert check(endless(more, x, odd), encoding="steps", induction=True).status == "holds"
    below = Operation("<", Read(x), Constant(14))
    assert check(endless(more, x, below), encoding="steps", depth=8).status == "violated"


def test_bitwise_operators_need_a_bound() -> None:
    """A number that may be arbitrarily large has no two's complement of a fixed size: inconclusive, never wrong."""
    x = Variable("x", "int", None, (None,))
    program = program_of([x], Operation("&", Read(x), Constant(6)))
    known = ranges(program, 1)
    assert known.bits is None
    for encoding in (StepsEncoding, ClockEncoding):
        with pytest.raises(CannotEncodeError, match="without a bound"):
            encoding(program, 1, known, known.bits, relevant=[Read(x)])

    def never(*_: Any) -> Answer:
        raise AssertionError

    proof = Induction(program, None, never, None).holds(Operation("<", Read(x), Constant(8)), 1)
    assert (proof.outcome, "without a bound" in proof.reason) == ("unknown", True)


@pytest.mark.slow
@pytest.mark.parametrize("first", [True, False])
def test_steps_at_the_ends_of_a_section_are_not_exchanged(first: bool) -> None:
    """Exchanged with the step that leaves or enters a section, a step of another process would be inside of it."""
    x, y, z = (Variable(name, "int", None, (0,), bits=4) for name in "xyz")

    def process(p: int, *bodies: Set) -> ProcessCode:
        steps = [
            Instruction(p, n, (body, Goto(n + 1)), (n + 1,), PLACE, exclusive=n > 0) for n, body in enumerate(bodies)
        ]
        return ProcessCode(f"p{p}", "p", tuple(steps))

    one = Constant(1)
    if first:
        codes = [process(0, Set(z, None, Read(x))), process(1, Set(x, None, one), Set(y, None, one))]
    else:
        codes = [process(0, Set(y, None, one), Set(z, None, Read(x))), process(1, Set(x, None, one))]
    program = Program("sections", Source("sections", ""), (x, y, z), tuple(codes), (), ())
    compare_program(program, [Read(x), Read(y), Read(z)], STEPS | ORDERED, "sections")


def test_what_atomic_sections_of_several_steps_exclude() -> None:
    x = Variable("x", "int", None, (0,), bits=4)
    program = endless(Constant(1), x, Operation("<", Read(x), Constant(2)), exclusive=True)
    assert not supports(program)
    with pytest.raises(CannotEncodeError):
        ClockEncoding(program, 2, ranges(program, 2), 4)
    with pytest.raises(UsageError, match="atomic section of several steps"):
        slices(program, ["x"])
    assert supports(parse_program("int x = 0; process p { atomic { x = 1; x = 2; } }"))


def test_types_and_a_width_do_not_go_together() -> None:
    x = Variable("x", "int", None, (0,), bits=8)
    with pytest.raises(UsageError, match="types with a width"):
        fits(program_of([x], Constant(1)), 16)
    fits(program_of([structs.replace(x, bits=None)], Constant(1)), 16)
