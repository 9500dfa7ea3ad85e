"""A table for a terminal."""

from __future__ import annotations

import io

from plait.bench.report.cells import Grid, grid
from plait.bench.table import Table

_WIDE = 110
"""From this width on, columns of words are not folded, except for the shares that were removed."""
_WORDS = 6
"""A folded column of words is at least this wide."""


def table_text(table: Table, *, width: int, color: bool) -> str:
    """The table as a terminal shows it."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    laid = grid(table)
    drawn = RichTable(title=None, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading, number in zip(laid.headings, laid.numbers, strict=True):
        # On a narrow terminal words are folded: nothing is cut off.
        whole = number or (width >= _WIDE and heading != "removed (of)")
        drawn.add_column(heading, justify="right" if number else "left", no_wrap=whole, overflow="fold")
    for place, (section, lines) in enumerate(laid.sections.items()):
        if place:
            drawn.add_section()
        drawn.add_row(Text(section, style="bold"))
        for line in lines:
            first, *others = line.cells
            drawn.add_row(*(Text(cell) for cell in (f"  {first}", *others)), style="red" if line.bad else None)
    out = io.StringIO()
    wide = max(width, _least(laid))
    console = Console(file=out, width=wide, force_terminal=color, no_color=not color, highlight=False)
    console.print(Text(table.title, style="bold"))
    if table.conditions:
        console.print(table.conditions, markup=False)
    if table.rows:
        console.print(drawn)
    for remark in laid.remarks:
        console.print(remark, markup=False)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _least(laid: Grid) -> int:
    """The width below which numbers would be cut off."""
    total = 0
    for place, (heading, number) in enumerate(zip(laid.headings, laid.numbers, strict=True)):
        cells = [len(line.cells[place]) for lines in laid.sections.values() for line in lines]
        total += 1 + (max([len(heading), *cells]) if number else _WORDS)
    return total
