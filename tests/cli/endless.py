"""The command in a process of its own, and a model whose search does not end."""

from __future__ import annotations

import sys

PLAIT = [sys.executable, "-m", "plait.cli.main"]
ENDLESS = """
from pathlib import Path

from plait import Process, System, action, always

class Counter(Process):
    number: int = 0
    other: int = 0

    @action
    def tick(self):
        self.number += 1

    @action
    def tock(self):
        self.other += 1
        if self.other > 3:
            Path("running").touch()

@always
def positive(s):
    return all(c.number >= 0 for c in s[Counter])

endless = System([Counter(), Counter()], properties=[positive])
"""
