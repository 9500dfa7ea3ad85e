"""Draws a table of shares: horizontal bars of several pieces on a scale from 0 to 100 %, with intervals."""

from __future__ import annotations

from plait.bench.report.cells import number
from plait.bench.report.drawing import BAR, LINE, MARGIN, SIZE, frame, label
from plait.bench.table import Row, Table
from plait.report.markup import escape, text_width

_AXIS, _LABELS = 500, 110
_COLORS = ("#8c2d04", "#cc4c02", "#fe9929", "#fed98e", "#b5cde3", "#3b76af")


def stacked_svg(table: Table) -> str:
    """One bar for each row: its pieces, the interval of the value, and the value after it."""
    plot = table.plot
    assert plot is not None
    left = MARGIN + _LABELS
    full = left + _AXIS + 130
    body: list[str] = []
    y = 78.0
    for section, rows in table.settings.items():
        y += 8
        body.append(label(MARGIN, y + BAR, section, "setting"))
        y += LINE
        for row in rows:
            body.append(label(MARGIN + 12, y + BAR - 1, row.variant))
            body += _pieces(row, plot.stacked, left, y)
            if plot.interval is not None:
                body.append(_whisker(row, plot.interval, left, y + BAR / 2))
            value = row.value(plot.column)
            if isinstance(value, int | float):
                body.append(label(left + _AXIS + 8, y + BAR - 1, number(value, "share")))
            y += LINE
    axis = []
    for tenth in range(0, 11, 2):
        at = left + _AXIS * tenth / 10
        axis.append(f'<line class="grid" x1="{at:g}" x2="{at:g}" y1="74" y2="{y + 4:g}"/>')
        axis.append(label(at, 68, f"{tenth * 10} %", "tick"))
    body = [*_key(table, plot.stacked), *axis, *body]
    return frame(table.title, plot.legend, width=full, height=y + MARGIN, style=_STYLE, body=body)


def _key(table: Table, columns: list[str]) -> list[str]:
    """A coloured square with the heading of each column."""
    headings = {column.name: column.heading or column.name for column in table.columns}
    found, x = [], float(MARGIN)
    for name, color in zip(columns, _COLORS, strict=False):
        found.append(f'<rect x="{x:.1f}" y="41" width="10" height="10" fill="{color}"/>')
        found.append(label(x + 14, 50, headings[name]))
        x += 30 + text_width(headings[name], SIZE)
    return found


def _pieces(row: Row, columns: list[str], left: float, y: float) -> list[str]:
    found, at = [], left
    for name, color in zip(columns, _COLORS, strict=False):
        value = row.value(name)
        if not isinstance(value, int | float) or value <= 0:
            continue
        title = f"{row.setting}, {row.variant}: {name} {number(value, 'share')}"
        found.append(
            f'<rect x="{at:.1f}" y="{y:g}" width="{_AXIS * value:.1f}" height="{BAR}" fill="{color}">'
            f"<title>{escape(title)}</title></rect>"
        )
        at += _AXIS * value
    return found


def _whisker(row: Row, interval: tuple[str, str], left: float, y: float) -> str:
    low, high = (row.value(name) for name in interval)
    if not isinstance(low, int | float) or not isinstance(high, int | float):
        return ""
    ends = [left + _AXIS * value for value in (low, high)]
    path = f"M{ends[0]:.1f} {y:g}H{ends[1]:.1f}" + "".join(f"M{x:.1f} {y - 4:g}v8" for x in ends)
    # White below black: visible on all colours.
    return f'<path class="halo" d="{path}"/><path class="whisker" d="{path}"/>'


_STYLE = ".halo{stroke:#fff;stroke-width:3}.whisker{stroke:#000}"
