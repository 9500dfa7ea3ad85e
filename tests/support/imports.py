"""Modules that a test imports again."""

from __future__ import annotations

import sys
from pathlib import Path


def forget(file: Path) -> None:
    """As in a new process: the file will be imported again."""
    for name, module in list(sys.modules.items()):
        if getattr(module, "__plait_file__", None) == file:
            del sys.modules[name]
