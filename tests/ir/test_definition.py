"""The source of a function is the one that it was compiled from, or there is none."""

from __future__ import annotations

import importlib.util
import types
from pathlib import Path

import pytest

from plait.ir.definition import definition

TEXT = """
def around(other, one=1):
    def inside(x):
        if x in {"a", "b"}:
            return [y + 1 for y in other]
        return x * 2.0
    return inside

f = around([1])
"""


def loaded(file: Path) -> types.FunctionType:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = module.f
    assert isinstance(function, types.FunctionType)
    return function


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("", "", True),
        ("2.0", "3.0", False),
        ("2.0", "2", False),
        ("y + 1", "y + 2", False),
        ("y + 1", "y - 1", False),
        ('"b"', '"c"', False),
        ("in other", "in one", False),
        ("f = around([1])", "f = around([2])", True),
    ],
)
def test_a_file_that_was_edited_after_its_import(tmp_path: Path, before: str, after: str, found: bool) -> None:
    """Constants are not in the code itself, and a list of them that has changed must be noticed, too."""
    file = tmp_path / "model.py"
    file.write_text(TEXT)
    function = loaded(file)
    assert definition(function) is not None
    edited = TEXT.replace(before, after) if before else TEXT
    file.write_text(edited + "# edited\n")
    assert (definition(function) is not None) == found
