"""Errors that tell the user what is wrong and what to do next.

Every error that Plait raises on purpose is a `PlaitError`: its message names what was given and what was expected, and its
hint says what to do. The command line prints the two lines and exits with code 2; any other exception is a bug in Plait
(exit code 4).

An error that concerns an argument names it with `Argument`, never with a command-line flag. `str(error)` shows the argument
as Python code (`search='dfs'`). The command line shows the same error with its flags (`--search dfs`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

_ABSENT: Any = object()


@dataclasses.dataclass(frozen=True)
class Argument:
    """An argument of a call, as errors name it; with `parameter`, a parameter of the user's model.

    >>> str(Argument("search", "dfs")), str(Argument("memory")), str(Argument("acceptors", 3, parameter=True))
    ("search='dfs'", 'memory', 'acceptors=3')
    """

    name: str
    value: Any = _ABSENT
    parameter: bool = False

    @property
    def given(self) -> bool:
        """Whether it is named together with a value."""
        return self.value is not _ABSENT

    def __str__(self) -> str:
        if not self.given:
            return self.name
        return f"{self.name}={self.value}" if self.parameter else f"{self.name}={self.value!r}"


Text = str | Sequence[str | Argument]
"""A message: plain text, or pieces of text with arguments between them."""


class PlaitError(Exception):
    """Base of all errors in the user's input, with an optional `hint:` line; `placed` if the message says where it is.

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
        """The message and the hint, with arguments written in another way."""

        def written(text: Text) -> str:
            if isinstance(text, str):
                return text
            return "".join(spell(piece) if isinstance(piece, Argument) else piece for piece in text)

        message, hint = self._text
        return written(message), None if hint is None else written(hint)

    def at(self, place: str, suffix: str = "", *, kind: type[PlaitError] | None = None) -> PlaitError:
        """The same error with the place in front of its message, as another kind of error if one is given."""
        message, hint = self._text
        pieces = (message,) if isinstance(message, str) else message
        return (kind or type(self))((f"{place}: ", *pieces, suffix), hint=hint)

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


class ModelError(PlaitError):
    """The model breaks a rule of the semantics: the message names the class, the handler or the field."""


class UsageError(PlaitError):
    """The command or call was wrong: an unknown target, a parameter of the wrong type, an unreadable file."""


class TraceError(PlaitError):
    """A saved trace cannot be read, or the model no longer reproduces it."""


class MissingPackageError(PlaitError, ModuleNotFoundError):
    """An optional package is not installed; the hint is the command that installs it."""
