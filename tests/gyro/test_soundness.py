"""A wrong "local" must be impossible: random applications are analysed, then executed on SQLite (see `oracle.py`)."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plait.gyro.analysis import analyze
from plait.kernel.operations import Classification
from tests.gyro.oracle import Application, violation
from tests.gyro.random_applications import applications


def classified(application: Application, folder: Path) -> Classification:
    file = folder / "application.sql"
    file.write_text(application.sql)
    return analyze(file, ids=application.ids, servers=2)  # type: ignore[arg-type]


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
)
@given(application=applications(), seed=st.integers(0, 2**32))
def test_local_operations_are_noticed_by_nobody_elsewhere(application: Application, seed: int, tmp_path: Path) -> None:
    found = classified(application, tmp_path)
    problem = violation(application, found, seed)
    assert problem is None, f"{problem}\n{application.sql}\n{found.operations}"
