"""A table for a terminal and as Markdown: lines of cells under headings, in sections, with remarks below."""

from __future__ import annotations

import io
from typing import NamedTuple

_WIDE = 110
"""So many characters have room for every column that is not to be folded."""


class Line(NamedTuple):
    """One line; `bad` ones are red on a terminal."""

    cells: list[str]
    bad: bool = False


class Grid(NamedTuple):
    """What stands where."""

    title: str
    about: str
    columns: list[str]
    sections: dict[str, list[Line]]
    numbers: tuple[str, ...] = ()
    """Columns of numbers, which are never folded."""
    folded: tuple[str, ...] = ()
    """Columns that are folded first."""
    remarks: tuple[str, ...] = ()


def grid_text(grid: Grid, *, width: int, color: bool) -> str:
    """As a terminal shows it."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=None, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in grid.columns:
        number = name in grid.numbers
        # On a narrow terminal words are folded: nothing is cut off.
        whole = number or (width >= _WIDE and name not in grid.folded)
        table.add_column(name, justify="right" if number else "left", no_wrap=whole, overflow="fold")
    for place, (section, lines) in enumerate(grid.sections.items()):
        if place:
            table.add_section()
        table.add_row(Text(section, style="bold"))
        for line in lines:
            first, *others = line.cells
            table.add_row(*(Text(cell) for cell in (f"  {first}", *others)), style="red" if line.bad else None)
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=color, no_color=not color, highlight=False)
    console.print(Text(grid.title, style="bold"))
    console.print(grid.about, markup=False)
    console.print(table)
    for remark in grid.remarks:
        console.print(remark, markup=False)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def grid_markdown(grid: Grid) -> str:
    """As Markdown; the sections are the first column."""
    lines = [f"## {grid.title}", "", f"{grid.about}.", "", f"| setting | {' | '.join(grid.columns)} |"]
    lines.append("|---" + "".join("|--:" if name in grid.numbers else "|---" for name in grid.columns) + "|")
    for section, under in grid.sections.items():
        lines += [f"| {' | '.join(map(_plain, (section, *line.cells)))} |" for line in under]
    for remark in grid.remarks:
        lines += ["", remark.replace("*", r"\*")]
    return "\n".join(lines) + "\n"


def _plain(cell: str) -> str:
    return cell.replace("|", r"\|").replace("*", r"\*")
