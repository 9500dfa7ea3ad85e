"""The verdicts of the examples in examples/bmc/threads: each has a right and a wrong twin."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.bmc import check
from plait.bmc.python.load import load_python

EXAMPLES = Path(__file__).parents[3] / "examples" / "bmc" / "threads"
VIOLATED: list[tuple[str, str, set[str]]] = [
    ("lost_update", "main", set()),
    ("lost_update", "main_wrong", {"assertions"}),
    ("bank", "main", set()),
    ("bank", "main_wrong", {"deadlock"}),
]
"""An example, its function, and the checks that are violated."""


@pytest.mark.parametrize(("name", "function", "violated"), VIOLATED)
def test_verdict(name: str, function: str, violated: set[str]) -> None:
    verdict = check(load_python(EXAMPLES / f"{name}.py", function), encoding="explicit")
    assert {p.name for p in verdict.properties if p.status == "violated"} == violated
    assert {p.status for p in verdict.properties} <= {"violated", "holds"}
