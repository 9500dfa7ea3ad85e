"""Pauses the collector of Python's garbage while a long log is read: it would look at all events again and again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """No collection inside. What is made there has no cycles."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


@contextmanager
def frozen() -> Iterator[None]:
    """Collections inside look at new objects only, not at those of the log."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
