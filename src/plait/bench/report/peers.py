"""Checkers beside one another: for a terminal, as Markdown, and as a drawing of their speeds."""

from __future__ import annotations

from plait.bench.comparison import PeerRow, PeerTable, times
from plait.bench.report.bars import Bar, bars_svg
from plait.bench.report.grid import Grid, Line, grid_markdown, grid_text
from plait.bench.report.tables import endings

_COLUMNS = ["checker", "states", "seconds", "states/s", "Plait's is", "processor", "peak memory", "of Plait's"]


def _states(row: PeerRow) -> str:
    if row.states is None:
        return f"none: {row.problem}"
    wrong = f" instead of {row.expected:,}" if row.states != row.expected else ""
    if not wrong and row.expected_transitions not in (None, row.transitions):
        wrong = f" with {row.transitions:,} transitions instead of {row.expected_transitions:,}"
    return f"{row.states:,}{wrong}{', violated' if row.violated else ''}"


def _rate(row: PeerRow) -> str:
    """In thousands or millions.

    >>> [_rate(PeerRow("s", "c", 1, states_per_second=r)) for r in (None, 7_981.0, 45_600.0, 3_210_000.0)]
    ['', '8.0 k', '46 k', '3.21 M']
    """
    rate = row.states_per_second
    if rate is None:
        return ""
    return f"{rate / 1e6:.2f} M" if rate >= 1e6 else f"{rate / 1e3:.{0 if rate >= 1e4 else 1}f} k"


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{times(ratio)} x"


def _cells(row: PeerRow) -> list[str]:
    if row.seconds is None or row.cpu_seconds is None or row.memory_bytes is None:
        return [row.checker, _states(row), *[""] * (len(_COLUMNS) - 2)]
    memory = f"{row.memory_bytes / 2**20:,.0f} MiB"
    times = [f"{row.seconds:.2f} s", _rate(row), _times(row.slower), f"{row.cpu_seconds:.2f} s"]
    return [row.checker, _states(row), *times, memory, _times(row.larger)]


def _grid(table: PeerTable) -> Grid:
    sections = {
        name: [Line(_cells(row), row.differs or row.states is None) for row in rows]
        for name, rows in table.settings.items()
    }
    missing = [f"{name} is missing: {what}." for name, what in table.missing.items()]
    numbers = tuple(_COLUMNS[2:]) if any(row.states is None for row in table.rows) else tuple(_COLUMNS[1:])
    remarks = (*missing, *endings(table.summary, table.complete))
    return Grid(table.title, table.conditions, _COLUMNS, sections, numbers, remarks=remarks)


def peers_text(table: PeerTable, *, width: int, color: bool) -> str:
    """The table as a terminal shows it."""
    return grid_text(_grid(table), width=width, color=color)


def peers_markdown(table: PeerTable) -> str:
    """The table as Markdown."""
    return grid_markdown(_grid(table))


def peers_svg(table: PeerTable) -> str:
    """Bars of the states a second, where there are enough to tell; those of checkers that disagree are red."""
    told = {name: rows for name, rows in table.settings.items() if any(row.states_per_second for row in rows)}
    legend = "states a second, logarithmic; no bar: it came to no end"
    return bars_svg(table.title, legend, {name: list(map(_bar, rows)) for name, rows in told.items()})


def _bar(row: PeerRow) -> Bar:
    about = f"{row.setting}, {row.checker}: {_states(row)} states"
    if row.memory_bytes is not None:
        about += f", {row.memory_bytes / 2**20:,.0f} MiB"
    return Bar(row.checker, row.states_per_second, _rate(row), about, "differs" if row.differs else "bar")
