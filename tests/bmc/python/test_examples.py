"""The verdicts of the examples in examples/bmc/threads: each has a right and a wrong twin."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from plait.bmc import check
from plait.bmc.load import load
from tests.bmc.python.programs import violations

EXAMPLES = Path(__file__).parents[3] / "examples" / "bmc" / "threads"
VIOLATED: list[tuple[str, str, set[str]]] = [
    ("lost_update", "main", set()),
    ("lost_update", "main_wrong", {"assertions"}),
    ("bank", "main", set()),
    ("bank", "main_wrong", {"deadlock"}),
    ("bounded_buffer", "main", set()),
    ("bounded_buffer", "main_if", {"bounds"}),
    ("bounded_buffer", "main_lost", {"deadlock"}),
    ("double_checked", "main", set()),
    ("double_checked", "main_wrong", {"assertions"}),
    ("read_copy_update", "main", set()),
    ("read_copy_update", "main_wrong", {"assertions"}),
    ("ticket_lock", "main", set()),
    ("ticket_lock", "main_wrong", {"assertions"}),
    ("producer_consumer", "main", set()),
    ("producer_consumer", "main_wrong", {"deadlock"}),
    ("async_counter", "main", set()),
    ("async_counter", "main_wrong", {"assertions"}),
]
"""An example, its function, and the checks that are violated."""


@pytest.mark.parametrize(("name", "function", "violated"), VIOLATED)
def test_verdict(name: str, function: str, violated: set[str]) -> None:
    assert violations(load(f"{EXAMPLES / name}.py:{function}")) == violated


@pytest.mark.parametrize("name", sorted({name for name, _, _ in VIOLATED}))
def test_python_runs_it(name: str) -> None:
    """The right twin runs in CPython, and its assertions hold there."""
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")


@pytest.mark.parametrize(
    ("name", "function", "racy"),
    [
        ("lost_update", "main", False),
        ("lost_update", "main_wrong", True),
        ("bank", "main", False),
        ("double_checked", "main", True),
        ("producer_consumer", "main", False),
        ("async_counter", "main_wrong", False),
    ],
)
def test_races(name: str, function: str, racy: bool) -> None:
    """Plain accesses race; operations of queues do not, nor do tasks, which switch only at await."""
    verdict = check(load(f"{EXAMPLES / name}.py:{function}"), encoding="explicit", races=True)
    assert (next(p for p in verdict.properties if p.name == "races").status == "violated") is racy
