"""The language: what each statement means, and what is said about wrong programs."""

from __future__ import annotations

import re
from typing import Any

import pytest

from plait.bmc import check, parse_program
from plait.bmc.program.definition import Constant, Read
from plait.kernel.errors import ModelError, UsageError
from tests.oracle.program_states import longest_run, reachable_values


def final_values(text: str, name: str, **parameters: int) -> set[Any]:
    """The values that a variable can have when nothing can happen any more."""
    from plait.bmc.execution.interpreter import Interpreter

    program = parse_program(text, parameters)
    interpreter = Interpreter(program)
    variable = next(v for v in program.variables if v.name == name)
    seen = set(todo := list(interpreter.initial_states()))
    found = set()
    while todo:
        state = todo.pop()
        after = [t.state for t in interpreter.successors(state)]
        if not after:
            shown = interpreter.shown(state, variable)
            found.add(tuple(shown) if isinstance(shown, list) else shown)
        todo += [s for s in after if s not in seen]
        seen |= set(after)
    return found


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("x = 2; x = x * 3 - 1;", {5}),
        ("x = -7 / 2;", {-4}),
        ("x = -7 % 3;", {2}),
        ("if (x == 0) { x = 1; } else { x = 2; } x = x + 10;", {11}),
        ("if (x == 1) { x = 1; } else if (x == 0) { x = 5; } else { x = 2; }", {5}),
        ("if (x == 1) { } else { x = 3; } x = x + 1;", {4}),
        ("while (x < 3) { x = x + 1; if (x == 2) { x = 7; } }", {7}),
        ("while (x < 2) { while (x < 1) { x = x + 1; } x = x + 1; }", {2}),
        ("choose { x = 1; } or { } or { x = 3; }", {0, 1, 3}),
        ("havoc x in 2..4; assume(x != 3);", {2, 3, 4}),
        ("atomic { havoc x in 2..4; assume(x != 3); }", {2, 4}),
        ("atomic { x = 1; if (x == 1) { x = x + 1; } else { x = 9; } }", {2}),
        ("a[0] = 1; a[a[0]] = 5; x = a[1];", {5}),
        ("atomic { a[0] = 1; a[a[0]] = 5; x = a[1] + a[0]; }", {6}),
        ("assert(x == 0); x = 1; assert(x == 0); x = 2;", {1}),
        ("x = 1; a[x + 5] = 1; x = 2;", {1}),
        ("x = a[0 - 1]; x = 2;", {0}),
        ("if (x == 1 && a[5] == 0) { x = 9; } x = x + 1;", {1}),
        ("x = (x == 0 ? 4 : a[7]);", {4}),
        ("lock(m); lock(m); x = 1;", {0}),
        ("lock(m); unlock(m); lock(m); x = 1;", {1}),
        ("skip; x = 1;", {1}),
    ],
)
def test_statements(body: str, expected: set[int]) -> None:
    assert final_values(f"int x = 0; int a[2] = 0; lock m; process p {{ {body} }}", "x") == expected


def test_a_step_has_one_access_to_a_shared_variable() -> None:
    """x = x + 1 is a read and a write. Only what the program claims to be atomic is one step."""
    increment = "int x = 0; process p[i in 1..2] { x = x + 1; }"
    assert final_values(increment, "x") == {1, 2}
    assert final_values(f"atomic statements; {increment}", "x") == {2}
    assert final_values("int x = 0; process p[i in 1..2] { int t = 0; t = x; x = t + 1; }", "x") == {1, 2}
    assert final_values("int x = 0; process p[i in 1..2] { int t = 0; atomic { t = x; x = t + 1; } }", "x") == {2}
    locked = "int x = 0; lock m; process p[i in 1..2] { int t = 0; lock(m); t = x; x = t + 1; unlock(m); }"
    assert final_values(locked, "x") == {2}


def test_parameters_of_processes() -> None:
    text = "const n = 3; int a[n] = 0; process p[i in 0..n - 1](int next = (i + 1) % n) { a[next] = i; }"
    assert final_values(text, "a") == {(2, 0, 1)}
    assert final_values(text, "a", n=2) == {(1, 0)}


def test_free_variables_and_the_initial_condition() -> None:
    text = "int x in 0..5; bool b; int y = 0; init x % 2 == 1 && b; process p { if (b) { y = x; } }"
    assert final_values(text, "y") == {1, 3, 5}


def test_free_integers_without_a_range_are_the_solvers() -> None:
    program = parse_program("int x, y; process p { y = x * 2; } reachable even: y == 84 && x > 0; always odd: y != 7;")
    found = {p.name: p for p in check(program).properties}
    assert found["even"].status == "holds"
    assert found["odd"].status == "violated", "y is free at first"
    with pytest.raises(UsageError, match="x can be any number"):
        list(reachable_values(program, [], 1))


def test_width() -> None:
    """127 + 1 is -128 in 8 bits, and 128 as a mathematical integer."""
    program = parse_program("int x = 127; process p { x = x + 1; } always positive: x > 0;")
    assert check(program).status == "holds"
    verdict = check(program, width=8)
    assert verdict.status == "violated"
    assert verdict.trace is not None
    assert verdict.trace.events[-1].changed == {"shared.x": (127, -128)}
    assert verdict.statistics.formula is not None
    assert "8 bits" in verdict.statistics.formula.integers


