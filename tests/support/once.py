"""What takes long to make is made once, whichever worker needs it first."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder that all workers of a run share, with what `make` puts into it; others wait until that is complete.

    What `make` raises is raised in the worker that tried, and the next one tries again.
    """
    base = factory.getbasetemp()
    # Each worker of pytest-xdist has a folder of its own in that of the run.
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared" / name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        content, complete = folder / "content", folder / "complete"
        if not complete.exists():
            content.mkdir(exist_ok=True)
            make(content)
            complete.touch()
    return content
