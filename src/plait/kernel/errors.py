"""Errors in the user's input: a message that says what is wrong, and a hint that says what to do next.

Every error that Plait raises on purpose is a `PlaitError`. The command line prints the message and the hint, and exits
with code 2. Any other exception is a bug in Plait (exit code 4).

An error that concerns an argument names it with `Argument`, never with a command-line flag. `str(error)` shows the
argument as Python code (`search='dfs'`). The command line shows the same error with its flags (`--search dfs`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

_ABSENT: Any = object()


@dataclasses.dataclass(frozen=True)
class Argument:
    """An argument of a call, as errors name it. With `parameter`, it is a parameter of the user's model.

    >>> str(Argument("search", "dfs")), str(Argument("memory")), str(Argument("acceptors", 3, parameter=True))
    ("search='dfs'", 'memory', 'acceptors=3')
    """

    name: str
    value: Any = _ABSENT
    parameter: bool = False

    @property
    def given(self) -> bool:
        """Whether it has a value."""
        return self.value is not _ABSENT

    def __str__(self) -> str:
        if not self.given:
            return self.name
        return f"{self.name}={self.value}" if self.parameter else f"{self.name}={self.value!r}"


Text = str | Sequence[str | Argument]
"""A message: a string, or a sequence of strings and arguments."""


class PlaitError(Exception):
    """Base class of all errors in the user's input. `hint` is optional. `placed`: the message already names the place.

    >>> error = UsageError((Argument("workers", 0), ": too few"), hint=("leave ", Argument("workers"), " out"))
    >>> error.message, error.hint
    ('workers=0: too few', 'leave workers out')
    >>> error.spelled(lambda argument: f"--{argument.name}")
    ('--workers: too few', 'leave --workers out')
    """

    def __init__(self, message: Text, *, hint: Text | None = None, placed: bool = False) -> None:
        self._text = message, hint
        self.message, self.hint = self.spelled(str)
        self.placed = placed
        super().__init__(self.message)

    def spelled(self, spell: Callable[[Argument], str]) -> tuple[str, str | None]:
        """The message and the hint, with arguments spelled by a function."""

        def written(text: Text) -> str:
            if isinstance(text, str):
                return text
            return "".join(spell(piece) if isinstance(piece, Argument) else piece for piece in text)

        message, hint = self._text
        return written(message), None if hint is None else written(hint)

    def at(self, place: str, suffix: str = "", *, kind: type[PlaitError] | None = None) -> PlaitError:
        """The same error with a place in front of its message. With `kind`, it becomes an error of this class."""
        message, hint = self._text
        pieces = (message,) if isinstance(message, str) else message
        return (kind or type(self))((f"{place}: ", *pieces, suffix), hint=hint)

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


class ModelError(PlaitError):
    """The model is wrong. The message names the class, the handler or the field."""


class UsageError(PlaitError):
    """The command or the call is wrong: an unknown target, a parameter of the wrong type, an unreadable file."""


class TraceError(PlaitError):
    """A saved trace cannot be read, or the model does not reproduce it any more."""


class MissingPackageError(PlaitError, ModuleNotFoundError):
    """An optional package is not installed. The hint is the command that installs it."""
