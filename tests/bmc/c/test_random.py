"""Random C programs, compiled with gcc and run: never an outcome that the translation calls impossible."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.bmc.options import Encoding
from tests.bmc.c.random_programs import Sequential, Threaded, compiled, outcomes, reachable, run

pytestmark = [pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc"), pytest.mark.slow]
SEEDS = st.integers(0, 1 << 32)


@settings(max_examples=10, deadline=None)
@given(SEEDS)
def test_a_sequential_program_has_the_result_of_gcc(seed: int) -> None:
    program = Sequential(seed)
    source = program.source()
    with TemporaryDirectory() as folder:
        assert outcomes(source, Path(folder), program.watched) == {run(compiled(source, Path(folder)), 0)}


@settings(max_examples=10, deadline=None)
@given(SEEDS)
def test_a_run_of_a_threaded_program_has_a_possible_outcome(seed: int) -> None:
    program = Threaded(seed)
    source = program.source()
    with TemporaryDirectory() as folder:
        possible = outcomes(source, Path(folder), program.watched)
        binary = compiled(source, Path(folder))
        for n in range(5):
            assert run(binary, n) in possible


@pytest.mark.parametrize("encoding", ["explicit", "clock", "steps"])
@settings(max_examples=3, deadline=None)
@given(SEEDS)
def test_enumeration_and_solvers_agree_about_outcomes(encoding: Encoding, seed: int) -> None:
    program = Threaded(seed)
    source = program.source()
    with TemporaryDirectory() as folder:
        possible = outcomes(source, Path(folder), program.watched)
        outcome = run(compiled(source, Path(folder)), seed)
        assert reachable(source, Path(folder), program.watched, outcome, encoding) is not False
        wrong = (outcome[0] ^ 1, *outcome[1:])
        if wrong not in possible:
            assert reachable(source, Path(folder), program.watched, wrong, encoding) is not True
