"""Prints a table for a terminal. On a narrow terminal, columns of words are folded; numbers never are."""

from __future__ import annotations

import textwrap
from itertools import zip_longest

from plait.bench.report.cells import Grid, grid
from plait.bench.table import Table

_BOLD, _RED, _PLAIN = "\x1b[1m", "\x1b[31m", "\x1b[0m"
_LEAST = 8
"""A folded column of words is at least this wide."""
_GAP = "  "


def table_text(table: Table, *, width: int, color: bool) -> str:
    """The table as a terminal shows it."""
    laid = grid(table)
    lines = [_styled(table.title, _BOLD, color), *_wrapped(table.conditions, width)]
    if table.rows:
        widths = _widths(laid, width)
        head = _row(laid.headings, laid.numbers, widths)
        lines += [
            "",
            *(_styled(line, _BOLD, color) for line in head),
            "─" * (sum(widths) + len(_GAP) * len(widths[1:])),
        ]
        for place, (section, rows) in enumerate(laid.sections.items()):
            lines += [""] * (place > 0) + [_styled(line, _BOLD, color) for line in _wrapped(section, width)]
            for row in rows:
                first, *others = row.cells
                texts = _row([f"  {first}", *others], laid.numbers, widths)
                lines += [_styled(line, _RED, color and row.bad) for line in texts]
        lines.append("")
    for remark in laid.remarks:
        lines += _wrapped(remark, width)
    parts = [table_text(part, width=width, color=color) for part in table.parts]
    return "\n".join(["\n".join(lines) + "\n", *parts])


def _styled(line: str, style: str, color: bool) -> str:
    return f"{style}{line}{_PLAIN}" if color and line else line


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(width, _LEAST), break_on_hyphens=False)


def _widths(laid: Grid, width: int) -> list[int]:
    """The width of each column: its longest text, or less for words if the terminal is narrow."""
    cells = [line.cells for lines in laid.sections.values() for line in lines]
    columns = list(zip(laid.headings, *cells, strict=True))
    widths = [max(map(len, column)) for column in columns]
    widths[0] = max(len(laid.headings[0]), *(len(text) + 2 for text in columns[0][1:]))
    while sum(widths) + len(_GAP) * (len(widths) - 1) > width:
        words = [at for at, number in enumerate(laid.numbers) if not number and widths[at] > _LEAST]
        foldable = [at for at in words if at] or words  # the first column names the row: it is folded last
        if not foldable:
            break
        widest = max(foldable, key=lambda at: widths[at])
        widths[widest] -= 1
    return widths


def _row(cells: list[str], numbers: list[bool], widths: list[int]) -> list[str]:
    """The lines of one row."""
    folded = []
    for cell, width in zip(cells, widths, strict=True):
        indent = " " * (len(cell) - len(cell.lstrip()))
        folded.append(textwrap.wrap(cell, width, subsequent_indent=indent, break_on_hyphens=False) or [""])
    lines = []
    for texts in zip_longest(*folded, fillvalue=""):
        placed = zip(texts, numbers, widths, strict=True)
        lines.append(
            _GAP.join(text.rjust(size) if number else text.ljust(size) for text, number, size in placed).rstrip()
        )
    return lines
