"""What can be in a projection, statically: the example of Saissi 2019, and mistakes that the enumeration notices."""

from __future__ import annotations

from typing import Any

import pytest

from plait.bmc import load, parse_program
from plait.bmc.analysis import ranges as ranges_module
from plait.bmc.analysis.failures import reads_of
from plait.bmc.analysis.ranges import ranges
from plait.bmc.analysis.relevance import Relevance
from plait.bmc.program.definition import NEVER, Expr, Program, Read
from tests.bmc import encodings
from tests.bmc.programs import Random

pytestmark = pytest.mark.slow


def relevance(program: Program, *names: str, watched: frozenset[int] = frozenset()) -> Relevance:
    variables = {v for v in program.variables if v.name in names}
    return Relevance(program, ranges(program, None), variables, set(watched))


def test_the_motivating_example() -> None:
    """Figure 13: a run for y ends with y = x + 7; P3 takes both of its steps or none, P1 and P2 what they like."""
    found = relevance(load("projections"), "y")
    assert [found.ends(p) for p in range(3)] == [{0, 1}, {0, 1}, {0, 2}]
    last, before, *_ = reversed(found.possible(4))
    assert last == {(2, 1)}
    assert before == {(2, 0), (2, 1)}
    assert found.possible(4)[0] == {(0, 0), (1, 0), (2, 0), (2, 1)}


def test_nobody_reads_it() -> None:
    program = parse_program("int x = 0, y = 0; process p { y = 1; x = 1; y = 2; } always a: y < 2;")
    assert relevance(program, "x").ends(0) == {0, 2}
    assert relevance(program, "x").possible(5)[-1] == {(0, 1)}
    assert relevance(program, "x", watched=frozenset({0})).ends(0) is None


def test_failures_are_writes_of_their_flags() -> None:
    program = parse_program("int a[2] = 0; int k in 0..2, x = 0; process p { x = a[1]; x = a[k]; assert(x == 1); }")
    assert relevance(program, "bounds").possible(3)[-1] == {(0, 1)}
    assert relevance(program, "assertions").possible(3)[-1] == {(0, 2)}
    assert relevance(program, "bounds").ends(0) == {0, 4}


def test_how_late_a_step_can_be_taken() -> None:
    """In paths of five steps: who writes x may take all of them; who only helps leaves two for x = y."""
    program = parse_program(
        "int x = 0, y = 0, z = 0; process p { int t = 0; t = 1; x = y; } process q { while (true) { z = 1; y = z; } }"
    )
    found = relevance(program, "x")
    assert found.latest(0, 5) == {0: 3, 1: 4}
    assert found.latest(1, 5) == {0: 0, 1: 1, 2: 2}


def test_what_comes_before_a_failure() -> None:
    """In the file system only the first use of an inode's number can be out of range, and before it the number is drawn:
    neither locks nor blocks are in a projection, however deep."""
    program = load("fsys")
    known = ranges(program, 90, 8)
    found = Relevance(program, known, {v for v in program.variables if v.name == "bounds"}, set())
    assert {way for way in found.writes if way.fails} == {(p, 1, True) for p in range(5)}
    assert {place[1] for place in found.possible(90)[0]} == {0, 1}
    assert found.sliced().longest == 10


def test_a_step_that_can_only_fail_is_cut_behind_the_failure() -> None:
    program = parse_program(
        "int a[2] = 0; int k in 0..2, x = 0, y = 0; process p { atomic { x = 1; x = a[k]; y = 1; } y = 2; }"
    )
    step, after = relevance(program, "bounds").sliced().processes[0].instructions
    assert step.body[:2] == program.processes[0].instructions[0].body[:2]
    assert step.body[2:] == after.body == (NEVER,)


READS = "int x = 0, y = 0, z = 0; process p { x = 1; } process q { z = 1; y = x; y = y + 1; }"
FAILS = "int a[2] = 0; int k = 0, y = 0; process p { k = 2; } process q { int t = 0; t = a[k]; y = 1; }"
MIDWAY = "int a[2] = 0; int k in 2..2, x = 0, y = 0; process p { atomic { x = 1; y = a[k]; } }"
UNSURE = "int a[2] = 0; bool b = false; int x = 0; process p { int t = 2; b = b && a[t] == 0; x = a[t]; }"


def _all_inside(environment: Any, *expressions: Expr) -> Any:
    for e in expressions:
        for read in reads_of(e):
            if isinstance(read.index, Read):
                environment = environment | {read.index.variable: (0, read.variable.cells - 1)}
    return environment


MUTANTS: dict[str, Any] = {
    "possible: what others read is left out": (
        READS, "y", Relevance, "_matters", lambda self, way, read: bool(self.writes[way] & self.relevant),
    ),
    "ends: one location too few": (READS, "y", Relevance, "ends", lambda self, process: {0}),
    "latest: one step too early": (
        READS, "y", Relevance, "latest",
        lambda self, process, depth, real=Relevance.latest: {n: k - 1 for n, k in real(self, process, depth).items()},
    ),
    "a step that fails reads nothing": (
        FAILS, "bounds", Relevance, "_missed", lambda self, action: set(self.program.variables),
    ),
    "a step that fails writes nothing but its flag": (
        MIDWAY, "x", Relevance, "_failing", lambda self, step: (set(), {self.program.flag("bounds")}),
    ),
    "what is perhaps not evaluated is in range": (UNSURE, "bounds", ranges_module, "_inside", _all_inside),
}  # fmt: skip


@pytest.mark.parametrize("way", ["steps, sliced", "steps, projected", "clock, projected"])
@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_are_caught(mutant: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, name, owner, attribute, wrong = MUTANTS[mutant]
    ways = {way: encodings.WAYS[way]}
    encodings.compare(Random(text, [name]), ways)
    monkeypatch.setattr(owner, attribute, wrong)
    with pytest.raises(AssertionError):
        encodings.compare(Random(text, [name]), ways)
