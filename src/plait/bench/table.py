"""The table of all benchmarks: measured values, with the expected and the published ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import msgspec

from plait.bench.errors import DifferenceError, FailedError, MissingError, SkippedError

DIFFERS, INCOMPLETE = 1, 3
"""Exit codes."""

Value = int | float | str
Unit = Literal["", "s", "ms", "µs", "B", "B/state", "1/s", "x", "share"]
"""The unit of a number. A `share` is printed as a percentage. Counts and texts have no unit."""


class Cell(msgspec.Struct, frozen=True, omit_defaults=True):
    """A measured value, with the expected and the published one."""

    value: Value | None
    unit: Unit = ""
    at_least: bool = False
    """The run hit a limit: the true value is larger."""
    detail: str | None = None
    """Printed in parentheses after the value."""
    expected: Value | None = None
    """The value must be equal to this one. Otherwise the row differs."""
    published: Value | None = None
    """The value in the paper, in the same unit. A text is printed unchanged."""
    published_at_least: bool = False
    """The published run was stopped: the true value is larger."""

    @property
    def differs(self) -> bool:
        """Whether the value is not the expected one."""
        return self.expected is not None and self.value is not None and self.value != self.expected


class Column(msgspec.Struct, frozen=True, omit_defaults=True):
    """A column: the key of its cells, and its heading."""

    name: str
    heading: str = ""
    """If empty, the name is the heading."""
    published: str = ""
    """The heading of the published values. If empty, they appear only in the JSON."""
    shown: bool = True
    """If False, the column appears only in the JSON, unless one of its cells differs."""


REMOVED = Column("removed", "removed (of)")
"""The column that shows the comparisons of each row."""


class Comparison(msgspec.Struct, frozen=True):
    """Compares the states of a row with those of another row of the same setting."""

    base: str
    """The variant that the row is compared with."""
    removed: float
    """The share of the base's states that the row does not have; negative if it has more."""
    at_least: bool = False
    """The base hit a limit, so it has more states than were counted."""


class Target(msgspec.Struct, frozen=True):
    """The target of a row, and whether it is met. A missed target is not an error, because machines differ."""

    text: str
    met: bool


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """One setting in one variant. The variant is a reduction, a checker or a configuration."""

    setting: str
    variant: str
    cells: dict[str, Cell]
    comparisons: list[Comparison] = []
    target: Target | None = None
    limit: str | None = None
    """The limit that stopped the run."""
    failed: str | None = None
    """Why the run has no result."""
    note: str | None = None

    @property
    def differs(self) -> bool:
        """Whether a value is not the expected one."""
        return any(cell.differs for cell in self.cells.values())

    def value(self, column: str) -> Any:
        """The value in a column; None if there is none."""
        cell = self.cells.get(column)
        return None if cell is None else cell.value


class Plot(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the drawing shows: the values of one column as bars."""

    column: str
    legend: str
    also: str = ""
    """A second column, printed at the end of each bar."""
    stacked: list[str] = []
    """Columns of shares. If there are any, each bar has one piece per column, on a scale from 0 to 100 %."""
    interval: tuple[str, str] | None = None
    """The columns with the limits of the interval of `column`, drawn on stacked bars."""


class Table(msgspec.Struct):
    """The result of a benchmark: rows in the order of the settings, and a summary."""

    name: str
    title: str
    columns: list[Column]
    variants: str = "variant"
    """The heading of the variants: reduction, checker, configuration."""
    conditions: str = ""
    """How it was measured."""
    rows: list[Row] = []
    summary: list[str] = []
    errors: list[str] = []
    """Counts or verdicts that contradict each other. If there are any, the figures have no meaning."""
    missing: dict[str, str] = {}
    """Programs that are not installed, and how to install them."""
    skipped: str | None = None
    """Why the benchmark did not start, or ended early, on this machine."""
    complete: bool = True
    """False if it was interrupted."""
    plot: Plot | None = None
    parts: list[Table] = []
    """Further tables of the same benchmark, with columns of their own. They are printed after this one."""
    raw: dict[str, Any] = {}
    """All single measurements. Each benchmark has its own format."""

    @property
    def drawn(self) -> Table:
        """The table that is drawn: this one or one of its parts."""
        return next((table for table in [self, *self.parts] if table.plot is not None), self)

    @property
    def settings(self) -> dict[str, list[Row]]:
        """The rows of each setting."""
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            found.setdefault(row.setting, []).append(row)
        return found

    @property
    def differs(self) -> bool:
        """Whether a result contradicts an expected one."""
        return bool(self.errors) or any(row.differs for row in self.rows) or any(part.differs for part in self.parts)

    @property
    def incomplete(self) -> bool:
        """Whether it was interrupted, or a run failed."""
        return (
            not self.complete
            or any(row.failed is not None for row in self.rows)
            or any(part.incomplete for part in self.parts)
        )

    def add(
        self,
        setting: str,
        variant: str,
        /,
        *,
        target: str = "",
        met: bool = True,
        comparisons: Iterable[Comparison] = (),
        limit: str | None = None,
        failed: str | None = None,
        note: str | None = None,
        **cells: Cell | None,
    ) -> Row:
        """Append a row; cells that are None are left out."""
        row = Row(
            setting,
            variant,
            {name: cell for name, cell in cells.items() if cell is not None},
            list(comparisons),
            Target(target, met) if target else None,
            limit,
            failed,
            note,
        )
        self.rows.append(row)
        return row

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """Wrap the measurements. An exception that ends them early is noted in the table; rows measured so far stay."""
        try:
            yield
        except KeyboardInterrupt:
            self.complete = False
        except DifferenceError as error:
            self.errors.append(str(error))
        except MissingError as error:
            self.skipped = f"{error}; {error.hint}"
        except (FailedError, SkippedError) as error:
            self.skipped = str(error)


def exit_code(tables: Iterable[Table]) -> int:
    """1 if a result contradicts an expected one, 3 if results are missing, otherwise 0.

    Skipped benchmarks count only if all are skipped: `plait bench all` runs those that this machine can run.
    """
    found = list(tables)
    if any(table.differs for table in found):
        return DIFFERS
    skipped = [table for table in found if table.skipped is not None]
    if any(table.incomplete for table in found) or (skipped and len(skipped) == len(found)):
        return INCOMPLETE
    return 0
