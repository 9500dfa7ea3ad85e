"""Files of the user are imported from their source."""

from __future__ import annotations

import os
import py_compile
import sys
from pathlib import Path

import pytest

from plait.kernel.imports import import_file


def test_an_edit_within_the_same_second_is_seen(tmp_path: Path) -> None:
    """Python compares a compiled file with the second and the size of the source."""
    file = tmp_path / "edited.py"
    file.write_text("number = 1\n")
    py_compile.compile(str(file), doraise=True)
    times = file.stat().st_atime_ns, file.stat().st_mtime_ns
    file.write_text("number = 2\n")
    os.utime(file, ns=times)
    assert import_file("edited", file).number == 2


def test_a_package_imports_its_modules(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "__init__.py").write_text("from shop.prices import price\n")
    (folder / "prices.py").write_text("price = 3\n")
    assert import_file("shop", folder / "__init__.py", package=True).price == 3


def test_a_module_that_raises_leaves_what_was_there(tmp_path: Path) -> None:
    file = tmp_path / "string.py"
    file.write_text("1 / 0\n")
    before = sys.modules["string"]
    with pytest.raises(ZeroDivisionError):
        import_file("string", file)
    assert sys.modules["string"] is before
