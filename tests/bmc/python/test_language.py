"""Each construct of Python: a program whose assertions hold, and a mutant that violates a known check."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bmc.python import language_cases, library_cases
from tests.bmc.python.programs import load_text, violations

CASES = language_cases.CASES | library_cases.CASES


@pytest.mark.parametrize("name", CASES)
def test_holds(name: str, tmp_path: Path) -> None:
    assert violations(load_text(tmp_path, CASES[name].text)) == set()


@pytest.mark.parametrize("name", CASES)
def test_mutant_is_violated(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    assert case.old in case.text
    assert case.check in violations(load_text(tmp_path, case.text.replace(case.old, case.new)))
