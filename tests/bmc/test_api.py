"""Verdicts: depths, covering, induction, limits, other solvers, the Python front end, the zoo."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from plait.bmc import atomic, build, check, load, lock, parse_program, thread
from plait.bmc.api import formula
from plait.bmc.encoding.solvers import decide
from plait.bmc.execution.tracing import replay
from plait.bmc.litmus import litmus
from plait.bmc.load import ZOO, zoo
from plait.kernel.errors import ModelError, PlaitError, TraceError, UsageError
from tests.support.patience import PATIENCE

COUNTER = "int x = 0; process p { while (x < 5) { x = x + 1; } } always small: x <= LIMIT; "
SPIN = "bool go = false; int x = 0; process p { while (!go) { } x = 1; } process q { go = true; } always zero: x == 0;"


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["steps", "clock", "explicit"])
def test_without_a_depth_everything_is_covered(encoding: Any) -> None:
    """The counter takes 5 * 2 + 1 steps."""
    good = check(parse_program(COUNTER.replace("LIMIT", "5")), encoding=encoding)
    assert (good.status, good.bound) == ("holds", None)
    bad = check(parse_program(COUNTER.replace("LIMIT", "4")), encoding=encoding)
    assert bad.status == "violated"
    assert bad.trace is not None
    assert len(bad.trace) == 10, "the fifth time around"


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["steps", "clock", "explicit"])
@pytest.mark.parametrize(
    ("depth", "status"), [(9, "inconclusive"), (10, "violated"), (11, "violated"), (20, "violated")]
)
def test_a_depth(encoding: Any, depth: int, status: str) -> None:
    verdict = check(parse_program(COUNTER.replace("LIMIT", "4")), depth=depth, encoding=encoding)
    assert verdict.status == status
    if status == "inconclusive":
        assert verdict.bound == "depth 9"
        assert "at most 9 steps" in (verdict.message or "")


@pytest.mark.parametrize(("depth", "status"), [(10, "inconclusive"), (11, "holds")])
@pytest.mark.parametrize("encoding", ["steps", "clock", "explicit"])
def test_a_depth_that_covers_all_runs_is_no_bound(encoding: Any, depth: int, status: str) -> None:
    assert check(parse_program(COUNTER.replace("LIMIT", "5")), depth=depth, encoding=encoding).status == status


ENDLESS = """int x = 0, y = 0, z = 0; int a[9] = 0;
process p { while (true) { y = (y + 1) % 3; z = z + 1; } }
process q { x = 1; }
process r { int t = 0; t = a[z]; }
always small: x < 2;
"""


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["steps", "clock"])
def test_loops_outside_of_all_projections_need_no_depth(encoding: Any) -> None:
    program = parse_program(ENDLESS)
    verdict = check(program, depth=4, encoding=encoding, properties=["small"])
    assert (verdict.status, verdict.bound) == ("holds", None)
    assert verdict.properties[0].note == "in all runs: projections have at most 1 step"
    assert check(program, depth=4, encoding=encoding, properties=["small"], projection="off").status == "inconclusive"
    # Within four steps no index is out of range, beyond them one is.
    assert check(program, depth=4, encoding=encoding, properties=["bounds"]).status == "inconclusive"
    assert check(program, depth=42, encoding=encoding, properties=["bounds"]).status == "violated"


@pytest.mark.parametrize("encoding", ["steps", "clock"])
@pytest.mark.parametrize("projection", ["auto", "on", "off"])
def test_every_case_of_a_property_is_looked_at(encoding: Any, projection: Any) -> None:
    text = """int x = 0, y = 0; process p { x = 1; y = 1; } always a: x < 2 && y < 2; always b: x < 2 && y < 1;
    always c: x < 1 && y < 2; reachable d: x == 2 || y == 1;"""
    verdict = check(parse_program(text), encoding=encoding, projection=projection)
    assert [r.status for r in verdict.properties] == ["holds", "violated", "violated", "holds"]


def test_loops_without_end_are_enumerated() -> None:
    assert check(parse_program(SPIN)).status == "violated"
    verdict = check(parse_program("int x = 0; process p { while (true) { x = 1 - x; } } always small: x < 2;"))
    assert (verdict.status, verdict.bound) == ("holds", None)


@pytest.mark.slow
def test_induction() -> None:
    """A loop without end, whose invariant is inductive; a wrong one; and one that needs two states in a row."""
    loop = "int x = 0; process p { while (true) { x = (x + 2) % 6; } } always even: CONDITION;"
    for condition, status in (("x != 5", "holds"), ("x != 4", "violated"), ("x % 2 == 0", "holds")):
        verdict = check(parse_program(loop.replace("CONDITION", condition)), induction=True, timeout=PATIENCE)
        assert verdict.status == status
    note = check(parse_program(loop.replace("CONDITION", "x % 2 == 0")), induction=True).properties[0].note
    assert "by induction" in (note or "")


@pytest.mark.slow
def test_a_lock_holds_for_ever_by_induction() -> None:
    text = """
        int holder = 0;
        process p[i in 1..2] {
          bool critical = false;
          while (true) {
            atomic { assume(holder == 0); holder = i; critical = true; }
            atomic { critical = false; holder = 0; }
          }
        }
        always exclusive: CONDITION;
    """
    exclusive = "!(p[1].critical && p[2].critical)"
    strong = f"{exclusive} && (p[1].critical ==> holder == 1) && (p[2].critical ==> holder == 2)"
    assert check(parse_program(text.replace("CONDITION", exclusive)), encoding="explicit").status == "holds"
    verdict = check(parse_program(text.replace("CONDITION", strong)), induction=True, timeout=PATIENCE)
    assert verdict.status == "holds"
    assert "by induction" in (verdict.properties[0].note or "")
    broken = text.replace("assume(holder == 0);", "").replace("CONDITION", exclusive)
    assert check(parse_program(broken), induction=True, timeout=PATIENCE).status == "violated"


@pytest.mark.slow
def test_a_timeout_says_how_deep_it_came() -> None:
    program = load("indexer", {"threads": 6})
    notes = []
    for timeout in (0.5, 2, 8, 32):  # on a busy machine, half a second may not be enough for the first depth
        verdict = check(program, encoding="steps", projection="off", order=False, timeout=timeout)
        assert (verdict.status, verdict.bound) == ("inconclusive", "timeout")
        notes.append(verdict.properties[0].note or "")
        if "not violated within" in notes[-1]:
            return
    pytest.fail(f"no verdict says how deep it came: {notes}")


@pytest.mark.slow
def test_a_memory_limit_says_so() -> None:
    """In a process of its own: after hundreds of other formulas, Z3 counts less memory than there is."""
    code = f"""
