"""The native enumeration against the interpreter: states, verdicts, shortest runs, deadlocks, races; on random programs."""

from __future__ import annotations

import dataclasses
import itertools
import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from plait.bmc.execution import lowering
from plait.bmc.execution.interpreter import Interpreter, State
from plait.bmc.execution.native import Enumerated, Enumeration, NativeRun
from plait.bmc.load import load, parse_program, zoo
from plait.bmc.program.definition import (
    Action,
    At,
    Branch,
    Choice,
    Constant,
    Ended,
    Ensure,
    Expr,
    Not,
    Operation,
    Program,
    Read,
    Require,
    Set,
    Wrap,
)
from tests.bmc.encodings import watched
from tests.bmc.programs import Random, programs
from tests.oracle import program_states

_SETTINGS: dict[str, Any] = {"deadline": None, "suppress_health_check": list(HealthCheck)}
MOST = 3000
"""Random programs with more states are skipped."""


# -- the oracle: definitions, word by word --------------------------------------------------------------------------


@dataclasses.dataclass
class Truth:
    """The facts about a program, from the interpreter."""

    states: int
    transitions: int
    depth: int
    ended: int
    found: list[int | None]
    deadlock: int | None
    race: int | None


def is_deadlock(interpreter: Interpreter, state: State) -> bool:
    """Each process has ended, is not started, or waits, perhaps for the end of an atomic section; a required one waits."""
    waits = False
    if any(True for _ in interpreter.successors(state)):
        return False
    for number, code in enumerate(interpreter.program.processes):
        at = state.locations[number]
        if at == code.end or (code.spawned and at == 0):
            continue
        if at == code.stuck or (interpreter.ready(state, number) and not code.instructions[at].waits):
            return False
        waits = waits or code.required
    return waits


def racing(interpreter: Interpreter, state: State) -> set[tuple[int, int]]:
    """The pairs of processes with a data race."""
    found = set()
    steps = list(interpreter.successors(state))
    for x, y in itertools.product(steps, steps):
        if x.process < y.process:
            both = (x.writes & (y.reads | y.writes)) | (y.writes & x.reads)
            shared = [c for c in both if not isinstance(c, int) and c[0].process is None and not c[0].hidden]
            synchronized = all(
                interpreter.program.processes[p].instructions[state.locations[p]].synchronizes
                for p in (x.process, y.process)
            )
            if shared and not synchronized:
                found.add((x.process, y.process))
    return found


def truth(program: Program, conditions: list[Expr], width: int | None = None, depth: int | None = None) -> Truth | None:
    """Everything that the native enumeration must find. None: too many states."""
    enumeration = program_states.Enumeration(program, width)
    interpreter = enumeration.interpreter
    found = Truth(0, 0, 0, 0, [None] * len(conditions), None, None)
    try:
        for layer in enumeration.layers(most=MOST):
            found.depth = layer.depth
            for state in layer.states:
                ends = [code.end for code in program.processes]
                found.ended += list(state.locations) == ends
                for number, condition in enumerate(conditions):
                    if found.found[number] is None and interpreter.evaluate(condition, state):
                        found.found[number] = layer.depth
                if found.deadlock is None and is_deadlock(interpreter, state):
                    found.deadlock = layer.depth
                if found.race is None and racing(interpreter, state):
                    found.race = layer.depth
            if layer.depth == depth:
                break
    except MemoryError:
        return None
    found.states, found.transitions = len(enumeration.parents), enumeration.transitions
    return found


def executed(program: Program, run: NativeRun, width: int | None = None) -> State:
    """The last state of a run, which the interpreter must be able to take."""
    interpreter = Interpreter(program, width)
    assert interpreter.starts(run.start)
    assert run.start.locations == (0,) * len(program.processes)
    state = run.start
    for process, inputs in run.steps:
        taken = interpreter.step(state, process, inputs)
        assert taken is not None
        state = taken.state
    return state


