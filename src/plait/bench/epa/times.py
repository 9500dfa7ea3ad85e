"""Table 10 of Saissi 2019: the time of the check of a golden run, and of sanitizing and comparing each faulty run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any

from plait.bench.epa.programs import Built
from plait.bench.epa.soundness import PAPER, Soundness
from plait.bench.options import Options
from plait.bench.table import Cell, Column, Table
from plait.epa.campaign import Result
from plait.epa.reversibility import check

COLUMNS = [
    Column("objects", "shared objects"),
    Column("dependencies"),
    Column("solver_pairs", "pairs for Z3"),
    Column("solver", "solver"),
    Column("check", "check"),
    Column("sanitize", "sanitize"),
    Column("sanitize_mad", "± MAD"),
    Column("compare", "compare"),
    Column("compare_mad", "± MAD"),
]


def measure_times(
    whole: Table,
    options: Options,
    programs: Sequence[Built],
    sound: dict[str, Soundness],
    results: dict[str, list[Result]],
) -> None:
    """Check the golden run of each program again, and take medians over its injections."""
    injections = max((len(found) for found in results.values()), default=0)
    table = Table(
        "epa-table-10",
        "Table 10: time of each part",
        COLUMNS,
        "source",
        conditions=(
            f"check: median of {options.times} times; sanitize and compare: median of up to {injections:,} faulty runs, "
            "with the median absolute deviation (MAD)"
        ),
    )
    whole.parts.append(table)
    for built in programs:
        golden, found = sound[built.name]
        taken = []
        for _ in range(options.times):
            start = time.perf_counter()
            check(golden)
            taken.append(time.perf_counter() - start)
        times = [(r.sanitizing, r.comparing) for r in results.get(built.name, []) if r.comparing > 0]
        cells = dict(zip(("sanitize", "compare"), map(spread, zip(*times, strict=True)), strict=True)) if times else {}
        medians: dict[str, Any] = {name: Cell(1e3 * middle, "ms") for name, (middle, _) in cells.items()}
        deviations: dict[str, Any] = {f"{name}_mad": Cell(1e3 * mad, "ms") for name, (_, mad) in cells.items()}
        table.add(
            built.name,
            "Plait",
            objects=Cell(found.shared_objects),
            dependencies=Cell(found.dependencies),
            solver_pairs=Cell(found.settled_by_solver),
            check=Cell(1e3 * statistics.median(taken), "ms"),
            **medians,
            **deviations,
        )
        table.raw[built.name] = {"check": taken, "injections": len(times)} | {
            name: {"median": middle, "mad": mad} for name, (middle, mad) in cells.items()
        }
        paper = built.program.published
        if paper is not None:
            table.add(
                built.name,
                PAPER,
                objects=Cell(paper.objects),
                dependencies=Cell(paper.dependencies),
                solver=Cell(paper.solver, "s"),
                check=Cell(paper.check, "s"),
                sanitize=Cell(paper.sanitize, "s"),
                compare=Cell(paper.compare, "s"),
            )


def spread(values: Sequence[float]) -> tuple[float, float]:
    """The median, and the median absolute deviation from it.

    >>> spread([1.0, 2.0, 4.0, 8.0, 100.0])
    (4.0, 3.0)
    """
    middle = statistics.median(values)
    return middle, statistics.median(abs(value - middle) for value in values)
