"""Formats values by their units, and lays out a table as a grid of texts for a terminal or Markdown."""

from __future__ import annotations

from typing import NamedTuple

from plait.bench.table import REMOVED, Cell, Column, Comparison, Row, Table, Unit, Value


def times(ratio: float) -> str:
    """A ratio with at least two digits.

    >>> [times(ratio) for ratio in (0.128, 4.04, 56.7, 111.2)]
    ['0.13', '4.0', '57', '111']
    """
    return f"{ratio:,.{2 if ratio < 0.95 else 1 if ratio < 9.95 else 0}f}"


def number(value: Value, unit: Unit = "") -> str:
    """A value with its unit.

    >>> number(0.1234, "s"), number(15979.298, "s"), number(250.04, "ms"), number(1_408_021)
    ('0.12 s', '15,979 s', '250.0 ms', '1,408,021')
    >>> number(2**26, "B"), number(3 * 2**29, "B"), number(21.34, "B/state"), number("> 1 h", "s")
    ('64 MiB', '1.50 GiB', '21.3 B/state', '> 1 h')
    >>> [number(rate, "1/s") for rate in (312, 7_981, 45_600, 3_210_000)]
    ['312/s', '8.0 k/s', '46 k/s', '3.21 M/s']
    >>> number(13.64, "x"), number(0.0412, "share"), number(0.99958, "share"), number(1.0, "share")
    ('14 x', '4.1%', '99.96%', '100%')
    """
    if isinstance(value, str):
        return value
    match unit:
        case "":
            return f"{value:,}"
        case "s" | "ms" | "µs":
            return f"{value:,.{2 if value < 10 else 1 if value < 1000 else 0}f} {unit}"
        case "x":
            return f"{times(value)} x"
        case "share" if value == 1:
            return "100%"
        case "share":
            return next(s for digits in (1, 2, 3, 9) if (s := f"{value:.{digits}%}")[:3] != "100" or digits == 9)
        case "B":
            return f"{value / 2**30:.2f} GiB" if value >= 2**30 else f"{value / 2**20:,.0f} MiB"
        case "1/s":
            if value < 1000:
                return f"{value:,.0f}/s"
            return f"{value / 1e6:.2f} M/s" if value >= 1e6 else f"{value / 1e3:.{0 if value >= 1e4 else 1}f} k/s"
        case _:
            return f"{value:,.1f} {unit}"


def measured(cell: Cell | None) -> str:
    """A measured value, and the expected value if the two differ.

    >>> measured(Cell(1200, at_least=True)), measured(Cell("violated", detail="agreement", expected="holds"))
    ('> 1,200', 'violated (agreement) instead of holds')
    """
    if cell is None or cell.value is None:
        return ""
    text = f"{'> ' if cell.at_least else ''}{number(cell.value, cell.unit)}"
    text += f" ({cell.detail})" if cell.detail else ""
    return f"{text} instead of {number(cell.expected or '', cell.unit)}" if cell.differs else text


def published(cell: Cell | None) -> str:
    """The published value of a cell.

    >>> published(Cell(3, published=89_041, published_at_least=True))
    '> 89,041'
    """
    if cell is None or cell.published is None:
        return ""
    return f"{'> ' if cell.published_at_least else ''}{number(cell.published, cell.unit)}"


def removed(comparison: Comparison) -> str:
    """The share of the base's states that was removed.

    >>> removed(Comparison("POR", 0.9171)), removed(Comparison("stateful", 0.99958))
    ('91.7% (POR)', '99.96% (stateful)')
    >>> removed(Comparison("POR", 0.5, at_least=True)), removed(Comparison("POR", -0.5))
    ('> 50.0% (POR)', '1.5 x as many (POR)')
    """
    if comparison.removed < 0:
        return f"{1 - comparison.removed:.3g} x as many ({comparison.base})"
    return f"{'> ' if comparison.at_least else ''}{number(comparison.removed, 'share')} ({comparison.base})"