def compare(program: Program, conditions: list[Expr], width: int | None = None) -> Enumerated | None:
    """The native enumeration agrees with the interpreter."""
    expected = truth(program, conditions, width)
    if expected is None:
        return None
    all_of_it = Enumeration(program, width, watched=[*conditions, Constant(False)], liveness=False).run()
    assert all_of_it.complete
    counted = (all_of_it.states, all_of_it.transitions, all_of_it.depth, all_of_it.ended)
    assert counted == (expected.states, expected.transitions, expected.depth, expected.ended)
    for liveness in (False, True):
        enumeration = Enumeration(
            program, width, watched=[*conditions, Constant(False)], deadlock=True, races=True, liveness=liveness
        )
        result = enumeration.run()
        assert result.complete
        assert result.states <= expected.states
        assert [None if run is None else len(run.steps) for run in result.found] == [*expected.found, None]
        assert (None if result.deadlock is None else len(result.deadlock.steps)) == expected.deadlock
        assert (None if result.race is None else len(result.race.run.steps)) == expected.race
        interpreter = Interpreter(program, width)
        for condition, run in zip(conditions, result.found, strict=False):
            assert run is None or interpreter.evaluate(condition, executed(program, run, width))
        assert result.deadlock is None or is_deadlock(interpreter, executed(program, result.deadlock, width))
        if result.race is not None:
            assert result.race.processes in racing(interpreter, executed(program, result.race.run, width))
    return all_of_it


# -- random programs --------------------------------------------------------------------------------------------------


class Enriched:
    """Changes a program at random: operators, wraps, flags and atomic sections that the language does not have."""

    def __init__(self, program: Program, seed: int, width: int = 64) -> None:
        self.random, self.program = random.Random(seed), program
        self.shifts = [1, 30, 59, 60] if width >= 8 else [0, 1]
        """Numbers that are not negative in that many bits."""

    def changed(self) -> Program:
        """The changed program."""
        processes = []
        for code in self.program.processes:
            steps = [
                structs.replace(
                    step,
                    body=tuple(map(self.action, step.body)),
                    waits=self.random.random() < 0.6,
                    synchronizes=self.random.random() < 0.4,
                    exclusive=self.random.random() < 0.1,
                )
                for step in code.instructions
            ]
            spawned, required = self.random.random() < 0.2, self.random.random() < 0.8
            processes.append(structs.replace(code, instructions=tuple(steps), spawned=spawned, required=required))
        return structs.replace(self.program, processes=tuple(processes))

    def action(self, action: Action) -> Action:
        match action:
            case Set(variable, index, value):
                return Set(variable, index, self.number(value) if variable.kind == "int" else self.value(value))
            case Require(condition):
                return Require(self.truth(condition))
            case Ensure(condition):
                return structs.replace(action, condition=self.truth(condition))
            case Branch(condition, then, otherwise):
                branches = (tuple(map(self.action, then)), tuple(map(self.action, otherwise)))
                return Branch(self.truth(condition), *branches)
            case _:
                return action

    def value(self, e: Expr) -> Expr:
        """Change the operands."""
        match e:
            case Not(operand):
                return Not(self.value(operand))
            case Operation("&&" | "||" as operator, left, right):
                return Operation(operator, self.truth(left), self.truth(right))
            case Operation("==" | "!=" | "<" | "<=" | ">" | ">=" as operator, left, right) if self._numbers(left):
                return Operation(operator, self.number(left), self.number(right))
            case Choice(condition, then, otherwise):
                return Choice(self.truth(condition), then, otherwise)
            case _:
                return e

    def _numbers(self, e: Expr) -> bool:
        return not isinstance(e, Read) or e.variable.kind == "int"

    def number(self, e: Expr) -> Expr:
        """A number of another kind."""
        small = Constant(self.random.choice([1, 2, 3, 5, -1, -2, -3]))
        large = Constant(self.random.choice([1 << 31, (1 << 63) - 1, 1 << 63, -(1 << 63), (1 << 64) - 1]))
        match self.random.randrange(20):
            case 0:
                found: Expr = Wrap(Operation("*", e, Constant(1 << 64)), 66, self.random.random() < 0.5)
            case 1 | 2:
                found = Wrap(e, self.random.choice([1, 2, 3, 64]), self.random.random() < 0.5)
            case 3:
                found = Operation(self.random.choice(["quot", "rem", "/", "%"]), e, small)
            case 4:
                found = Operation(self.random.choice(["&", "|", "^", "+", "-", "*"]), e, large)
            case 5:
                left, right = (Constant(self.random.choice(self.shifts)) for _ in range(2))
                found = Operation(">>", Operation("<<", e, left), right)
            case 6:
                found = Wrap(Operation("*", Operation("-", e, large), small), self.random.choice([2, 4, 64]), True)
            case 7:
                return Operation("-", Constant(0), e)
            case 8:
                found = Wrap(Operation("*", Wrap(e, 64, False), Wrap(e, 64, False)), 64, False)
            case _:
                return e
        # Large numbers of both signs would not fit in one cell.
        return found if isinstance(found, Wrap) and found.bits < 4 else Operation("rem", found, Constant(5))

    def truth(self, e: Expr) -> Expr:
        """A truth value of another kind."""
        process = self.random.randrange(len(self.program.processes))
        end = self.program.processes[process].end
        match self.random.randrange(12):
            case 0:
                return Operation("||", e, At(process, self.random.randrange(end + 2)))
            case 1:
                return Operation("&&", Not(Ended(process)), e)
            case 2:
                return Choice(At(process, 0), Constant(True), e)
            case _:
                return self.value(e)


