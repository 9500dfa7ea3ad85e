"""A wrong "local" must be impossible: random applications are analysed, then executed on SQLite (see `oracle.py`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.gyro.oracle import Application, violation
from tests.gyro.random_applications import applications, classified, double_keyed

QUIET = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=QUIET)
@given(application=applications(), seed=st.integers(0, 2**32))
def test_local_operations_have_no_effect_at_other_servers(application: Application, seed: int, tmp_path: Path) -> None:
    found = classified(application, tmp_path)
    problem = violation(application, found, seed)
    assert problem is None, f"{problem}\n{application.sql}\n{found.operations}"


@pytest.mark.slow
@settings(max_examples=12, deadline=None, suppress_health_check=QUIET)
@given(application=double_keyed(), seed=st.integers(0, 2**32))
def test_double_keys(application: Application, seed: int, tmp_path: Path) -> None:
    found = classified(application, tmp_path)
    problem = violation(application, found, seed, databases=4, most=6)
    assert problem is None, f"{problem}\n{application.sql}\n{found.operations}"


@pytest.mark.slow
def test_the_random_applications_have_something_to_be_wrong_about(tmp_path: Path) -> None:
    """Many of their transactions write and are local; some are local at times; some are global."""
    seen: dict[str, int] = {}

    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
    @given(application=st.one_of(applications(), double_keyed()))
    def survey(application: Application) -> None:
        for operation in classified(application, tmp_path).operations:
            if not operation.read_only:
                seen[operation.classed] = seen.get(operation.classed, 0) + 1

    survey()
    assert seen["local"] >= 10
    assert seen["global"] >= 10
    assert seen["local/global"] >= 1
