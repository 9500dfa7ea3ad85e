"""`plait bench bmc`: programs where projections pay, and programs where they do not."""

from __future__ import annotations

import pytest

from plait.bench.options import Options
from plait.bench.papers import projections as p
from plait.bench.table import Cell, Row, Table, exit_code
from plait.bmc.analysis.ranges import ranges
from plait.bmc.analysis.relevance import relevance
from plait.bmc.api import check
from plait.bmc.load import parse_program
from plait.bmc.program.definition import variables_of


@pytest.mark.parametrize("make", [p.separate, p.after, p.before, p.cells])
def test_enumeration_confirms_the_verdict(make: object) -> None:
    assert callable(make)
    program = parse_program(make(2, 2))
    assert check(program, properties=[p.PROPERTY], encoding="explicit").status == "holds"


@pytest.mark.parametrize(
    ("make", "longest"),
    [
        (p.separate, 8),  # two threads with two reads and two writes each
        (p.after, 12),  # three threads: lock, read, write, unlock
        (p.before, 3 * (4 + 2 * 5)),  # all of it: a statement of work is a read and a write
        (p.cells, 3 * (4 + 5)),  # all of it: which cell a thread works on is not known before
    ],
)
def test_what_projections_omit(make: object, longest: int) -> None:
    """The longest projection of three threads with five statements of work each, counted by hand."""
    assert callable(make)
    program = parse_program(make(3, 5))
    condition = next(q for q in program.properties if q.name == p.PROPERTY).bad
    total = program.longest
    kept = relevance(program, ranges(program, None, None), variables_of(condition), set()).program.longest
    assert kept is not None
    assert total is not None
    assert kept <= longest
    assert kept > longest / 2
    if make in (p.before, p.cells):
        assert kept + 3 >= total == longest


@pytest.mark.slow
def test_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table("bmc", "", [])
    monkeypatch.setattr(p, "SHAPES", [p.Shape(p.separate, "work in other threads", 2, 3, quick=True)])
    p.add_rows(table, Options(quick=True))
    assert [row.variant for row in table.rows] == list(p.WAYS)
    assert {row.value("found") for row in table.rows} == {"unsat"}
    assert exit_code([table]) == 0
    assert table.summary[0].startswith("steps, projections against steps, all runs: ")


def row(way: str, seconds: float, limit: str | None = None) -> Row:
    return Row("s", way, {"total": Cell(seconds, "s")}, limit=limit)


def test_summary() -> None:
    lines = p.summary([row(p.STEPS, 60.0, "timeout"), row(p.STEPS_P, 2.0), row(p.CLOCK, 3.0), row(p.CLOCK_P, 1.0)])
    assert lines[0].endswith("an order of magnitude less time in 1 of 1: s (at least 30 times). Others: none.")
    assert lines[1].endswith("an order of magnitude less time in 0 of 1: none. Others: s (3.0 times).")
    assert len(p.summary([row(p.STEPS, 1.0), row(p.STEPS_P, 60.0, "timeout")])) == 0
