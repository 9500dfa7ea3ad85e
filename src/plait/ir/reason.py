"""Why a function is not lowered: the construct, and where it is."""

from __future__ import annotations

import os
from typing import NamedTuple


class Reason(NamedTuple):
    """A construct that has no place in the intermediate representation, with its file and line.

    >>> str(Reason("try statement", "/models/raft.py", 120))
    'try statement, raft.py:120'
    """

    construct: str
    file: str
    line: int

    def __str__(self) -> str:
        if not self.file:
            return self.construct
        return f"{self.construct}, {os.path.basename(self.file)}:{self.line}"  # noqa: PTH119


class NotLoweredError(Exception):
    """A function cannot be lowered. CPython runs it."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(str(reason))
        self.reason = reason
