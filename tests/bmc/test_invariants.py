"""Invariants: whatever is proved holds in every reachable state; and with them, endless programs are proved."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from plait.bmc import check, parse_program
from plait.bmc.analysis import invariants as module
from plait.bmc.analysis.invariants import Guess, invariants
from plait.bmc.analysis.ranges import ranges
from plait.bmc.execution.interpreter import State
from plait.bmc.program.definition import Program
from tests.bmc.programs import Random, programs
from tests.oracle.program_states import Enumeration

ENDLESS = (Path(__file__).parents[2] / "examples/bmc/endless.plait").read_text(encoding="utf-8")


def holds(guess: Guess, program: Program, state: State) -> bool:
    """By its words: at these places, the cell has one of the values."""
    if any(state.locations[p] != place for p, place in guess.places):
        return True
    return guess.variable is not None and (state.values[program.offsets[guess.variable] + guess.cell] in guess.values)


def proved(program: Program) -> list[Guess]:
    known = ranges(program, None)
    return invariants(program, known, known.bits, None)


@pytest.mark.slow
@pytest.mark.parametrize("walks", [1, 10])
def test_what_is_proved_holds_in_every_state(walks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few runs the guesses come from: bad guesses are dropped."""
    monkeypatch.setattr(module, "_WALKS", walks)

    @settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
    @given(programs())
    def law(random: Random) -> None:
        program = parse_program(random.text)
        states = [s for layer in Enumeration(program).layers() for s in layer.states]
        for guess in proved(program):
            assert all(holds(guess, program, state) for state in states), f"{guess}\n{random.text}"

    law()


@pytest.mark.slow
def test_something_is_proved() -> None:
    """Of Peterson's algorithm, that both are never inside: locations 4, 5 and 6 are those between entry and exit."""
    program = parse_program(ENDLESS)
    found = {g.places for g in proved(program) if g.variable is None}
    assert {((0, a), (1, b)) for a in (5, 6) for b in (5, 6)} <= found


@pytest.mark.slow
def test_peterson_without_end() -> None:
    verdict = check(parse_program(ENDLESS), induction=True)
    assert verdict.status == "holds"
    assert "by induction" in (verdict.properties[0].note or "")


@pytest.mark.slow
def test_a_wrong_peterson_is_violated() -> None:
    """Without the wait. Guesses and induction do not hide it."""
    text = ENDLESS.replace("assume(!interested[other] || turn == i);", "skip;")
    assert text != ENDLESS
    assert check(parse_program(text), encoding="explicit").status == "violated"
    assert check(parse_program(text), induction=True).status == "violated"
