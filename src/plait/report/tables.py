"""Tables of measurements for a terminal, as Markdown, and as a drawing with the published values as marks."""

from __future__ import annotations

import io
import math

from plait.kernel.table import Comparison, Row, Table
from plait.report.markup import escape, text_width

_SIZE, _LINE, _BAR, _MARGIN, _AXIS, _LABELS = 11, 17, 11, 14, 480, 210


_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_NUMBERS = ("states", "seconds", "paper")
"""Columns of numbers."""
_WIDE = 110
"""So many characters have room for everything but the shares."""


def states_cell(row: Row) -> str:
    """How many states; more than that if a limit was hit.

    >>> states_cell(Row("Paxos", "POR", 1200, 0.1, "inconclusive", None, "max-states"))
    '> 1,200'
    """
    return f"{'> ' if row.bound else ''}{row.states:,}"


def removed_cell(comparison: Comparison) -> str:
    """The share that was left out.

    >>> removed_cell(Comparison("POR", 0.9171)), removed_cell(Comparison("stateful", 0.99958))
    ('91.7% (POR)', '99.96% (stateful)')
    >>> removed_cell(Comparison("POR", 0.5, at_least=True)), removed_cell(Comparison("POR", -0.5))
    ('> 50.0% (POR)', '1.5 x as many (POR)')
    """
    c = comparison
    if c.removed < 0:
        return f"{1 - c.removed:.3g} x as many ({c.base})"
    share = next(s for digits in (1, 2, 3, 9) if (s := f"{c.removed:.{digits}%}")[:3] != "100" or digits == 9)
    return f"{'> ' if c.at_least else ''}{share} ({c.base})"


def _verdict_cell(row: Row) -> str:
    more = row.violated or row.bound
    found = f"{row.verdict} ({more})" if more else row.verdict
    return f"{found}; published: {row.published_verdict}" if row.differs else found


def _published_cell(row: Row) -> str:
    if row.published_states is None:
        return row.published_time or ""
    return f"{'> ' if row.published_limit else ''}{row.published_states:,}"


def _columns(table: Table) -> list[str]:
    published = ["paper"] if any(row.published_states or row.published_time for row in table.rows) else []
    return ["reduction", "states", "seconds", "removed (of)", "verdict", *published]


def _cells(row: Row, marks: dict[str, str], columns: int) -> list[str]:
    mark = marks.get(row.note or "", "")
    removed = ", ".join(map(removed_cell, row.comparisons))
    cells = [row.reduction + mark, states_cell(row), f"{row.seconds:.2f}", removed, _verdict_cell(row)]
    return [*cells, _published_cell(row)][:columns]


def _marks(table: Table) -> dict[str, str]:
    """A mark for each different remark."""
    notes = dict.fromkeys(row.note for row in table.rows if row.note)
    return {note: "*" * number for number, note in enumerate(notes, 1)}


def table_text(table: Table, *, width: int, color: bool) -> str:
    """The table as a terminal shows it."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

    names, marks = _columns(table), _marks(table)
    grid = Grid(title=None, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in names:
        number = name in _NUMBERS
        # On a narrow terminal words are folded: nothing is cut off.
        whole = number or (width >= _WIDE and name != "removed (of)")
        grid.add_column(name, justify="right" if number else "left", no_wrap=whole, overflow="fold")
    for place, (setting, rows) in enumerate(table.settings.items()):
        if place:
            grid.add_section()
        grid.add_row(Text(setting, style="bold"))
        for row in rows:
            style = "red" if row.differs else None
            first, *others = _cells(row, marks, len(names))
            grid.add_row(*(Text(cell) for cell in (f"  {first}", *others)), style=style)
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=color, no_color=not color, highlight=False)
    console.print(Text(table.title, style="bold"))
    console.print(table.conditions, markup=False)
    console.print(grid)
    for line in [*(f"{mark} {note}" for note, mark in marks.items()), *_endings(table)]:
        console.print(line, markup=False)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def table_markdown(table: Table) -> str:
    """The table as Markdown."""
    names, marks = _columns(table), _marks(table)
    lines = [f"## {table.title}", "", f"{table.conditions}.", "", f"| setting | {' | '.join(names)} |"]
    lines.append("|---" + "".join("|--:" if n in _NUMBERS else "|---" for n in names) + "|")
    for setting, rows in table.settings.items():
        for row in rows:
            cells = [setting, *_cells(row, marks, len(names))]
            lines.append(f"| {' | '.join(c.replace('|', chr(92) + '|').replace('*', chr(92) + '*') for c in cells)} |")
    for note, mark in marks.items():
        lines += ["", f"{mark.replace('*', chr(92) + '*')} {note}"]
    for line in _endings(table):
        lines += ["", line]
    return "\n".join(lines) + "\n"


def _endings(table: Table) -> list[str]:
    return [*table.summary, *([] if table.complete else ["Interrupted: the rest is missing."])]


def table_svg(table: Table) -> str:
    """Bars of the states on a logarithmic scale; a diamond is what was published (hollow if it was not finished)."""
    most = max([10, *(row.states for row in table.rows), *(row.published_states or 0 for row in table.rows)])
    decades = math.ceil(math.log10(most))
    left = _MARGIN + _LABELS
    full = left + _AXIS + 130

    def x(states: int) -> float:
        return left + _AXIS * math.log10(max(states, 1)) / decades

    body: list[str] = []
    y = 62.0
    for setting, rows in table.settings.items():
        y += 8
        body.append(_text(_MARGIN, y + _BAR, setting, "setting"))
        y += _LINE
        for row in rows:
            kind = "differs" if row.differs else "limit" if row.bound else "bar"
            about = f"{setting}, {row.reduction}: {states_cell(row)} states, {row.seconds:.2f} s, {_verdict_cell(row)}"
            body.append(_text(_MARGIN + 12, y + _BAR - 1, row.reduction))
            body.append(
                f'<rect class="{kind}" x="{left}" y="{y:g}" width="{max(x(row.states) - left, 1):.1f}" height="{_BAR}">'
                f"<title>{escape(about)}</title></rect>"
            )
            end = x(row.states)
            if row.published_states is not None:
                body.append(_diamond(x(row.published_states), y + _BAR / 2, row))
                # The number stands where neither the bar nor the mark is.
                label = text_width(states_cell(row), _SIZE) + 14
                at = x(row.published_states)
                end = at + 4 if end - 7 <= at <= end + label else end
            body.append(_text(end + 5, y + _BAR - 1, states_cell(row)))
            y += _LINE
    axis = []
    for decade in range(decades + 1):
        at = x(10**decade)
        axis.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="58" y2="{y + 4:g}"/>')
        axis.append(_text(at, 52, f"{10**decade:,}" if decade < 5 else f"10{str(decade).translate(_RAISED)}", "tick"))
    marks = any(row.published_states for row in table.rows)
    legend = "states, logarithmic" + ("; diamonds: the paper's, hollow where its search was stopped" if marks else "")
    legend += "; pale: stopped at a limit" if any(row.bound for row in table.rows) else ""
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


def _diamond(x: float, y: float, row: Row) -> str:
    kind = "hollow" if row.published_limit else "mark"
    title = f"<title>published: {escape(_published_cell(row))} states</title>"
    return f'<path class="{kind}" d="M{x:.1f} {y - 5:g}l4 5l-4 5l-4 -5z">{title}</path>'
