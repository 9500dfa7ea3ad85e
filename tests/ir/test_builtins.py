"""The functions and methods that lowering lets through are those that the virtual machine knows."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

from plait.ir.builtins import COLLECTIONS, LIBRARY_METHODS, METHODS, NAMES, library_class

LIBRARY = Path(__file__).parents[2] / "rust" / "src" / "vm" / "library" / "mod.rs"


def test_lowering_and_the_machine_know_the_same_names() -> None:
    functions, methods = re.findall(r"names! \{(.*?)\n\}", LIBRARY.read_text(encoding="utf-8"), re.S)
    assert set(re.findall(r'"([^"]+)"', functions)) == {*NAMES.values(), *COLLECTIONS.values(), library_class(Fraction)}
    assert set(re.findall(r'"([^"]+)"', methods)) == METHODS | LIBRARY_METHODS
