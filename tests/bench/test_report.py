"""The one table in all its forms: text, Markdown, drawing, JSON; and the exit code."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import msgspec
import pytest

from plait.bench.errors import DifferenceError, MissingError, SkippedError
from plait.bench.machine import Machine
from plait.bench.report.markdown import table_markdown
from plait.bench.report.results import Results, results_json
from plait.bench.report.svg import table_svg
from plait.bench.report.text import table_text
from plait.bench.table import REMOVED, Cell, Column, Comparison, Plot, Table, exit_code


def empty(**options: object) -> Table:
    columns = [Column("states", published="paper"), REMOVED]
    return msgspec.structs.replace(
        Table("t", "<title>", columns, conditions="so", plot=Plot("states", "states")), **options
    )


def test_names_are_escaped() -> None:
    table = empty()
    row = table.add(
        "<a> | [red]b*",
        "way",
        states=Cell(12, published=5, published_at_least=True),
        comparisons=[Comparison("x", 0.5)],
        note="why & <how>",
    )
    root = ET.fromstring(table_svg(table))
    assert any(e.text == row.setting for e in root.iter())
    assert any(e.get("class") == "hollow" for e in root.iter())
    assert "[red]b*" in table_text(table, width=120, color=False)
    narrow = table_text(table, width=60, color=False)
    assert "…" not in narrow
    assert max(map(len, narrow.splitlines())) <= 60
    assert r"| <a> \| [red]b\* | way\* | 12 | 50.0% (x) | > 5 |" in table_markdown(table)
    assert r"\* why & <how>" in table_markdown(table)


def test_an_empty_table() -> None:
    assert ET.fromstring(table_svg(empty())).tag.endswith("svg")
    assert "so" in table_text(empty(), width=80, color=True)
    assert table_markdown(empty(complete=False)) == "## <title>\n\nso.\n\nInterrupted: the rest is missing.\n"


def peers() -> Table:
    columns = [Column("states"), Column("transitions", shown=False), Column("rate", "states/s"), Column("memory")]
    table = Table("peers", "peers", columns, "checker", missing={"X": "get it"}, plot=Plot("rate", "speed", "memory"))
    setting, states = "<a> | b", Cell(500_000, expected=500_000)
    table.add(setting, "Plait", states=states, rate=Cell(1e6, "1/s"), memory=Cell(2**25, "B"))
    table.add(setting, "Spin", states=states, rate=Cell(2.5e5, "1/s"), memory=Cell(2**26, "B"))
    table.add(setting, "TLC", states=states, transitions=Cell(8, expected=7), rate=Cell(2.5e4, "1/s"))
    table.add(setting, "Stateright", states=Cell(None, expected=500_000), failed="stopped after 900 s")
    return table


def test_what_differs_or_fails_is_shown() -> None:
    table = peers()
    assert [row.differs for row in table.rows] == [False, False, True, False]
    text = table_text(table, width=130, color=False)
    assert "8 instead of 7" in text
    assert "failed: stopped after 900 s" in text
    assert "X is missing: get it." in text
    assert max(map(len, table_text(table, width=70, color=False).splitlines())) <= 70
    assert r"| <a> \| b | Spin | 500,000 |  | 250 k/s | 64 MiB |" in table_markdown(table)
    root = ET.fromstring(table_svg(table))
    assert [e.get("class") for e in root.iter() if e.get("class") in ("bar", "differs")] == ["bar", "bar", "differs"]
    assert any(e.text == "250 k/s, 64 MiB" for e in root.iter())


def test_columns_that_say_nothing_are_left_out() -> None:
    table = peers()
    del table.rows[2:]
    assert "transitions" not in table_text(table, width=130, color=False)
    assert "target" not in table_text(table, width=130, color=False)
    table.add("<a> | b", "slow", rate=Cell(1, "1/s"), target="≥ 2/s", met=False)
    assert "| 1/s |  | ≥ 2/s | missed |" in table_markdown(table)


def test_small_values_are_drawn() -> None:
    """The axis begins below one, if there are values below one."""
    table = empty()
    for number in (0.05, 0.5, 20.0):
        table.add("s", str(number), states=Cell(number, "s"))
    bars = [e for e in ET.fromstring(table_svg(table)).iter() if e.get("class") == "bar"]
    widths = [float(bar.get("width", 0)) for bar in bars]
    assert 1 < widths[0] < widths[1] < widths[2]


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 3, "Interrupted"),
        (DifferenceError("3 instead of 4"), 1, "DIFFERENT RESULTS, so the figures have no meaning: 3 instead of 4."),
        (MissingError("no spin", "get it"), 3, "Not measured: no spin; get it"),
        (SkippedError("too small"), 3, "Not measured: too small"),
    ],
)
def test_whatever_ends_a_benchmark_is_noted(error: BaseException, code: int, said: str) -> None:
    table = empty()
    with table.measuring():
        table.add("s", "v", states=Cell(1))
        raise error
    assert (len(table.rows), exit_code([table])) == (1, code)
    assert said in table_text(table, width=80, color=False)


def test_exit_codes() -> None:
    fine, skipped, failed, differing = empty(), empty(skipped="no spin"), peers(), peers()
    del failed.rows[2], differing.rows[3]
    assert exit_code([fine]) == 0
    assert exit_code([fine, skipped]) == 0
    assert exit_code([skipped]) == 3
    assert exit_code([fine, failed]) == 3
    assert exit_code([failed, differing]) == 1


def test_json_has_everything() -> None:
    machine = Machine("cpu", 2, 4.0, 0.1, "Linux", "3.11", {})
    found = msgspec.json.decode(results_json(Results(machine, [peers()])))
    assert found["machine"]["cores"] == 2
    (table,) = found["tables"]
    assert table["rows"][2]["cells"]["transitions"] == {"value": 8, "expected": 7}
    assert table["rows"][3]["failed"] == "stopped after 900 s"
    assert msgspec.convert(table, Table) == peers()


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_long_setting_takes_no_room_from_the_columns(width: int) -> None:
    table = Table("t", "t", [Column("measured"), Column("ratio")], "what")
    row = table.add(
        "setting " * 20, "a variant", measured=Cell(2.24e6, "1/s"), ratio=Cell(0.5, "x"), target="≥ 1.6 x", met=False
    )
    text = table_text(table, width=width, color=False)
    assert "2.24 M/s" in text
    assert "missed" in text
    assert max(map(len, text.splitlines())) <= max(width, 50)
    assert text.count("setting") == 20 == row.setting.count("setting")
