"""Preprocessed programs: with the system's own headers expanded, the verdicts are the same."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from plait.bmc import check
from plait.bmc.c.load import load_c
from tests.bmc.c.expectations import PROGRAMS, options

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


@pytest.mark.slow
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_preprocessed_program_has_the_same_verdict(path: Path, tmp_path: Path) -> None:
    expanded = tmp_path / f"{path.stem}.i"
    subprocess.run(["gcc", "-E", "-D_GNU_SOURCE", str(path), "-o", str(expanded)], check=True)
    found = []
    for file in (path, expanded):
        verdict = check(load_c(file, **options(path)), encoding="explicit", timeout=120)
        found.append({p.name: p.status for p in verdict.properties})
    assert found[0] == found[1]
