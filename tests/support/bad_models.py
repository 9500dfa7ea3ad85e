"""What the tests of bad models share: a process that does anything, and what an error must look like."""

from __future__ import annotations

import os
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import plait
from plait import (
    Message,
    ModelError,
    PlaitError,
    Process,
    System,
    UsageError,
    Verdict,
    action,
    check,
    field,
    on,
)

OURS = f"{Path(plait.__file__).parent}{os.sep}"
"""How the path of every file of the package begins. No message for a user has one, wherever the clone lives."""


class Note(Message):
    content: Any = None


class Other(Message):
    pass


class Sink(Process):
    """Takes everything."""

    @on(Note)
    def take(self, m: Note) -> None:
        pass


class Child(Process):
    age: int = 0


def node(act: Callable[[Any], Any], when: Any = lambda self: self.n < 3) -> type[Process]:
    """A process class with one action."""
    body = {
        "__annotations__": {"n": int, "a": object, "b": object, "names": set, "frozen": frozenset, "table": dict},
        "n": 0,
        "a": None,
        "b": None,
        "names": field(default_factory=lambda: {"red", "green", "blue"}),
        "frozen": frozenset({"red", "green", "blue"}),
        "table": field(default_factory=dict),
        "act": action(act, when=when),
    }
    return types.new_class("Node", (Process,), {}, lambda namespace: namespace.update(body))


def run(act: Callable[[Any], Any], when: Any = lambda self: self.n < 3, workers: int = 1, **system: Any) -> Verdict:
    return check(System([node(act, when)(), Sink()], **system), workers=workers)


def explained(call: Callable[[], Any], *words: str) -> PlaitError:
    """The error that a call raises: it has these words, a hint, and nothing of ours in it."""
    with pytest.raises((ModelError, UsageError)) as caught:
        call()
    error = caught.value
    for word in words:
        assert word in error.message
    assert error.hint
    assert str(error) == f"{error.message}\nhint: {error.hint}"
    assert "Traceback" not in str(error)
    assert OURS not in str(error)
    # What is shown below it is the user's own exception, and never the error itself.
    assert error.__cause__ is None or not isinstance(error.__cause__, PlaitError)
    return error
