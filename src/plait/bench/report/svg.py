"""Draws a table: horizontal bars on a logarithmic scale, with marks for published values."""

from __future__ import annotations

import math

from plait.bench.report.cells import measured, published
from plait.bench.report.drawing import BAR, LINE, MARGIN, SIZE, frame, label
from plait.bench.report.stacked import stacked_svg
from plait.bench.table import Cell, Row, Table
from plait.report.markup import escape, text_width

_AXIS, _LABELS = 480, 210
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_LEAST = -2
"""The power of ten at which the axis begins, if there are values below one."""


def table_svg(table: Table) -> str:
    """One column as bars. A diamond is the published value, hollow if the published run was stopped."""
    assert table.plot is not None
    if table.plot.stacked:
        return stacked_svg(table)
    column = table.plot.column
    cells = [row.cells[column] for row in table.rows if column in row.cells]
    values = [v for cell in cells for v in (cell.value, cell.published) if isinstance(v, int | float) and v > 0]
    low = max(_LEAST, min(0, math.floor(math.log10(min(values, default=1)))))
    high = max(low + 1, math.ceil(math.log10(max(values, default=10))))
    left = MARGIN + _LABELS
    full = left + _AXIS + 130

    def x(value: float) -> float:
        return left + _AXIS * (math.log10(max(value, 10.0**low)) - low) / (high - low)

    body: list[str] = []
    y = 62.0
    for section, rows in table.settings.items():
        drawn = [row for row in rows if column in row.cells]
        if not drawn:
            continue
        y += 8
        body.append(label(MARGIN, y + BAR, section, "setting"))
        y += LINE
        for row in drawn:
            body.append(label(MARGIN + 12, y + BAR - 1, row.variant))
            cell = row.cells[column]
            value = ", ".join(filter(None, (measured(cell), measured(row.cells.get(table.plot.also)))))
            end = float(left)
            if isinstance(cell.value, int | float):
                end = x(cell.value)
                body.append(
                    f'<rect class="{_kind(row)}" x="{left}" y="{y:g}" width="{max(end - left, 1):.1f}" height="{BAR}">'
                    f"<title>{escape(_about(table, row))}</title></rect>"
                )
            if isinstance(cell.published, int | float):
                at = x(cell.published)
                body.append(_diamond(at, y + BAR / 2, cell))
                # Place the number where it covers neither the bar nor the mark.
                end = at + 4 if end - 7 <= at <= end + text_width(value, SIZE) + 14 else end
            body.append(label(end + 5, y + BAR - 1, value))
            y += LINE
    axis = []
    for decade in range(low, high + 1):
        at = x(10.0**decade)
        axis.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="58" y2="{y + 4:g}"/>')
        axis.append(
            label(at, 52, f"{10.0**decade:,g}" if decade < 5 else f"10{str(decade).translate(_RAISED)}", "tick")
        )
    body = [*axis, *body]
    return frame(table.title, _legend(table, cells), width=full, height=y + MARGIN, style=_STYLE, body=body)


def _legend(table: Table, cells: list[Cell]) -> str:
    assert table.plot is not None
    legend = f"{table.plot.legend}, logarithmic"
    if any(isinstance(cell.published, int | float) for cell in cells):
        legend += "; diamonds: published, hollow where that run was stopped"
    return legend + ("; pale: stopped at a limit" if any(row.limit for row in table.rows) else "")


def _kind(row: Row) -> str:
    return "differs" if row.differs else "limit" if row.limit else "bar"


def _about(table: Table, row: Row) -> str:
    """All measured values, for the tooltip."""
    cells = {column.heading or column.name: row.cells.get(column.name) for column in table.columns if column.shown}
    parts = [f"{name} {text}" for name, cell in cells.items() if (text := measured(cell))]
    return f"{row.setting}, {row.variant}: {', '.join(parts)}"


_STYLE = (
    ".bar{fill:#3b76af}.limit{fill:#b5cde3}.differs{fill:#c0392b}"
    ".mark{fill:#e08214;stroke:#7f3b08}.hollow{fill:#fff;stroke:#7f3b08}"
)


def _diamond(x: float, y: float, cell: Cell) -> str:
    kind = "hollow" if cell.published_at_least else "mark"
    title = f"<title>published: {escape(published(cell))}</title>"
    return f'<path class="{kind}" d="M{x:.1f} {y - 5:g}l4 5l-4 5l-4 -5z">{title}</path>'