class Line(NamedTuple):
    """The texts of one row. `bad` rows are red on a terminal."""

    cells: list[str]
    bad: bool


class Grid(NamedTuple):
    """A table as text: headings, lines in sections, and remarks below."""

    headings: list[str]
    sections: dict[str, list[Line]]
    numbers: list[bool]
    """For each column, whether it has only numbers. Such columns are aligned to the right and never folded."""
    remarks: list[str]


class _Shown(NamedTuple):
    heading: str
    texts: dict[int, str]
    """By the position of the row."""
    number: bool = False


def grid(table: Table) -> Grid:
    """Lay out a table."""
    marks = _marks(table)
    columns = [_variants(table, marks), *_measured(table), *_published(table), *_targets(table)]
    columns = [column for place, column in enumerate(columns) if not place or any(column.texts.values())]
    sections: dict[str, list[Line]] = {}
    for at, row in enumerate(table.rows):
        line = Line([column.texts.get(at, "") for column in columns], row.differs or row.failed is not None)
        sections.setdefault(row.setting, []).append(line)
    return Grid([c.heading for c in columns], sections, [c.number for c in columns], _remarks(table, marks))


def _marks(table: Table) -> dict[str, str]:
    """A mark for each different note."""
    notes = dict.fromkeys(row.note for row in table.rows if row.note)
    return {note: "*" * count for count, note in enumerate(notes, 1)}


def _variants(table: Table, marks: dict[str, str]) -> _Shown:
    texts = {at: row.variant + marks.get(row.note or "", "") for at, row in enumerate(table.rows)}
    return _Shown(table.variants, texts)


def _measured(table: Table) -> list[_Shown]:
    shown: list[_Shown] = []
    for column in table.columns:
        cells = [row.cells.get(column.name) for row in table.rows]
        if not column.shown and not any(cell is not None and cell.differs for cell in cells):
            continue
        texts = {at: _text(row, column) for at, row in enumerate(table.rows)}
        failed: dict[int, str] = {}
        if not shown:  # The first column says why a run has no result.
            failed = {at: f"failed: {row.failed}" for at, row in enumerate(table.rows) if row.failed is not None}
            texts |= failed
        numbers = not failed and column != REMOVED and all(map(_is_number, cells))
        shown.append(_Shown(column.heading or column.name, texts, numbers))
    return shown


def _text(row: Row, column: Column) -> str:
    if column.name == REMOVED.name:
        return ", ".join(map(removed, row.comparisons))
    return measured(row.cells.get(column.name))


def _is_number(cell: Cell | None) -> bool:
    return cell is None or not (isinstance(cell.value, str) or cell.detail or cell.differs)


def _published(table: Table) -> list[_Shown]:
    found: dict[str, _Shown] = {}
    for column in table.columns:
        if column.published:
            texts = {at: published(row.cells.get(column.name)) for at, row in enumerate(table.rows)}
            # Several columns with one heading share it: each row has a published value in at most one of them.
            earlier = found.get(column.published, _Shown("", {})).texts
            merged = {at: text or earlier.get(at, "") for at, text in texts.items()}
            found[column.published] = _Shown(column.published, merged, number=True)
    return list(found.values())


def _targets(table: Table) -> list[_Shown]:
    """The targets, and whether they were met."""
    have = {at: row.target for at, row in enumerate(table.rows) if row.target is not None}
    met = {at: "ok" if target.met else "missed" for at, target in have.items()}
    return [_Shown("target", {at: target.text for at, target in have.items()}), _Shown("", met)]


def _remarks(table: Table, marks: dict[str, str]) -> list[str]:
    missing = [f"{name} is missing: {what}." for name, what in table.missing.items()]
    errors = [f"DIFFERENT RESULTS, so the figures have no meaning: {error}." for error in table.errors]
    skipped = [f"Not measured: {table.skipped}"] if table.skipped is not None else []
    ended = [] if table.complete else ["Interrupted: the rest is missing."]
    return [*(f"{mark} {note}" for note, mark in marks.items()), *missing, *errors, *skipped, *table.summary, *ended]