from plait.bmc import check, load
verdict = check(load("indexer", {{"threads": 4}}), depth=15, encoding="steps", memory=20 << 20, timeout={PATIENCE})
print(verdict.status, verdict.bound)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert done.stdout == "inconclusive memory\n"


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["bitwuzla", "cvc5"])
@pytest.mark.parametrize("encoding", ["steps", "clock"])
@pytest.mark.parametrize("name", ["projections", "peterson"])
def test_other_solvers_agree(solver: Any, encoding: Any, name: str) -> None:
    pytest.importorskip(solver)
    mine = check(load(name), encoding=encoding, depth=13)
    other = check(load(name), encoding=encoding, depth=13, solver=solver)
    assert [(p.name, p.status) for p in mine.properties] == [(p.name, p.status) for p in other.properties]


def test_cvc5_on_integers() -> None:
    pytest.importorskip("cvc5")
    program = parse_program("int x, y = 0; process p { y = x * 3; } always odd: y != 51;")
    verdict = check(program, solver="cvc5")
    assert verdict.status == "violated"
    assert verdict.trace is not None
    assert verdict.trace.initial.fields["shared"]["x"] == 17


def test_the_formula_is_smtlib() -> None:
    text = formula(load("projections"), 4, "never_twelve")
    assert text.startswith("(set-logic QF_BV)")
    assert decide(text, "z3").outcome == "sat"
    assert decide(formula(load("projections"), 3, "never_twelve"), "z3").outcome == "unsat"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"properties": ["nothing"]}, "has no property 'nothing'"),
        ({"encoding": "tree"}, "encoding='tree' does not fit"),
        ({"solver": "minisat"}, "solver='minisat' does not fit"),
        ({"depth": -1}, "depth=-1 is negative"),
        ({"width": 4}, "the number 13 does not fit in 4 bits"),
        ({"width": 1}, "width=1 does not fit"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check(load("projections"), **options)


def test_a_program_without_properties() -> None:
    with pytest.raises(UsageError, match="has no property"):
        check(parse_program("int x = 0; process p { x = 1; }"))


def test_traces_are_runs() -> None:
    """A counterexample replays; one whose program has changed does not."""
    program = load("peterson", {"polite": False})
    found = check(program, encoding="clock").trace
    assert found is not None
    assert len(list(replay(program, found))) == len(found)
    with pytest.raises(TraceError, match=r"can no longer take this step|differs from the trace"):
        list(replay(load("peterson"), found))


def test_full_runs_go_on() -> None:
    """Beyond the projection, others do what they can without touching what the property reads."""
    program = load("projections")
    short = check(program, properties=["never_twelve"]).trace
    text = "int x = 0, y = 0; process p { x = 1; } process q { y = 1; y = 2; } always small: x == 0;"
    whole = check(parse_program(text), full=True).trace
    assert short is not None
    assert whole is not None
    assert [e.label for e in whole.events] == ["x = 1;", "y = 1;", "y = 2;"]
    assert [e.note for e in whole.events] == [None, "not in the projection", "not in the projection"]


def test_the_zoo() -> None:
    """Everything in it compiles; the litmus tests are those of the generator."""
    assert {"indexer", "fsys", "philosophers", "peterson", "projections"} <= set(zoo())
    for name in zoo():
        assert load(name).properties or name == "fsys"
    for n in range(4, 9):
        assert (ZOO / f"litmus{n}.plait").read_text(encoding="utf-8") == litmus(n)


def test_philosophers() -> None:
    """The bug is found within ten steps, for any number of philosophers; careful ones have none."""
    for n in (3, 5):
        verdict = check(load("philosophers", {"n": n}), depth=10, encoding="steps")
        assert verdict.status == "violated"
    assert check(load("philosophers", {"n": 2, "careful": True}), encoding="explicit").status == "holds"


# -- Python ------------------------------------------------------------------------------------------------------------

LIMIT = 2


@thread
def worker(s, i):  # type: ignore[no-untyped-def]
    """Adds to a counter without a lock, and notes how often."""
    k = 0
    while k < LIMIT:
        t = s.x
        s.x = t + 1
        k += 1
    with s.m, atomic:
        s.a[i] = k
        s.ended += 1


@thread
def careful(s):  # type: ignore[no-untyped-def]
    with s.m, atomic:
        t = s.x
        s.x = t + 1
    assert s.x <= 2


def test_python_threads() -> None:
    shared: dict[str, Any] = {"x": 0, "m": lock}
    program = build(shared, [careful(), careful()], always={"small": "s.x <= 2"}, reachable={"two": "s.x == 2"})
    verdict = check(program)
    assert {p.name: p.status for p in verdict.properties} == dict.fromkeys(
        ["small", "two", "assertions", "deadlock"], "holds"
    )


def unsupported(s):  # type: ignore[no-untyped-def]
    for i in range(3):
        s.x = i


def unknown(s):  # type: ignore[no-untyped-def]
    s.x = other + 1  # type: ignore[name-defined]  # noqa: F821


def wrong_type(s):  # type: ignore[no-untyped-def]
    s.x = s.x == 1


@pytest.mark.parametrize(
    ("function", "message", "column"),
    [
        (unsupported, "this statement is not supported in a thread", 5),
        (unknown, "other is not a variable", 11),
        (wrong_type, "s.x == 1 is a truth value", 11),
    ],
)
def test_python_errors_point_at_the_source(function: Any, message: str, column: int) -> None:
    line = function.__code__.co_firstlineno + 1
    with pytest.raises(ModelError, match=message) as caught:
        build({"x": 0}, [thread(function)])
    assert f"test_api.py, line {line}, column {column}: " in caught.value.message


def test_python_files(workplace: Path) -> None:
    (workplace / "counter.py").write_text(
        "from plait.bmc import Program, build, thread\n\n\n"
        "@thread\ndef add(s):\n    t = s.x\n    s.x = t + 1\n\n\n"
        "def counter(n: int = 2) -> Program:\n"
        "    return build({'x': 0}, [add() for _ in range(n)], final={'all': f's.x == {n}'})\n"
    )
    assert check(load("counter.py", {"n": "1"})).status == "holds"
    assert check(load("counter.py:counter")).status == "violated"
    for target, parameters in (("counter.py:nothing", {}), ("counter.py", {"m": "1"}), ("counter.py", {"n": "x"})):
        with pytest.raises(PlaitError):
            load(target, parameters)
    (workplace / "broken.py").write_text("1 / 0\n")
    with pytest.raises(UsageError, match="ZeroDivisionError"):
        load("broken.py")


def test_statements_of_threads_are_not_functions() -> None:
    with pytest.raises(UsageError, match="statement of a @thread"):
        lock(1)


@pytest.mark.parametrize("file", ["counter.plait", "counter.py"])
def test_the_examples(file: str) -> None:
    path = str(Path(__file__).parents[2] / "examples" / "bmc" / file)
    assert check(load(path)).status == "violated"
    assert check(load(path, {"careful": True})).status == "holds"


@pytest.mark.slow
@pytest.mark.parametrize("switch", ["on", "off"])
def test_nobody_writes_what_is_looked_at(switch: Any) -> None:
    """No index of the file system is out of range: known before any read is joined to a write, however deep."""
    verdict = check(load("fsys"), depth=90, encoding="clock", projection=switch, cover=False)
    assert verdict.properties[0].note == "not violated within 90 steps"


def test_straight_code_has_one_instruction_at_each_position() -> None:
    """The n-th slot of a process is its n-th step: eight processes of eight instructions are a small formula."""
    text = formula(load("litmus8"), 20, encoding="clock")
    assert len(text) < 500_000
    assert text.count("declare-const |p0 takes") == 8


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("int x = 0; process p { havoc x in 0..5; assert(x == 0); }", 3),
        ("process p { int u = 0; choose { skip; } or { skip; } or { u = 1; assert(u == 0); } }", 2),
        ("int a[3] = 0; int x = -2; process p { a[2] = 1; } always q: a[2] == 0;", 2),
        ("int x = -4, y = 0; process p { y = 4; } always q: y >= 0;", 3),
    ],
)
def test_what_does_not_fit_in_a_width_is_refused(text: str, width: int) -> None:
    with pytest.raises(UsageError, match=f"does not fit in {width} bits"):
        check(parse_program(text), width=width)
    assert check(parse_program(text)).status in ("holds", "violated")


