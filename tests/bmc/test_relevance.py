"""What can be in a projection, statically: the example of the thesis, and mistakes that the enumeration notices."""

from __future__ import annotations

from typing import Any

import pytest

from plait.bmc import load, parse_program
from plait.bmc.program import Program
from plait.bmc.ranges import ranges
from plait.bmc.relevance import Relevance
from tests.bmc import test_encodings
from tests.bmc.programs import Random


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
    assert relevance(program, "bounds").possible(1) == [{(0, 1)}]
    assert relevance(program, "assertions").possible(1) == [{(0, 2)}]
    assert relevance(program, "bounds").ends(0) == {0, 2, 4}


MUTANTS: dict[str, Any] = {
    "possible: what others read is left out": (
        "_matters",
        lambda self, place, read: bool(self.writes[place] & self.relevant),
    ),
    "ends: one location too few": ("ends", lambda self, process: {0}),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_are_caught(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "int x = 0, y = 0, z = 0; process p { x = 1; } process q { z = 1; y = x; y = y + 1; }"
    way = {"steps": test_encodings.WAYS["steps, projected"]}
    test_encodings.compare(Random(text, ["y"]), way)
    name, wrong = MUTANTS[mutant]
    monkeypatch.setattr(Relevance, name, wrong)
    with pytest.raises(AssertionError):
        test_encodings.compare(Random(text, ["y"]), way)
