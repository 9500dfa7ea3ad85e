"""Deadlock and data races: the expressions against a check of each state by hand, and both encodings."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from msgspec import structs

from plait.bmc.analysis.preconditions import InputsError, effects
from plait.bmc.analysis.races import racing
from plait.bmc.analysis.waiting import deadlocked
from plait.bmc.execution.interpreter import Interpreter, State, Step
from plait.bmc.program.definition import (
    Constant,
    Domain,
    Expr,
    Goto,
    Input,
    Instruction,
    Not,
    Operation,
    ProcessCode,
    Program,
    Property,
    Read,
    Require,
    Set,
    Variable,
)
from plait.bmc.program.source import Source
from tests.bmc.encodings import WAYS, compare_program
from tests.bmc.typed_programs import PLACE, Typed, text, typed_programs
from tests.oracle.program_states import Enumeration

_SETTINGS: dict[str, Any] = {"deadline": None, "suppress_health_check": list(HealthCheck)}
DEEPEST = 3


def steps_of(interpreter: Interpreter, state: State, p: int) -> list[Step]:
    """The possible next steps of a process."""
    if not interpreter.ready(state, p):
        return []
    taken = (interpreter.step(state, p, inputs) for inputs in interpreter.inputs(state, p))
    return [step for step in taken if step is not None]


def without_sections(program: Program) -> Program:
    codes = [
        structs.replace(c, instructions=tuple(structs.replace(i, exclusive=False) for i in c.instructions))
        for c in program.processes
    ]
    return structs.replace(program, processes=tuple(codes))


def is_deadlock(free: Interpreter, program: Program, state: State) -> bool:
    """By the definition. `free` executes the program without atomic sections of several steps."""
    waits_for_ever = False
    for p, code in enumerate(program.processes):
        place = state.locations[p]
        if place == code.end:
            continue
        if place == code.stuck:
            return False
        blocked = not steps_of(free, state, p)
        excluded = any(
            q != p and here < other.end and other.instructions[here].exclusive
            for q, (here, other) in enumerate(zip(state.locations, program.processes, strict=True))
        )
        if code.spawned and place == 0 and blocked:
            continue
        started_at_zero = code.spawned and place == 0
        if not excluded and (not blocked or not code.instructions[place].waits or started_at_zero):
            return False
        waits_for_ever = waits_for_ever or code.required
    return waits_for_ever and any(i.waits for c in program.processes for i in c.instructions)


def is_race(interpreter: Interpreter, program: Program, state: State) -> bool:
    """By the definition: all pairs of possible next steps."""

    def cells(found: frozenset[Any]) -> set[Any]:
        return {c for c in found if not isinstance(c, int) and c[0].process is None and not c[0].hidden}

    for p, q in itertools.combinations(range(len(program.processes)), 2):
        for one, two in itertools.product(steps_of(interpreter, state, p), steps_of(interpreter, state, q)):
            atomic = [program.processes[s.process].instructions[s.location].synchronizes for s in (one, two)]
            clash = (cells(one.writes) & cells(two.writes | two.reads)) | (cells(one.reads) & cells(two.writes))
            if clash and not all(atomic):
                return True
    return False


def judged(program: Program) -> tuple[Program, list[Expr]]:
    """The program with both properties, and their conditions."""
    found = [deadlocked(program), racing(program)]
    named = zip(("deadlock", "races"), found, strict=True)
    properties = tuple(Property(name, "always", Not(e), PLACE) for name, e in named)
    return structs.replace(program, properties=properties), found


def agree(typed: Typed, ways: dict[str, Any]) -> None:
    try:
        program, found = judged(typed.program)
    except InputsError:
        return
    enumeration, free = Enumeration(program), Interpreter(without_sections(program))
    interpreter = enumeration.interpreter
    seen: set[State] = set()
    for layer in enumeration.layers():
        for state in layer.states:
            values = tuple(interpreter.evaluate(e, state) for e in found)
            truth = (is_deadlock(free, program, state), is_race(interpreter, program, state))
            assert values == truth, f"{state}\n{text(program)}"
        seen |= set(layer.states)
        if layer.depth == 6 or len(seen) > 500:
            break
    for e in found:
        if not isinstance(e, Constant):
            compare_program(program, [e], ways, text(program), deepest=DEEPEST)


@pytest.mark.slow
@settings(max_examples=300, **_SETTINGS)
@given(typed_programs())
def test_expressions_agree_with_the_definitions(typed: Typed) -> None:
    agree(typed, {name: WAYS[name] for name in ("steps, projected", "clock, projected")})


@pytest.mark.slow
@settings(max_examples=200, **_SETTINGS)
@given(typed_programs(exclusive=True, counters=True))
def test_atomic_sections(typed: Typed) -> None:
    agree(typed, {"steps": WAYS["steps, projected"]})


# -- by hand -----------------------------------------------------------------------------------------------------------


def lock(variable: Variable) -> list[Any]:
    return [Require(Not(Read(variable))), Set(variable, None, Constant(True))]


def made(variables: list[Variable], *codes: list[dict[str, Any]]) -> Program:
    """A program of straight-line processes: each step is its body and its flags."""
    processes = [
        ProcessCode(f"p{p}", "p", tuple(
            Instruction(p, n, (*step["body"], Goto(n + 1)), (n + 1,), PLACE, step.get("inputs", ()),
                        waits=step.get("waits", False), synchronizes=step.get("synchronizes", True))
            for n, step in enumerate(steps)
        ))
        for p, steps in enumerate(codes)
    ]  # fmt: skip
    return Program("made", Source("made", ""), tuple(variables), tuple(processes), (), ())


def reached(program: Program, number: int) -> bool:
    """Whether a deadlock (0) or a race (1) is reachable: all encodings and the enumeration must agree."""
    program, found = judged(program)
    compare_program(program, [found[number]], WAYS, "by hand", deepest=6)
    enumeration = Enumeration(program)
    return any(
        enumeration.interpreter.evaluate(found[number], state)
        for layer in enumeration.layers()
        for state in layer.states
    )


def flags(*names: str) -> list[Variable]:
    return [Variable(name, "bool", None, (False,)) for name in names]


@pytest.mark.parametrize(
    ("waits", "order", "expected"), [(True, "ba", True), (True, "ab", False), (False, "ba", False)]
)
def test_two_locks(waits: bool, order: str, expected: bool) -> None:
    """Opposite orders deadlock. The same with `assume` instead of locks is no deadlock."""
    a, b = flags("a", "b")

    def process(first: Variable, second: Variable) -> list[dict[str, Any]]:
        free = [Set(first, None, Constant(False)), Set(second, None, Constant(False))]
        return [{"body": lock(first), "waits": waits}, {"body": lock(second), "waits": waits}, {"body": free}]

    other = process(a, b) if order == "ab" else process(b, a)
    assert reached(made([a, b], process(a, b), other), 0) == expected


def test_a_value_that_the_step_wrote_decides_whether_it_waits() -> None:
    x = Variable("x", "int", None, (0,))
    sets = [Set(x, None, Constant(1)), Require(Operation("==", Read(x), Constant(1)))]
    assert not reached(made([x], [{"body": sets, "waits": True}]), 0)
    sets = [Set(x, None, Constant(1)), Require(Operation("==", Read(x), Constant(0)))]
    assert reached(made([x], [{"body": sets, "waits": True}]), 0)


@pytest.mark.parametrize(("same", "atomic", "expected"), [
    (True, False, True), (False, False, False), (True, True, False),
])  # fmt: skip
def test_a_race_needs_the_same_cell_and_a_plain_access(same: bool, atomic: bool, expected: bool) -> None:
    a = Variable("a", "int", 2, (0, 0))
    i = Variable("p0.i", "int", None, (0,), process=0)
    j = Variable("p1.j", "int", None, (0 if same else 1,), process=1)
    write = {"body": [Set(a, Read(i), Constant(1))], "synchronizes": atomic}
    t = Variable("p1.t", "int", None, (0,), process=1)
    read = {"body": [Set(t, None, Read(a, Read(j)))], "synchronizes": True}
    assert reached(made([a, i, j, t], [write], [read]), 1) == expected


def test_a_race_is_only_between_enabled_steps() -> None:
    x = Variable("x", "int", None, (0,))
    (free,) = flags("free")
    guarded = {"body": [Require(Read(free)), Set(x, None, Constant(2))], "synchronizes": False}
    first = [{"body": [Set(x, None, Constant(1))], "synchronizes": False}, {"body": [Set(free, None, Constant(True))]}]
    assert not reached(made([x, free], first, [guarded]), 1)
    first[0], first[1] = first[1], first[0]
    assert reached(made([x, free], first, [guarded]), 1)


def test_inputs_of_a_large_domain_that_decide_a_step() -> None:
    """A number is compared with a constant: some choice lets the step continue. A product of it cannot be decided."""
    x = Variable("x", "int", None, (0,))
    wide = Domain("int", -(1 << 31), (1 << 31) - 1)

    def program(condition: Expr) -> Program:
        return made([x], [{"body": [Require(condition), Set(x, None, Constant(1))], "waits": True, "inputs": (wide,)}])

    assert deadlocked(program(Operation(">", Input(0), Constant(5)))) != Constant(False)
    interpreter = Interpreter(program(Operation(">", Input(0), Constant(5))))
    start = interpreter.initial({x: [0]})
    assert not interpreter.evaluate(deadlocked(interpreter.program), start)
    never = program(Operation(">", Input(0), Constant(1 << 31)))
    assert Interpreter(never).evaluate(deadlocked(never), start)
    with pytest.raises(InputsError):
        effects(
            program(Operation(">", Operation("*", Input(0), Input(0)), Constant(5))).processes[0].instructions[0], set()
        )