@pytest.mark.parametrize("encoding", ["steps", "clock"])
@pytest.mark.parametrize(
    "text",
    [
        "int a[2] = 0, x = 1000000, i = 5; process p { int t = 0; t = x * x * 2; if (t > 5) { a[i] = 1; } }",
        "int a[2] = 0, i = 5; process p { int t = 3000000000000; if (t > 5) { a[i] = 1; } }",
        "int a[3] = 0, z; process p { int t = 0; t = z / 1099511627776; a[t + 1] = 1; }",
        "int a[2] = 0, z; process p { int t = 0; t = z; assume(t >= 1099511627775); a[t - 1099511627775] = 1; }",
        "int a[2] = 0, z, i = 7; process p { int t = 0; t = z; assume(t > 2000000000000); a[i] = 1; }",
    ],
)
def test_numbers_have_no_largest(text: str, encoding: Any) -> None:
    assert check(parse_program(text), encoding=encoding, properties=["bounds"]).status == "violated"


@pytest.mark.parametrize("text", [
    "int x in -1..0, y = 0; process p { while (x > 0) { y = 1 - y; x = 1 + y * 0; } } always a: y >= 0;",
    "int y = 0; process p { int t = 0; havoc t in 0..0; while (t > 0) { y = 1 - y; } } always a: y >= 0;",
])  # fmt: skip
def test_random_walks_stay_in_ranges(text: str) -> None:
    assert check(parse_program(text), depth=5, projection="off").status == "holds"


