"""The examples in docstrings run. A module is imported when its test runs: collecting all of them costs seconds."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
FILES = [file for file in sorted(SOURCE.rglob("*.py")) if ">>>" in file.read_text(encoding="utf-8")]


def name(file: Path) -> str:
    return ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("module", [name(file) for file in FILES])
def test_the_examples_of_a_module_run(module: str, workplace: Path) -> None:
    (workplace / "examples").symlink_to(ROOT / "examples")
    outcome = doctest.testmod(importlib.import_module(module))
    assert outcome.attempted
    assert not outcome.failed


def test_there_are_examples() -> None:
    assert len(FILES) > 50
