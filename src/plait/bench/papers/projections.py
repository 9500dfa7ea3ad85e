"""Where projections pay: programs whose threads do work that the property does not depend on.

Saissi 2019 compares at a fixed depth. Here every search covers all runs, which is what a user asks for: without
projections it must reach the end of the longest run, with them only the end of the longest projection. A step that comes
before a relevant step of its thread is part of the projection, because the program counter depends on it. So projections
omit what a thread does after its last relevant step, and threads that the property does not depend on, but not work
that comes before.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from plait.bench.options import Options
from plait.bench.report.cells import times
from plait.bench.table import Cell, Row, Table
from plait.bmc.api import check
from plait.bmc.load import parse_program

STEPS, STEPS_P, CLOCK, CLOCK_P = "steps", "steps, projections", "clock", "clock, projections"
EXPLICIT = "explicit"
PROPERTY = "no_more"
WAYS: dict[str, dict[str, Any]] = {
    STEPS: {"encoding": "steps", "projection": "off"},
    STEPS_P: {"encoding": "steps", "projection": "auto"},
    CLOCK: {"encoding": "clock", "projection": "off"},
    CLOCK_P: {"encoding": "clock", "projection": "on"},
    EXPLICIT: {"encoding": "explicit"},
}
"""Each search with and without projections. Enumeration has none."""
ORDER = 10.0
"""An order of magnitude."""


def separate(threads: int, work: int) -> str:
    """Two threads count; the other threads compute on variables of their own, and read each other's.

    >>> parse_program(separate(1, 2)).longest
    10
    """
    body = "".join(f"  log[id] = log[(id + 1) % {threads}] + 1;\n" for _ in range(work))
    count = "t = x; x = t + 1; t = x; x = t + 1;"
    return f"""
int x = 0;
int log[{threads}] = 0;
process first {{ int t = 0; {count} }}
process second {{ int t = 0; {count} }}
process other[id in 0..{threads - 1}] {{
{body}}}
always {PROPERTY}: x <= 4;
"""


def after(threads: int, work: int) -> str:
    """Every thread counts under a lock, and then works on a shared log."""
    body = "".join(f"  log[id] = log[(id + 1) % {threads}] + 1;\n" for _ in range(work))
    return f"""
lock m;
int x = 0;
int log[{threads}] = 0;
process worker[id in 0..{threads - 1}] {{
  int t = 0;
  lock(m); t = x; x = t + 1; unlock(m);
{body}}}
always {PROPERTY}: x <= {threads};
"""


def before(threads: int, work: int) -> str:
    """Every thread works on a shared log, and then counts under a lock. Projections keep all of it."""
    body = "".join(f"  log[id] = log[(id + 1) % {threads}] + 1;\n" for _ in range(work))
    return f"""
lock m;
int x = 0;
int log[{threads}] = 0;
process worker[id in 0..{threads - 1}] {{
  int t = 0;
{body}  lock(m); t = x; x = t + 1; unlock(m);
}}
always {PROPERTY}: x <= {threads};
"""


def cells(threads: int, work: int) -> str:
    """Every thread draws a cell, and works on it. The property reads the first cell: only the run tells whose it is."""
    body = "".join(f"  cell[mine] = {n + 1};\n" for n in range(work))
    return f"""
lock m;
int next = 0;
int cell[{threads}] = 0;
process worker[id in 0..{threads - 1}] {{
  int mine = 0;
  lock(m); mine = next; next = mine + 1; unlock(m);
{body}}}
always {PROPERTY}: cell[0] <= {work};
"""


class Shape(NamedTuple):
    """A program with a number of threads that do irrelevant work, and the number of statements of this work."""

    make: Callable[[int, int], str]
    about: str
    threads: int
    work: int
    quick: bool = False

    @property
    def name(self) -> str:
        """The name of the setting."""
        return f"{self.about}: {self.threads} threads, {self.work} irrelevant statements each"


SHAPES = [
    *(Shape(separate, "work in other threads", n, k, quick=k == 4) for n, k in ((2, 4), (2, 8), (2, 16), (3, 16))),
    *(Shape(after, "work after", n, k, quick=k == 4) for n, k in ((2, 4), (3, 8), (3, 16), (4, 12))),
    *(Shape(before, "work before", n, k, quick=k == 2) for n, k in ((2, 2), (2, 8), (3, 6))),
    *(Shape(cells, "work on cells", n, k, quick=k == 2) for n, k in ((2, 2), (3, 3), (3, 8))),
]


def add_rows(table: Table, options: Options) -> None:
    """Measure every shape with every search until it covers all runs, and add the rows and a summary to the table."""
    chosen = [shape for shape in SHAPES if shape.quick or not options.quick]
    first = len(table.rows)
    try:
        for number, shape in enumerate(chosen, 1):
            for way in WAYS:
                options.tell(f"{number}/{len(chosen)}  {shape.name}: {way}")
                _add(table, shape, way, options.timeout)
    finally:
        table.summary += summary(table.rows[first:])


def _add(table: Table, shape: Shape, way: str, timeout: float) -> None:
    program = parse_program(shape.make(shape.threads, shape.work))
    start = time.process_time()
    verdict = check(program, properties=[PROPERTY], timeout=timeout, **WAYS[way])
    total = time.process_time() - start
    if verdict.bound == "interrupted":
        raise KeyboardInterrupt
    stopped = verdict.status == "inconclusive"
    formula = verdict.statistics.formula
    table.add(
        shape.name,
        way,
        solving=None if formula is None else Cell(formula.solve_seconds, "s", stopped),
        total=Cell(total, "s", stopped),
        building=None if formula is None else Cell(formula.build_seconds, "s"),
        work=None if formula is None or way == EXPLICIT else Cell(formula.work),
        found=Cell(
            {"holds": "unsat", "violated": "sat"}.get(verdict.status, verdict.bound or "limit"),
            expected=None if stopped else "unsat",
        ),
        limit=verdict.bound if stopped else None,
        note=f"all runs; depth {verdict.statistics.depth}",
    )


def summary(rows: list[Row]) -> list[str]:
    """Where projections win: the ratio of each shape, by encoding, and where it is an order of magnitude."""
    settings: dict[str, dict[str, Row]] = {}
    for row in rows:
        settings.setdefault(row.setting, {})[row.variant] = row
    lines = []
    for base, better in ((STEPS, STEPS_P), (CLOCK, CLOCK_P), (EXPLICIT, CLOCK_P)):
        large: list[str] = []
        small: list[str] = []
        for name, ways in settings.items():
            ratio = _ratio(ways.get(base), ways.get(better))
            if ratio is not None:
                (large if ratio[0] >= ORDER else small).append(f"{name} ({ratio[1]})")
        if large or small:
            lines.append(
                f"{better} against {base}, all runs: an order of magnitude less time in {len(large)} of "
                f"{len(large) + len(small)}: {'; '.join(large) or 'none'}. Others: {'; '.join(small) or 'none'}."
            )
    return lines


def _ratio(base: Row | None, better: Row | None) -> tuple[float, str] | None:
    """How many times as long the first search takes. If it was stopped, this is a lower bound."""
    if base is None or better is None or better.limit is not None:
        return None
    ratio = float(base.value("total")) / max(float(better.value("total")), 1e-3)
    return ratio, f"{'at least ' if base.limit else ''}{times(ratio)} times"
