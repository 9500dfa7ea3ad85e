"""Assignments whose values nobody uses, and mistakes about them that the enumeration notices."""

from __future__ import annotations

from typing import Any

import pytest

from plait.bmc import parse_program
from plait.bmc.analysis.ranges import ranges
from plait.bmc.analysis.relevance import relevance
from plait.bmc.analysis.unused_assignments import Liveness, without_unused_assignments
from plait.bmc.program.definition import Action, Branch, Goto, Program, Set, Variable, accesses
from tests.bmc import encodings
from tests.bmc.programs import Random

USED = "int x = 0, y = 0; process p { int t = 0; t = x; t = y; y = t + 1; } process q { x = 1; y = 5; }"
LOOP = "int y = 0; process p { int t = 0, k = 0; while (k < 2) { y = t; t = k + 3; k = k + 1; } }"
FAILS = "int a[2] = 0; int k in 0..2; process p { int t = 0; t = a[k]; }"
PERHAPS = "int y = 0; bool b = false; process p { int t = 0; t = 3; atomic { if (b) { t = 1; } } y = t; }"


def f(program: Program, *names: str) -> set[Variable]:
    return {v for v in program.variables if v.name in names}


def left(text: str, *names: str) -> list[list[int]]:
    """How many assignments each step still makes."""
    program = parse_program(text)
    cleaned = without_unused_assignments(program, ranges(program, None), f(program, *names))
    return [[sum(isinstance(a, Set) for a in step.body) for step in code.instructions] for code in cleaned.processes]


def test_what_is_assigned_again_or_never_read_is_unused() -> None:
    assert left(USED, "y") == [[0, 1, 1], [1, 1]], "x is still read, by a step that is gone only now"
    assert left(USED, "y", "p.t") == [[1, 1, 1], [1, 1]], "a run may stop anywhere"
    assert left(USED, "x") == [[0, 1, 1], [1, 1]]
    assert left(LOOP, "y") == [[0, 1, 1, 1]], "the next time around, t is read"


def test_what_only_the_dead_read_is_in_no_projection() -> None:
    program = parse_program(USED)
    found = relevance(program, ranges(program, None), f(program, "y"), set())
    assert [len(code.instructions[0].body) for code in found.program.processes] == [1, 1], (
        "t = x and x = 1 are left as skip"
    )
    assert found.ends(1) == {0, 2}


def _drop_all(self: Liveness, action: Set, live: set[Variable]) -> bool:
    return action.variable not in self.kept


def _drop_failing(self: Liveness, action: Set, live: set[Variable]) -> bool:
    return action.variable not in self.kept | live


def _kill_in_branches(self: Liveness, actions: tuple[Action, ...], live: set[Variable]) -> Any:
    found: list[Action] = []
    for action in reversed(actions):
        if isinstance(action, Set) and self._unused(action, live):
            continue
        found.append(action)
        if isinstance(action, Goto):
            live = self.live[action.location]
        if isinstance(action, Set | Branch):
            live = live - accesses((action,))[1]
        live = live | accesses((action,))[0]
    return live, tuple(reversed(found))


MUTANTS: dict[str, Any] = {
    "what is read later is dead": (USED, "y", "_unused", _drop_all),
    "the end of a loop is the end": (LOOP, "y", "_at", lambda self, location: (
        self.live[location] if location > 0 else set()
    )),
    "what may fail is dead": (FAILS, "bounds", "_unused", _drop_failing),
    "what is perhaps assigned again is dead": (PERHAPS, "y", "_through", _kill_in_branches),
}  # fmt: skip


@pytest.mark.parametrize("way", ["steps, sliced", "clock, projected"])
@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_are_caught(mutant: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, name, attribute, wrong = MUTANTS[mutant]
    ways = {way: encodings.WAYS[way]}
    encodings.compare(Random(text, [name]), ways)
    monkeypatch.setattr(Liveness, attribute, wrong)
    with pytest.raises(AssertionError):
        encodings.compare(Random(text, [name]), ways)
