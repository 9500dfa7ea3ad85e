"""The functions and methods that lowering lets through are those that the virtual machine knows."""

from __future__ import annotations

import re
from pathlib import Path

from plait.ir.builtins import METHODS, NAMES

LIBRARY = Path(__file__).parents[2] / "rust" / "src" / "vm" / "library" / "mod.rs"


def test_lowering_and_the_machine_know_the_same_names() -> None:
    functions, methods = re.findall(r"names! \{(.*?)\n\}", LIBRARY.read_text(encoding="utf-8"), re.S)
    assert set(re.findall(r'"([^"]+)"', functions)) == set(NAMES.values())
    assert set(re.findall(r'"([^"]+)"', methods)) == METHODS
