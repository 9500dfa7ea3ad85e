"""What all tests share."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

pytest_plugins = ["pytester"]

COUNTER = '''
"""Counts to a limit."""

from plait import Process, System, action, always, reachable


class Counter(Process):
    """Counts."""

    limit: int
    number: int = 0

    @action(when=lambda self: self.number < self.limit)
    def tick(self):
        self.number += 1


def counter(limit: int = 3, most: int = 10) -> System:
    """A process that counts to a limit: limit + 1 states."""

    @always
    def small(s):
        """No number is above the most."""
        return all(c.number <= most for c in s[Counter])

    @reachable
    def end(s):
        """The limit is reached."""
        return any(c.number == limit for c in s[Counter])

    return System([Counter(limit=limit)], properties=[small, end])
'''


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty current folder; what is imported from it is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    path, modules = list(sys.path), set(sys.modules)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        file = getattr(sys.modules[name], "__file__", None)
        if file is not None and Path(file).is_relative_to(tmp_path):
            del sys.modules[name]


@pytest.fixture
def counter(workplace: Path) -> Path:
    """A model file with one parametrized model: it holds by default, and `most=1` breaks it in two steps."""
    file = workplace / "counter.py"
    file.write_text(COUNTER)
    return file


# CI draws the same examples each time, so that a red run means a change; everywhere else the search goes on.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
