"""Readers of model files that are not Python. The command line registers Distal when it starts, before any model is loaded.

This module imports nothing of Plait, because every command imports it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

READERS: dict[str, Callable[[Path], ModuleType]] = {}
"""The readers, by suffix. A reader turns a file into a module."""


def reads(suffix: str, reader: Callable[[Path], ModuleType]) -> None:
    """Accept files with this suffix as targets. The reader turns such a file into a module."""
    READERS[suffix] = reader