def bad(program: Program, names: list[str]) -> list[Expr]:
    """Some conditions on the watched cells."""
    found: list[Expr] = []
    for cell in watched(program, names):
        is_bool = isinstance(cell, Read) and cell.variable.kind == "bool"
        found += [cell, Not(cell)] if is_bool else [Operation("==", cell, Constant(n)) for n in (-1, 0, 1, 2)]
    return found


@settings(max_examples=500, **_SETTINGS)
@given(programs())
def test_random_programs_have_the_same_states_and_shortest_runs(random: Random) -> None:
    program = parse_program(random.text)
    compare(program, bad(program, random.watched))


@settings(max_examples=500, **_SETTINGS)
@given(programs(), st.integers(0, 1 << 32))
def test_so_have_programs_with_everything_that_front_ends_make(random: Random, seed: int) -> None:
    program = Enriched(parse_program(random.text), seed).changed()
    compare(program, bad(program, random.watched))


@settings(max_examples=200, **_SETTINGS)
@given(programs(), st.integers(0, 1 << 32), st.sampled_from([2, 3, 4, 8, 64]))
def test_numbers_wrap_around_to_the_width(random: Random, seed: int, width: int) -> None:
    program = Enriched(parse_program(random.text.replace("% 3", "* 2")), seed, width).changed()
    compare(program, bad(program, random.watched), width)


@pytest.mark.parametrize("name", zoo())
def test_programs_of_the_zoo(name: str) -> None:
    program = load(name)
    conditions = [p.bad for p in program.properties]
    if compare(program, conditions) is None:
        # Too large for the interpreter: the first layers only.
        enumeration = program_states.Enumeration(program)
        counts = []
        for _ in enumeration.layers():
            counts.append(len(enumeration.parents))
            if counts[-1] > 300:
                break
        result = Enumeration(program, watched=[Constant(False)], liveness=False).run(depth=len(counts) - 1)
        assert (result.states, result.stopped, result.depth) == (counts[-1], "depth", len(counts) - 1)


# -- mutants --------------------------------------------------------------------------------------------------------


def _swapped(name: str, other: str) -> Callable[..., int]:
    original = lowering._Lowering._emit

    def emit(self: Any, op: str, first: int = 0, second: int = 0) -> int:
        return original(self, other if op == name else op, first, second)

    return emit


