"""Where in a Distal text an expression of the translated module comes from, so that errors at run time name line and column.

The text is translated twice: as it is executed, and with each expression marked with its place. The two syntax trees
have the same shape but for the marks, so walking both gives the place of each expression.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from plait.rounds.distal.translation import translate

Place = tuple[int, int]
"""A line and a column."""


class Positions:
    """The places of the expressions of one module."""

    def __init__(self, source: str, file: str, name: str) -> None:
        self._given = source, file, name
        self._found: dict[tuple[int, int, int, int], Place] | None = None

    def __call__(self, line: int, column: int, end_line: int, end_column: int) -> Place | None:
        """The place in the text of a range of the module, as a traceback has it (lines from 1, columns from 0)."""
        if self._found is None:  # only errors need it
            plain, marked = (translate(*self._given, places=places)[0] for places in (False, True))
            self._found = dict(_walk(ast.parse(plain), ast.parse(marked), None))
        return self._found.get((line, column, end_line, end_column))


def _walk(plain: ast.AST, marked: ast.AST, place: Place | None) -> Iterator[tuple[tuple[int, int, int, int], Place]]:
    """Each expression of the module in the text, with its place: its own mark, or that of the expression around it."""
    while isinstance(marked, ast.Call) and isinstance(marked.func, ast.Name) and marked.func.id == "_at":
        line, column, marked = marked.args
        assert isinstance(line, ast.Constant)
        assert isinstance(column, ast.Constant)
        place = (line.value, column.value)  # type: ignore[assignment]
    if isinstance(plain, ast.expr) and place is not None:
        assert plain.end_lineno is not None
        assert plain.end_col_offset is not None
        yield (plain.lineno, plain.col_offset, plain.end_lineno, plain.end_col_offset), place
    if isinstance(plain, ast.stmt):
        place = None
    for one, other in zip(ast.iter_child_nodes(plain), ast.iter_child_nodes(marked), strict=False):
        yield from _walk(one, other, place)