@pytest.mark.slow
@pytest.mark.parametrize("operator", ["/", "%"])
@pytest.mark.parametrize("divisor", [1, 2, 3, 4, 7])
def test_division_is_the_same_for_the_solver(operator: str, divisor: int) -> None:
    """For every number of four bits, also the least."""
    text = f"int x, y = 0; process p {{ y = x {operator} {divisor}; }}"
    for x in range(-8, 8):
        truth = x // divisor if operator == "/" else x % divisor
        program = parse_program(
            f"{text} init x == {x}; always right: y == 0 || y == {truth};".replace("== -", "== 0 - ")
        )
        assert check(program, width=4, encoding="steps").status == "holds"
        if truth:
            wrong = parse_program(f"{text} init x == {x}; always wrong: y != {truth};".replace("= -", "= 0 - "))
            assert check(wrong, width=4, encoding="steps").status == "violated"


def test_runs_of_acyclic_programs() -> None:
    assert longest_run(parse_program("int x = 0; process p { x = 1; x = 2; } process q { x = 3; }"), 9) == 3
    program = parse_program("int x = 0; process p { while (true) { x = 1 - x; } }")
    assert longest_run(program, 9) is None


BAD = [
    ("int x = ;", "line 1, column 9: ';' does not fit here", "a number"),
    ("int x = 0\nprocess p { x = 1; }", "line 2, column 1: 'process' does not fit", ";"),
    ("process p { skip;", "the program ends too early", "}"),
    ("int x = 0; process p { x = $; }", "'\\$' is not part of the language", "a name"),
    ("process p { xs = 1; }", "there is no variable xs", "declare it"),
    ("int total = 0; process p { totl = 1; }", "there is no variable totl", "did you mean total"),
    ("int x = 0; process p { x = true; }", "true is a truth value \\(bool\\), expected a number", "c \\? 1 : 0"),
    ("int x = 0; process p { if (x) { skip; } }", "x is a number \\(int\\), expected a truth value", "x != 0"),
    ("bool b = 1; process p { skip; }", "1 is a number", "compare"),
    ("int x = 0; process p { x[1] = 2; }", "x is not an array", "declare x\\[SIZE\\]"),
    ("int x[2] = 0; process p { x = 2; }", "x is an array of 2 cells", "x\\[0\\]"),
    ("int x[0]; process p { skip; }", "x has 0 cells", "give 1 to"),
    ("int x[2] = {1, 2, 3}; process p { skip; }", "x has 2 cells, but 3 values", "one value per cell"),
    ("int x = 0; int x = 1; process p { skip; }", "x is already a variable", "another name"),
    ("const n = 1; process p { n = 2; }", "n is a constant", "declare a variable"),
    ("int x = 0, y = 1; process p { x = x / y; }", "the divisor y is not a positive constant", "constant above 0"),
    ("lock m; process p { m = true; }", "m is a lock", "lock\\(m\\)"),
    ("int m = 0; process p { lock(m); }", "m is not a lock", "declare lock m"),
    (
        "int x = 0; process p { atomic { while (x < 1) { x = 1; } } }",
        "an atomic block contains a while",
        "out of atomic",
    ),
    ("process p { int t = 0; t = 1; } process q { p.t = 1; }", "cannot read the locals of another process", "shared"),
    ("process p { skip; } always a: q.t == 1;", "there is no process q", "declare|mean"),
    (
        "process p[i in 0..1] { int t = 0; skip; } always a: p[2].t == 1;",
        "there is no process p\\[2\\]",
        "p\\[0\\], p\\[1\\]",
    ),
    ("int a[2] = 0, x = 0; process p { skip; } always b: a[x] == 0;", "may be out of range", "quantifiers"),
    ("processes 3; process p { skip; }", "the number of processes is 1, not 3", "correct"),
    ("int x = 0;", "the program has no process", "add one: process"),
    ("int x in 3..1; process p { skip; }", "the range 3..1 is empty", "smaller"),
    ("process p[i in 2..1] { skip; }", "p has 0 instances", "smaller"),
]


@pytest.mark.parametrize(("text", "message", "hint"), BAD, ids=[m for _, m, _ in BAD])
def test_wrong_programs(text: str, message: str, hint: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        parse_program(text, name="bad.plait")
    assert "bad.plait, line " in caught.value.message
    assert caught.value.hint is not None
    assert re.search(hint, caught.value.hint)


def test_an_index_out_of_range_is_a_violation() -> None:
    program = parse_program("int a[3] = 0, x = 0; process p { while (x < 4) { a[x] = 1; x = x + 1; } }")
    verdict = check(program)
    assert (verdict.status, verdict.property) == ("violated", "bounds")
    assert verdict.trace is not None
    assert verdict.trace.events[-1].note == "the index 3 is out of range: a has 3 cells"
    safe = parse_program("int a[3] = 0, x = 0; process p { while (x < 3) { a[x] = 1; x = x + 1; } }")
    assert check(safe).status == "holds"


def test_watched_cells() -> None:
    program = parse_program("int a[2] = {3, 4}; process p { a[0] = 5; }")
    assert reachable_values(program, [Read(program.variables[0], Constant(0))], 5) == [{(3,)}, {(3,), (5,)}]