@pytest.mark.parametrize(
    ("name", "other", "text"),
    [
        ("quot", "/", "x = 0 - 3;"),
        ("rem", "%", "x = 0 - 3;"),
        ("wrap", "truth", "x = 3;"),
        ("check", "jump", ""),
    ],
)
def test_a_mutant_of_the_lowering_is_caught(name: str, other: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = parse_program(f"int x = 0; int a[2] = 0; process p {{ {text} x = x; a[x] = 1; }}")
    x = program.variables[0]
    operand = Operation(name, Read(x), Constant(2)) if name in ("quot", "rem") else Wrap(Read(x), 2, True)
    step = program.processes[0].instructions[-1]
    extra = structs.replace(step, body=(Set(x, None, operand), *step.body))
    code = structs.replace(
        program.processes[0], instructions=(*program.processes[0].instructions[:-1], extra)
    )  # fmt: skip
    program = structs.replace(program, processes=(code,))
    conditions: list[Expr] = [Operation("==", Read(x), Constant(n)) for n in range(-3, 4)]
    assert compare(program, conditions) is not None
    monkeypatch.setattr(lowering._Lowering, "_emit", _swapped(name, other))
    with pytest.raises((AssertionError, ValueError)):
        compare(program, conditions)


def test_a_mutant_of_liveness_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """If locals were reset although they are read later, the run could not be executed."""
    program = parse_program("int x = 0; process p { int t = 0; t = 1; skip; x = t; } reachable one: x == 1;")
    conditions = [p.bad for p in program.properties]
    assert compare(program, conditions) is not None

    def dead(self: Any, _: Any) -> list[list[list[int]]]:
        cells = [self.offsets[v] for v in self.source.variables if v.process is not None]
        return [[cells] * (code.stuck + 1) for code in self.source.processes]

    monkeypatch.setattr(lowering._Lowering, "_dead", dead)
    with pytest.raises(AssertionError):
        compare(program, conditions)


# -- limits and odd programs ------------------------------------------------------------------------------------------

COUNTERS = "int x = 0; process p { while (true) { atomic { x = x + 1; } } } process q { while (true) { skip; } }"


def test_limits_stop_the_search() -> None:
    enumeration = Enumeration(parse_program(COUNTERS), watched=[Constant(False)])
    assert enumeration.run(depth=20).stopped == "depth"
    assert enumeration.run(states=1000).stopped == "states"
    assert enumeration.run(memory=100_000).stopped == "memory"
    assert enumeration.run(deadline=time.monotonic() - 1).stopped == "timeout"


def test_progress_is_told_and_its_exceptions_end_the_search() -> None:
    class EnoughError(Exception):
        pass

    def progress(states: int, depth: int) -> None:
        assert states > 0
        assert depth > 0
        raise EnoughError

    with pytest.raises(EnoughError):
        Enumeration(parse_program(COUNTERS), watched=[Constant(False)]).run(progress=progress)


def test_a_number_that_does_not_fit_stops_the_search() -> None:
    program = parse_program("int x = 3; process p { while (true) { atomic { x = x * x; } } }")
    assert Enumeration(program, watched=[Constant(False)]).run().stopped == "numbers"
    large = parse_program("int x = 0; process p { x = 1000000000000000000000000000000000000000000; }")
    assert Enumeration(large, watched=[Constant(False)]).run().stopped == "numbers"


def test_numbers_of_64_bits_without_sign_work() -> None:
    """The square of 2^64 - 1 needs 128 bits before it wraps to 1."""
    program = parse_program("int x = 18446744073709551615; process p { x = 0; }")
    x = program.variables[0]
    step = program.processes[0].instructions[0]
    body = (Set(x, None, Wrap(Operation("*", Read(x), Read(x)), 64, False)), *step.body[1:])
    code = structs.replace(program.processes[0], instructions=(structs.replace(step, body=body),))
    program = structs.replace(program, processes=(code,))
    result = compare(program, [Operation("==", Read(x), Constant(1)), Operation(">", Read(x), Constant(1 << 63))])
    assert result is not None
    assert [len(run.steps) for run in result.found if run is not None] == [1, 0]


@pytest.mark.parametrize(
    "text",
    [
        "int x; process p { skip; }",
        "int x in 0..100000; process p { skip; }",
        "int x in 0..1000, y in 0..1000; process p { skip; }",
        "int x = 0; process p { havoc x in 0..100000; assert(x + 1 != 8); }",
    ],
)
def test_too_many_values_stop_the_search(text: str) -> None:
    assert Enumeration(parse_program(text), watched=[Constant(False)]).run().stopped == "inputs"


def test_the_first_discovery_can_end_the_search() -> None:
    program = parse_program("int x = 0; process p { x = 1; x = 2; x = 3; } reachable a: x == 1; reachable b: x == 3;")
    conditions = [p.bad for p in program.properties]
    both = Enumeration(program, watched=conditions).run()
    assert both.stopped == "found"
    assert [run and len(run.steps) for run in both.found] == [1, 3]
    one = Enumeration(program, watched=conditions).run(first=True)
    assert [run and len(run.steps) for run in one.found] == [1, None]


def test_inputs_of_runs_are_those_of_the_interpreter() -> None:
    text = "bool b = false; int x in 0..5; process p { havoc b; havoc x in 7..9; } reachable a: b && x == 8;"
    program = parse_program(text)
    run = Enumeration(program, watched=[program.properties[0].bad]).run().found[0]
    assert run is not None
    assert run.steps == [(0, (True,)), (0, (8,))]
    assert isinstance(run.steps[0][1][0], bool)
    assert isinstance(executed(program, run).values[0], bool)


def test_a_condition_with_an_index_out_of_range_stops_the_search() -> None:
    program = parse_program("int x = 0; int a[2] = 0; process p { x = 5; }")
    x, a = program.variables[:2]
    assert Enumeration(program, watched=[Read(a, Read(x))]).run().stopped == "condition"


def test_an_input_can_be_an_index() -> None:
    program = parse_program("int a[3] = 0; process p { int t = 0; havoc t in 0..3; a[t] = 1; }")
    assert any(isinstance(i.inputs, tuple) and i.inputs for i in program.processes[0].instructions)
    assert compare(program, bad(program, ["a[2]", "bounds"])) is not None
