"""Random programs: an outcome of CPython is possible for the checker too. `survey.py` compares more of them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plait.bmc.python.statements import Statements
from tests.bmc.python.survey import compare

_SETTINGS = settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.slow
@given(seed=st.integers(0, 10**6))
@_SETTINGS
def test_threads(tmp_path: Path, seed: int) -> None:
    compare(seed, tmp_path, schedules=8)


@pytest.mark.slow
@given(seed=st.integers(0, 10**6))
@_SETTINGS
def test_tasks(tmp_path: Path, seed: int) -> None:
    compare(seed, tmp_path, schedules=8, tasks=True)


@pytest.mark.slow
def test_a_wrong_translation_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If `s.x += 1` were one step, CPython would show an outcome that the checker calls impossible."""
    translate = Statements._augassign_statement

    def atomic(self: Statements, node: ast.AugAssign) -> None:
        self.code.enter()
        translate(self, node)
        self.code.leave()

    monkeypatch.setattr(Statements, "_augassign_statement", atomic)
    with pytest.raises(AssertionError, match="which the checker calls impossible"):
        compare(42, tmp_path)
