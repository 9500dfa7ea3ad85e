"""Places in the source of a program, for errors, traces and reports."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from plait.kernel.errors import ModelError


class Place(NamedTuple):
    """A place in the source: line and column, from 1, and the text of a statement."""

    line: int
    column: int
    text: str = ""
    file: str = ""
    """The file, if it is another one than the program's."""


class Source(msgspec.Struct, frozen=True):
    """The source text of a program."""

    name: str
    text: str
    first_line: int = 1
    """The line number of the first line of the text in its file."""

    def error(self, place: Place, message: str, hint: str | None = None) -> ModelError:
        """An error that shows the line and points at the column."""
        lines = self.text.splitlines()
        at = place.line - self.first_line
        shown = lines[at].expandtabs(1) if 0 <= at < len(lines) else ""
        pointer = f"\n    {shown}\n    {' ' * (place.column - 1)}^" if shown else ""
        return ModelError(f"{self.name}, line {place.line}, column {place.column}: {message}{pointer}", hint=hint)
