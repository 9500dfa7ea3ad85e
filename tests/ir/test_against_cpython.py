"""Random functions give the same results in the virtual machine as in CPython (`python -m tests.ir.survey` runs more)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.ir.against_cpython import survey
from tests.ir.random_library import LibraryWriter

pytestmark = pytest.mark.filterwarnings("ignore::SyntaxWarning")
EACH = 250


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_random_functions_agree(seed: int, tmp_path: Path) -> None:
    found = survey(seed, EACH, tmp_path, calls=2)
    assert not found.differences, found.differences[0]
    assert found.calls > 0.9 * 2 * EACH, f"functions that are not lowered: {found.refused}"
    assert found.answered > 0.7 * found.calls
    assert sum(found.bails.values()) < 0.06 * found.calls, f"bails are the exception: {found.bails}"


@pytest.mark.parametrize("seed", range(2))
def test_random_functions_on_values_of_the_library_agree(seed: int, tmp_path: Path) -> None:
    found = survey(seed, EACH, tmp_path, calls=2, writer=LibraryWriter)
    assert not found.differences, found.differences[0]
    assert found.calls > 0.9 * 2 * EACH, f"functions that are not lowered: {found.refused}"
    assert found.answered > 0.65 * found.calls
    assert sum(found.bails.values()) < 0.06 * found.calls, f"bails are the exception: {found.bails}"


def test_the_comparison_notices_a_wrong_operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ast

    from plait.ir import expressions

    monkeypatch.setitem(expressions.BINARY, ast.FloorDiv, "%")
    assert Counter(bool(d) for d in survey(0, 100, tmp_path, calls=1).differences)[True]
