"""Random programs: an outcome of CPython is possible for the checker too. `survey.py` compares more of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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