@pytest.mark.slow
def test_what_was_decided_of_another_property_says_nothing() -> None:
    program = parse_program(litmus(8, 2019) + "always first: B[0] > -5;\n")
    verdict = check(program, depth=20, encoding="steps", projection="off", timeout=0.3)
    for result in verdict.properties:
        if result.status == "inconclusive" and result.name != "first":
            assert "timeout" in (result.note or "")
    assert verdict.bound == "timeout"


def test_names_of_variables_are_free() -> None:
    text = "int x = 0, sel in 0..1; process p { assume(x == 0); x = 1; } always a: x < 1;"
    assert check(parse_program(text)).status == "violated"


@pytest.mark.slow
def test_large_programs() -> None:
    many = "int x = 0; process p { " + "x = x + 1; " * 700 + "} always a: x < 2;"
    assert check(parse_program(many), depth=3).status == "violated"
    wide = "const n = 3000; int a[n] = 0; process p { a[3] = 1; } always z: forall k in 0..n - 1: a[k] == 0;"
    assert check(parse_program(wide)).status == "violated"


def test_without_an_initial_state_nothing_is_said() -> None:
    with pytest.raises(UsageError, match="no initial state"):
        check(parse_program("int x in 0..3; init x > 5; process p { x = 1; } always a: x == 7;"))


def test_a_trace_is_a_projection() -> None:
    program = parse_program("int x = 0, y = 0; process p { x = 1; } process q { y = 1; } always a: x < 1;")
    for encoding in ("steps", "clock"):
        trace = check(program, depth=2, encoding=encoding, projection="off").trace  # type: ignore[arg-type]
        assert trace is not None
        assert [e.label for e in trace.events] == ["x = 1;"]


def test_threads_and_their_arguments() -> None:
    @thread
    def sets(s, i, value):  # type: ignore[no-untyped-def]
        s.a[i] = value

    def plain(s):  # type: ignore[no-untyped-def]
        s.a[0] = 1

    program = build({"a": [0, 0]}, [sets(0, value=3), sets(i=1, value=4)], final={"both": "s.a[0] + s.a[1] == 7"})
    assert check(program).status == "holds"
    for wrong in (lambda: sets(0), lambda: sets(0, other=1), lambda: sets(0, 1, i=1)):
        with pytest.raises(UsageError, match="sets expects 2 arguments after s"):
            wrong()
    with pytest.raises(UsageError, match="is not a thread") as caught:
        build({"a": [0, 0]}, [plain])  # type: ignore[list-item]
    assert "@thread" in (caught.value.hint or "")
