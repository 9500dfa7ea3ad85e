"""Modules of the standard library that take long to import: a program that does not use them is checked without them."""

from __future__ import annotations

import sys
from typing import Any


class Absent:
    """What the name of a module stands for that nothing has imported: no value of the program is this class."""


class Loaded:
    """A module, if the program has imported it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        module = sys.modules.get(self._name)
        return Absent if module is None else getattr(module, name)


asyncio = Loaded("asyncio")
futures = Loaded("concurrent.futures")
logging = Loaded("logging")
