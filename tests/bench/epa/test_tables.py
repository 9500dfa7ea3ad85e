"""The tables of the evaluation: their arithmetic, what they do with programs that are not sound, and a small run."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest

from plait.bench.epa.coverage import COLUMNS, TYPES, add_rows, conclude, measure_coverage
from plait.bench.epa.programs import Built, Program, code_lines
from plait.bench.epa.soundness import measure_soundness, repeat, turns
from plait.bench.epa.times import measure_times
from plait.bench.options import Options
from plait.bench.papers import epa
from plait.bench.report.markdown import table_markdown
from plait.bench.report.svg import table_svg
from plait.bench.report.text import table_text
from plait.bench.table import Cell, Column, Plot, Table, exit_code
from plait.cli.main import main
from plait.epa.campaign import Header, Outcome, Result, summarize
from plait.epa.faults import Fault
from plait.epa.instrumentation.build import build
from plait.epa.instrumentation.toolchain import Toolchain

EXAMPLES = Path(__file__).parents[3] / "examples" / "epa"
PLOT = Plot("coverage", "shares", stacked=["crash", "hang", "sdc", "masked"], interval=("low", "high"))


def result(index: int, outcome: Outcome, *, deviates: bool = True, propagates: bool = True) -> Result:
    fault = Fault("bitflip", 1, "T_0", index, 1)
    return Result(index, fault, outcome, deviates, propagates, True, 0.1, "a.c:1")


def header(runs: int) -> Header:
    return Header("a.epa", "0", [], ["bitflip"], runs, 0)


def coverage_of(results: list[Result]) -> Table:
    table = Table("figure", "Figure", COLUMNS, "fault", plot=PLOT)
    summary = summarize(header(len(results)), results)
    add_rows(table, "a", summary)
    conclude(table, [summary])
    return table


def test_shares_of_the_outcomes() -> None:
    counts: dict[Outcome, int] = {"crash": 4, "hang": 1, "sdc": 3, "masked": 2}
    results = [result(i, outcome) for i, outcome in enumerate(o for o, count in counts.items() for _ in range(count))]
    results += [result(10 + i, "none", propagates=False) for i in range(6)]
    row = coverage_of(results).rows[0]
    assert [row.value(name) for name in ("injections", "coverage")] == [16, 10 / 16]
    assert [row.value(name) for name in ("crash", "hang", "sdc", "masked", "none")] == [
        4 / 16,
        1 / 16,
        3 / 16,
        2 / 16,
        6 / 16,
    ]
    assert row.value("low") < 10 / 16 < row.value("high")


def test_a_failure_without_a_deviation_is_an_error() -> None:
    """If the comparison missed an error that certainly propagated, the benchmark fails."""
    fine = coverage_of([result(0, "crash"), result(1, "sdc", propagates=False)])
    assert exit_code([fine]) == 0
    assert "in 1, only the corrupted value deviates" in " ".join(fine.summary)
    missed = coverage_of([result(0, "crash"), result(1, "sdc", deviates=False, propagates=False)])
    assert missed.errors == ["1 of 2 crashes and corruptions left no deviation"]
    whole = Table("epa", "All", [], parts=[missed])
    assert exit_code([whole]) == 1
    assert "DIFFERENT RESULTS" in table_text(whole, width=100, color=False)
    assert "DIFFERENT RESULTS" in table_markdown(whole)


def test_parts_are_printed_and_drawn() -> None:
    part = coverage_of([result(0, "crash"), result(1, "none", propagates=False)])
    whole = Table("epa", "All", [Column("n")], parts=[part])
    whole.add("setting", "variant", n=Cell(1))
    assert whole.drawn is part
    for text in (table_text(whole, width=120, color=False), table_markdown(whole)):
        assert text.index("All") < text.index("variant") < text.index("Figure") < text.index("bitflip")
    part.add("b", "failed", failed="no reason")
    assert whole.incomplete


def test_a_table_that_was_not_measured_is_not_drawn(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """For example, Ctrl-C before the first injection: the results so far are printed, and no file is written."""

    def interrupted(options: Options) -> Table:
        return Table("epa", "All", [], complete=False, parts=[Table("epa-table-8", "Table 8", [])])

    monkeypatch.setattr("plait.bench.papers.epa.measure", interrupted)
    assert main(["bench", "epa", "--plot", str(tmp_path / "figure.svg")]) == 3
    captured = capsys.readouterr()
    assert "Table 8" in captured.out
    assert "epa was not measured" in captured.err
    assert not (tmp_path / "figure.svg").exists()


def test_pieces_of_a_bar_have_the_lengths_of_the_shares() -> None:
    part = coverage_of([result(0, "crash"), result(1, "sdc"), result(2, "sdc"), result(3, "none", propagates=False)])
    root = ET.fromstring(table_svg(part))
    pieces = [rect for rect in root.iter("{http://www.w3.org/2000/svg}rect") if len(rect)]
    widths = [float(rect.attrib["width"]) for rect in pieces]
    assert widths == [125, 250]
    assert float(pieces[1].attrib["x"]) - float(pieces[0].attrib["x"]) == 125
    texts = {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"a", "bitflip", "75.0%", "crash", "SDC", "spread, same output"} <= texts


def test_lines_of_code(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text('/* one\n * two */\n#include "a.h"\n\nint x; // three\n// four\nint y; /* five */\n')
    (tmp_path / "a.h").write_text("extern int x;\n")
    assert code_lines([tmp_path / "a.c"]) == 4


@pytest.mark.slow
def test_z3_and_the_check_agree(toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    binary = tmp_path / "kmeans.epa"
    build([EXAMPLES / "kmeans.c"], binary)
    monkeypatch.setattr(epa, "POINTS", (3,))
    table = Table("epa", "All", epa.COLUMNS)
    epa.against_the_formula(table, Options(), binary, tmp_path)
    assert table.raw["formula"]["steps"] > 100
    assert len(table.rows) == 1


@pytest.mark.slow
def test_programs_that_are_not_sound(toolchain: Toolchain, tmp_path: Path) -> None:
    """A program that uses its process id deviates in each run; it gets no faults, and the table says why."""
    binary = tmp_path / "random.epa"
    build([EXAMPLES / "random_seed.c"], binary)
    built = Built(Program("random", (), 1), binary, tmp_path / "none", 12)
    found = repeat(built, 1, 3, 1, tmp_path, turns, yields=False)
    assert (found.naive, found.sanitized, found.distinct) == (3, 3, 4)
    whole = Table("epa", "All", [])
    sound = measure_soundness(whole, Options(), [built], 2, tmp_path)
    assert not sound["random"].holds
    assert whole.parts[0].rows[0].value("golden").startswith("not sound: ")
    assert exit_code([whole]) == 1, "the sanitized traces of one thread deviate, too"
    assert measure_coverage(whole, Options(), [built], sound, 1, tmp_path) == {}
    assert whole.parts[1].rows == []
    assert "random is left out" in whole.parts[1].summary[0]


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_the_evaluation_of_one_program(jobs: int, instrumented: Callable[[str], Built], tmp_path: Path) -> None:
    built = instrumented("wordcount")
    options = Options(jobs=jobs, repeats=1)
    whole = Table("epa", "All", [])
    sound = measure_soundness(whole, options, [built], 3, tmp_path)
    results = measure_coverage(whole, options, [built], sound, 2, tmp_path)
    measure_times(whole, options, [built], sound, results)
    table_8, figure_17, table_10 = whole.parts
    row = table_8.rows[0]
    assert [row.value(name) for name in ("threads", "memory_naive", "memory", "schedule")] == [3, 1, 0, 0]
    assert row.value("golden") == "sound"
    assert table_8.raw["wordcount"]["memory"]["distinct"] == 4, "each run has other addresses"
    assert [(r.variant, r.value("injections")) for r in figure_17.rows] == [(kind, 2) for kind in TYPES]
    for r in figure_17.rows:
        assert sum(r.value(name) for name in ("crash", "hang", "sdc", "masked", "none")) == pytest.approx(1)
    assert sorted(r.index for r in results["wordcount"]) == list(range(10))
    assert {r.fault.type for r in results["wordcount"]} == set(TYPES)
    assert all(r.deviates for r in results["wordcount"] if r.outcome in ("crash", "sdc"))
    own = table_10.rows[0]
    assert own.value("objects") > 0
    assert own.value("dependencies") > 0
    assert min(own.value(name) for name in ("check", "sanitize", "compare")) > 0
    assert exit_code([whole]) == 0
    assert not list(tmp_path.glob("wordcount-[0-9]*[0-9]")), "traces are removed"
