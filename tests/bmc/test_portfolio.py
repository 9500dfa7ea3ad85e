"""The portfolio: which search decides what, and what is left of it afterwards."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given

from plait.bmc import check, parse_program
from plait.bmc import portfolio as portfolio_module
from plait.bmc.checks import with_checks
from plait.bmc.execution.interpreter import Step
from plait.bmc.finding import NO_RUN_ENDS
from plait.bmc.options import Limits, Options
from plait.bmc.portfolio import Portfolio
from plait.bmc.program.definition import Program, Variable, accesses
from tests.bmc.programs import Random, programs
from tests.oracle.program_states import Enumeration

DEKKER = """
bool wants[2] = false; int turn = 0, inside = 0;
process p[i in 0..1] {
  while (true) {
    wants[i] = true;
    while (wants[1 - i]) {
      if (turn != i) { wants[i] = false; assume(turn == i); wants[i] = true; }
    }
    atomic { inside = inside + 1; assert(inside == 1); }
    inside = 0;
    turn = 1 - i;
    wants[i] = false;
  }
}
"""


def decided(verdict: Any) -> dict[str, str]:
    return verdict.statistics.formula.decided  # type: ignore[no-any-return]


def test_enumeration_decides_programs_that_never_end() -> None:
    verdict = check(parse_program(DEKKER))
    assert (verdict.status, verdict.bound, decided(verdict)) == ("holds", None, {"assertions": "explicit"})
    broken = DEKKER.replace("while (true) {\n    wants[i] = true;", "while (true) {")
    assert check(parse_program(broken)).status == "violated"


@pytest.mark.slow
def test_solvers_decide_programs_with_too_many_inputs() -> None:
    """x * x = 1,000,003 * 1,000,003 has one positive solution; no enumeration finds it."""
    text = "int x in 0..9000000; int y = 0; process p { y = x * x; } always never: y != 1000006000009;"
    verdict = check(parse_program(text), timeout=60)
    assert verdict.status == "violated"
    assert verdict.statistics.formula is not None
    assert decided(verdict)["never"] in ("clock", "steps", "induction")
    assert verdict.trace is not None
    assert verdict.trace.initial.fields["shared"]["x"] == 1000003


SEPARATE = """int x = 0, a = 0, b = 0, c = 0;
process p[k in 0..1] { x = x + 1; }
process r[k in 0..2] { int i = 0; while (i < 60) { a = a + b; b = b + c; c = c + a + k; i = i + 1; } }
always PROPERTY;
"""


@pytest.mark.parametrize(("condition", "status"), [("low: x <= 2", "holds"), ("low: x <= 1", "violated")])
def test_steps_that_do_not_matter_are_not_enumerated(condition: str, status: str) -> None:
    """The other threads have more states than anybody can enumerate."""
    verdict = check(parse_program(SEPARATE.replace("PROPERTY", condition)), timeout=60)
    assert verdict.status == status


@given(programs())
def test_slices_agree_with_the_whole_program(random: Random) -> None:
    program = parse_program(random.text + "always low: x + y < 2;")
    truth = {p.name: p.status for p in check(program, encoding="explicit").properties}
    portfolio = Portfolio(with_checks(program), Options(), Limits(), lambda _: None)
    portfolio.properties = list(portfolio.program.properties)
    portfolio.share = 1.0
    portfolio._enumerate_slices()
    while not portfolio.events.empty():
        portfolio._take(*portfolio.events.get())
    assert {name: finding.status() for name, finding in portfolio.findings.items()} == {
        p.name: truth[p.name] for p in portfolio.properties
    }


def test_a_search_leaves_no_process_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    begin = subprocess.Popen

    def counted(*arguments: Any, **options: Any) -> Any:
        started.append(begin(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", counted)
    check(parse_program("int x; process p { int t; t = x; } always any: x < 5;"), timeout=30)
    assert len(started) == 3
    assert all(process.poll() is not None for process in started)


def test_a_fault_of_a_search_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Any) -> Any:
        raise AssertionError("a bug")

    monkeypatch.setattr(portfolio_module.Portfolio, "_enumerate", broken)
    with pytest.raises(AssertionError, match="a bug"):
        check(parse_program("int x = 0; process p { x = 1; } always any: x < 5;"))


def test_a_final_property_of_a_program_that_never_ends_is_vacuous() -> None:
    text = "int x = 0; process p { while (true) { x = 1 - x; } } final wrong: x == 7;"
    assert check(parse_program(text)).properties[0].note == NO_RUN_ENDS
    stuck = "int x = 0; process p { assume(x == 1); } final wrong: x == 7;"
    for encoding in ("steps", "clock", "explicit"):
        verdict = check(parse_program(stuck), encoding=encoding)
        assert (verdict.status, verdict.properties[0].note) == ("holds", NO_RUN_ENDS)
    ends = "int x = 0; process p { x = 7; } final right: x == 7;"
    assert check(parse_program(ends)).properties[0].note == "in all 2 states"


@pytest.mark.slow
@given(programs())
def test_a_shortest_run_of_a_solver_is_as_short_as_that_of_the_enumeration(random: Random) -> None:
    program = parse_program(random.text + "always low: x + y < 2;")
    truth = check(program, encoding="explicit", depth=8, full=True)
    for result in truth.properties:
        if result.status != "violated" or result.trace is None:
            continue
        found = check(
            program, encoding="steps", depth=8, full=True, shortest=True, projection="off", properties=[result.name]
        )
        assert found.properties[0].note == result.note


@given(programs())
def test_a_step_accesses_one_shared_cell_once(random: Random) -> None:
    """What the interpreter sees in all states: an access to one cell of the variables that several processes use."""
    program = parse_program(random.text)
    users: dict[Variable, set[int]] = {}
    for code in program.processes:
        for step in code.instructions:
            for variable in set().union(*accesses(step.body)):
                users.setdefault(variable, set()).add(step.process)
    written = {v for code in program.processes for step in code.instructions for v in accesses(step.body)[1]}
    for taken in itertools.islice(all_steps(program), 3000):
        step = program.processes[taken.process].instructions[taken.location]
        if step.synchronizes or step.label.startswith("assume"):
            continue
        touched = [c for c in [*taken.reads, *taken.writes] if not isinstance(c, int) and not c[0].hidden]
        shared = [c for c in touched if c[0].process is None and len(users[c[0]]) > 1 and c[0] in written]
        assert len(shared) <= 1, step.label


def all_steps(program: Program) -> Iterator[Step]:
    """The steps from all states."""
    enumeration = Enumeration(program)
    for layer in enumeration.layers():
        for state in layer.states:
            yield from enumeration.interpreter.successors(state)


def test_old_programs_can_claim_atomic_statements() -> None:
    text = "int x = 0; process p[i in 1..2] { x = x + 1; } final two: x == 2;"
    assert check(parse_program(text)).status == "violated"
    assert check(parse_program(text, atomic=True)).status == "holds"
    assert parse_program(text).notes == ("1 statement is several steps, for example line 1: x = x + 1;",)
