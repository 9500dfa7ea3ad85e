"""What goes wrong, said so that a user knows the next act.

Every error Plait raises on purpose is a `PlaitError`: it names what was given and what was expected, and its hint says
what to do. The command line prints the two lines and exits with code 2; anything else is a bug of ours (exit code 4).
"""

from __future__ import annotations


class PlaitError(Exception):
    """Base of all errors that are the input's fault, with an optional `hint:` line; `placed` if it says where they are."""

    def __init__(self, message: str, *, hint: str | None = None, placed: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.placed = placed

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
