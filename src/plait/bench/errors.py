"""Reasons why a benchmark, or one run of it, has no result. `Table.measuring` notes them in the table."""

from __future__ import annotations


class DifferenceError(Exception):
    """Two checkers disagree, or a count differs from the known one. Then the other figures have no meaning."""


class SkippedError(Exception):
    """The benchmark cannot run here; the message says why."""


class MissingError(Exception):
    """A program is not installed; the message says which one, the hint how to install it."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class FailedError(Exception):
    """A command failed; the message has the end of its output."""


class StoppedError(FailedError):
    """A command was stopped after its timeout."""
