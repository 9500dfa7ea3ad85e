"""How the tests are laid out: what several files need is in a module of its own, where it can be found."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

TESTS = Path(__file__).parent
FILES = sorted(TESTS.rglob("*.py"))


@functools.cache
def imported(file: Path) -> list[str]:
    """The modules of the tests that a file imports, with the names that it takes from them."""
    found: list[str] = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return [name for name in found if name.split(".")[0] == "tests"]


def test_no_file_imports_a_test_file() -> None:
    """A test file can then be moved, split or run alone."""
    for file in FILES:
        tests = [name for name in imported(file) if any(part.startswith("test_") for part in name.split("."))]
        assert tests == [], file


def test_folders_share_through_support_and_the_oracle() -> None:
    for file in FILES:
        shared = {"support", "oracle", file.relative_to(TESTS).parts[0]}
        assert [name for name in imported(file) if name.split(".")[1] not in shared] == [], file
