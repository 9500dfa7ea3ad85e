"""Tables of CPU seconds for a terminal, as Markdown, and as a drawing with the published values as marks."""

from __future__ import annotations

import io
import math

from plait.bench.table import Timing, TimingTable
from plait.report.markup import escape

_COLUMNS = ("way", "solving", "total", "work", "found", "thesis: solving", "thesis: total")
_SIZE, _LINE, _BAR, _MARGIN, _AXIS, _LABELS = 11, 17, 11, 14, 460, 220


def seconds_cell(value: float | None, *, limit: bool = False) -> str:
    """Seconds, more than that if a limit was hit.

    >>> seconds_cell(0.1234), seconds_cell(15979.298), seconds_cell(60, limit=True), seconds_cell(None)
    ('0.12', '15,979', '> 60.0', '')
    """
    if value is None:
        return ""
    shown = f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 1000 else f"{value:,.0f}"
    return f"{'> ' if limit else ''}{shown}"


def _cells(row: Timing) -> list[str]:
    found = f"{row.verdict}; published: {row.expected}" if row.differs else row.verdict
    return [
        row.way,
        seconds_cell(row.solving, limit=not row.decided),
        seconds_cell(row.total, limit=not row.decided),
        "" if row.work is None else f"{row.work / 1e6:,.1f}",
        found,
        seconds_cell(row.published_solving, limit=row.published_limit),
        seconds_cell(row.published_total, limit=row.published_limit),
    ]


def _endings(table: TimingTable) -> list[str]:
    return [*table.summary, *([] if table.complete else ["Interrupted: the rest is missing."])]


def timing_text(table: TimingTable, *, width: int, color: bool) -> str:
    """The table as a terminal shows it."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid(title=None, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in _COLUMNS:
        grid.add_column(name, justify="left" if name in ("way", "found") else "right", overflow="fold")
    for place, (setting, rows) in enumerate(table.settings.items()):
        if place:
            grid.add_section()
        grid.add_row(Text(setting, style="bold"))
        for row in rows:
            first, *others = _cells(row)
            grid.add_row(*(Text(c) for c in (f"  {first}", *others)), style="red" if row.differs else None)
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=color, no_color=not color, highlight=False)
    console.print(Text(table.title, style="bold"))
    console.print(table.conditions, markup=False)
    console.print(grid)
    for line in _endings(table):
        console.print(line, markup=False)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def timing_markdown(table: TimingTable) -> str:
    """The table as Markdown."""
    lines = [f"## {table.title}", "", f"{table.conditions}.", "", f"| setting | {' | '.join(_COLUMNS)} |"]
    lines.append("|---" + "".join("|---" if n in ("way", "found") else "|--:" for n in _COLUMNS) + "|")
    for setting, rows in table.settings.items():
        lines += [f"| {setting} | {' | '.join(_cells(row))} |" for row in rows]
    for line in _endings(table):
        lines += ["", line]
    return "\n".join(lines) + "\n"


def timing_svg(table: TimingTable) -> str:
    """Bars of the total seconds on a logarithmic scale from 10 ms; a diamond is the thesis' (hollow if it was stopped)."""
    most = max([1.0, *(r.total for r in table.rows), *(r.published_total or 0 for r in table.rows)])
    decades = math.ceil(math.log10(most)) + 2
    left = _MARGIN + _LABELS
    full = left + _AXIS + 90

    def x(seconds: float) -> float:
        return left + _AXIS * (math.log10(max(seconds, 0.01)) + 2) / decades

    body: list[str] = []
    y = 62.0
    for setting, rows in table.settings.items():
        y += 8
        body.append(_text(_MARGIN, y + _BAR, setting, "setting"))
        y += _LINE
        for row in rows:
            kind = "differs" if row.differs else "bar" if row.decided else "limit"
            shown = seconds_cell(row.total, limit=not row.decided)
            about = f"{setting}, {row.way}: {shown} s, {row.verdict}"
            body.append(_text(_MARGIN + 12, y + _BAR - 1, row.way))
            body.append(
                f'<rect class="{kind}" x="{left}" y="{y:g}" width="{max(x(row.total) - left, 1):.1f}" height="{_BAR}">'
                f"<title>{escape(about)}</title></rect>"
            )
            body.append(_text(x(row.total) + 5, y + _BAR - 1, shown))
            if row.published_total is not None:
                mark = "hollow" if row.published_limit else "mark"
                title = f"<title>thesis: {seconds_cell(row.published_total, limit=row.published_limit)} s</title>"
                at = x(row.published_total)
                body.append(f'<path class="{mark}" d="M{at:.1f} {y + 0.5:g}l4 5l-4 5l-4 -5z">{title}</path>')
            y += _LINE
    axis = []
    for decade in range(decades + 1):
        at = x(10.0 ** (decade - 2))
        axis.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="58" y2="{y + 4:g}"/>')
        axis.append(_text(at, 52, f"{10.0 ** (decade - 2):,g} s", "tick"))
    legend = "CPU seconds, logarithmic; diamonds: the thesis', hollow where it was stopped; pale: stopped at a limit"
    height = y + _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {full} {height:g}" width="{full}" height="{height:g}" '
        f'role="img" aria-label="{escape(table.title)}"><style>{_STYLE}</style>'
        f'<rect class="paper" width="{full}" height="{height:g}"/>'
        + _text(_MARGIN, 18, table.title, "setting")
        + _text(_MARGIN, 34, legend)
        + "".join([*axis, *body])
        + "</svg>\n"
    )


_STYLE = (
    f"text{{font:{_SIZE}px sans-serif;fill:#222}}.setting{{font-weight:bold}}.tick{{text-anchor:middle;fill:#666}}"
    ".paper{fill:#fff}.grid{stroke:#ddd}.bar{fill:#3b76af}.limit{fill:#b5cde3}.differs{fill:#c0392b}"
    ".mark{fill:#e08214;stroke:#7f3b08}.hollow{fill:#fff;stroke:#7f3b08}"
)


def _text(x: float, y: float, raw: str, kind: str | None = None) -> str:
    return f'<text x="{x:.1f}" y="{y:g}"{f" class={chr(34)}{kind}{chr(34)}" if kind else ""}>{escape(raw)}</text>'
