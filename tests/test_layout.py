"""How the tests are laid out: what several files need is in a module of its own, where it can be found."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
FILES = sorted(TESTS.rglob("*.py"))


def imported(file: Path) -> list[str]:
    """The modules of the tests that a file imports, with the names that it takes from them."""
    found: list[str] = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return [name for name in found if name.split(".")[0] == "tests"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(TESTS)))
def test_no_file_imports_a_test_file(file: Path) -> None:
    """A test file can then be moved, split or run alone."""
    assert [name for name in imported(file) if any(part.startswith("test_") for part in name.split("."))] == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(TESTS)))
def test_folders_share_through_support_and_the_oracle(file: Path) -> None:
    room = file.relative_to(TESTS).parts[0]
    shared = {"support", "oracle", room}
    assert [name for name in imported(file) if name.split(".")[1] not in shared] == []
