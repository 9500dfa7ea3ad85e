"""Tables of measurements for a terminal, as Markdown, and as a drawing with the published values as marks."""

from __future__ import annotations

from plait.bench.report.bars import Bar, Kind, Mark, bars_svg
from plait.bench.report.grid import Grid, Line, grid_markdown, grid_text
from plait.bench.table import Comparison, Row, Table


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


def _grid(table: Table) -> Grid:
    names, marks = _columns(table), _marks(table)
    return Grid(
        title=table.title,
        about=table.conditions,
        columns=names,
        sections={
            setting: [Line(_cells(row, marks, len(names)), row.differs) for row in rows]
            for setting, rows in table.settings.items()
        },
        numbers=("states", "seconds", "paper"),
        folded=("removed (of)",),
        remarks=(*(f"{mark} {note}" for note, mark in marks.items()), *endings(table.summary, table.complete)),
    )


def table_text(table: Table, *, width: int, color: bool) -> str:
    """The table as a terminal shows it."""
    return grid_text(_grid(table), width=width, color=color)


def table_markdown(table: Table) -> str:
    """The table as Markdown."""
    return grid_markdown(_grid(table))


def endings(summary: list[str], complete: bool) -> list[str]:
    """What stands below a table."""
    return [*summary, *([] if complete else ["Interrupted: the rest is missing."])]


def table_svg(table: Table) -> str:
    """Bars of the states; a diamond is what was published (hollow if it was not finished)."""
    marks = any(row.published_states for row in table.rows)
    legend = "states, logarithmic" + ("; diamonds: the paper's, hollow where its search was stopped" if marks else "")
    legend += "; pale: stopped at a limit" if any(row.bound for row in table.rows) else ""
    return bars_svg(table.title, legend, {name: list(map(_bar, rows)) for name, rows in table.settings.items()})


def _bar(row: Row) -> Bar:
    about = f"{row.setting}, {row.reduction}: {states_cell(row)} states, {row.seconds:.2f} s, {_verdict_cell(row)}"
    mark = None
    if row.published_states is not None:
        mark = Mark(row.published_states, f"published: {_published_cell(row)} states", row.published_limit)
    kind: Kind = "differs" if row.differs else "limit" if row.bound else "bar"
    return Bar(row.reduction, row.states, states_cell(row), about, kind, mark)
