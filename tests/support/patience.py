"""Waiting in tests: for a condition, and for far longer than the busiest machine needs."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 300.0
"""Seconds. What takes longer hangs. It costs nothing where all is well: every wait ends with what is waited for."""


def until(condition: Callable[[], bool], what: str) -> None:
    """Come back when a condition holds; `what` is said if it never does.

    >>> until(lambda: True, "the sun rises")
    """
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"this did not happen within {PATIENCE:g} s: {what}"
        time.sleep(0.02)


@contextmanager
def started(command: list[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A process that does not outlive the test, whatever becomes of the test."""
    with subprocess.Popen(command, text=True, **options) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
