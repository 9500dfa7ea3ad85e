"""`plait bench`: the tables of the papers, as text, JSON, Markdown and a drawing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from plait.bench.report.tables import table_markdown, table_svg, table_text
from plait.bench.table import Comparison, Row, Table
from plait.bench.tables import dbss as tables
from plait.cli.main import main

SMALL = ("Faulty-Paxos (2, 3, 1)", "Register, 3 base objects")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["bench", *arguments])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return code, captured.out, captured.err


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two settings of each table, and short stateless searches."""
    monkeypatch.setattr(tables, "DBSS_SETTINGS", {name: tables.DBSS_SETTINGS[name] for name in SMALL})
    names = ("Paxos (2, 3, 1)", "Register, 3 base objects")
    monkeypatch.setattr(tables, "QUORUM_SETTINGS", {name: tables.QUORUM_SETTINGS[name] for name in names})
    monkeypatch.setattr(tables, "QUICK", 300_000)


def by_name(rows: list[dict[str, Any]]) -> Mapping[tuple[str, str], dict[str, Any]]:
    return {(row["setting"], row["reduction"]): row for row in rows}


def consistent(rows: list[dict[str, Any]]) -> None:
    """Shares fit the states; where everything was searched, reductions have no more states than the unreduced search."""
    found = by_name(rows)
    for row in rows:
        for comparison in row["comparisons"]:
            base = found[row["setting"], comparison["base"]]
            assert comparison["removed"] == pytest.approx(1 - row["states"] / base["states"])
            assert comparison["at_least"] == (base["bound"] is not None)
            if row["verdict"] == "holds" and comparison["base"] in ("stateless", "stateful", "single", "quorum"):
                assert comparison["removed"] >= 0


@pytest.mark.slow
def test_quorum(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "quorum", "--json", "--quick")
    assert code == 0
    assert "1/35  Paxos (2, 3, 1): single" in err
    table = json.loads(out)
    published = {
        "Paxos (2, 3, 1)": ("holds", None),
        "Faulty Paxos (2, 3, 1)": ("violated", "agreement"),
        "Echo multicast (3, 0, 1, 1)": ("holds", None),
        "Echo multicast (2, 1, 0, 1)": ("holds", None),
        "Register, 3 base objects": ("holds", None),
    }
    assert len(table["rows"]) == len(published) * 7
    for row in table["rows"]:
        assert (row["verdict"], row["violated"]) == published[row["setting"]]
        assert row["bound"] is None
    consistent(table["rows"])
    assert table["complete"]
    assert table["summary"][-1].startswith("Quorum transitions remove 95.2% of the states on Paxos (2, 3, 1)")


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_dbss(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = run(capsys, "dbss", "--json", "--quick", "-q", "--plot", str(tmp_path / "dbss.svg"))
    assert (code, err) == (0, f"plot: {tmp_path / 'dbss.svg'}\n")
    rows = json.loads(out)["rows"]
    assert len(rows) == 2 * 7
    consistent(rows)
    found = by_name(rows)
    assert {r["verdict"] for r in rows if r["setting"] == SMALL[0]} == {"violated"}
    assert {r["verdict"] for r in rows if r["setting"] == SMALL[1] and r["reduction"] != "stateless"} == {"holds"}
    stateless, stateful = found[SMALL[1], "stateless"], found[SMALL[1], "stateful"]
    assert (stateless["verdict"], stateless["bound"], stateless["comparisons"]) == ("inconclusive", "max-states", [])
    assert (stateful["states"], stateful["published_states"]) == (3_628, 89_041)
    assert stateful["comparisons"][0]["at_least"]
    assert found[SMALL[1], "DBSS"]["states"] == found[SMALL[1], "DBSS without SPoS"]["states"] == 1_990
    assert [c["base"] for c in found[SMALL[1], "DBSS + POR"]["comparisons"]] == ["stateful", "POR"]
    root = ET.parse(tmp_path / "dbss.svg").getroot()
    bars = [e for e in root.iter() if e.get("class") in ("bar", "limit")]
    marks = [e for e in root.iter() if e.get("class") == "mark"]
    assert (len(bars), len(marks)) == (14, sum(row["published_states"] is not None for row in rows))


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_markdown_and_text(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "quorum", "--markdown", "--quick", "-q")
    assert code == 0
    lines = [line for line in out.splitlines() if line.startswith("|")]
    assert len(lines) == 2 + 2 * 7
    assert len({line.count("|") for line in lines}) == 1
    assert any(line.startswith("| Paxos (2, 3, 1) | quorum | 9,945 |") for line in lines)
    code, out, _ = run(capsys, "dbss", "--quorum", "--quick", "-q")
    assert code == 0
    assert "quorum transitions, states with history; depth first" in out
    assert all(name in out for name in (*SMALL, *tables.DBSS_WAYS))
    assert "89,041" in out


def test_published_settings() -> None:
    """All that Table I has: nothing is left out but by --quick."""
    assert len(tables.DBSS_SETTINGS) == 10
    assert sum(len(setting.states) for setting in tables.DBSS_SETTINGS.values()) == 8 * 4 + 3 + 2 * 2
    assert len(tables.QUORUM_SETTINGS) == 6


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_another_verdict_is_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    name = SMALL[0]
    monkeypatch.setattr(tables, "DBSS_SETTINGS", {name: tables.DBSS_SETTINGS[name]._replace(verdict="holds")})
    code, out, _ = run(capsys, "dbss", "--quick", "-q")
    assert code == 1
    assert "published: holds" in out
    assert "not that of paper 000" in out


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_an_interrupted_table_has_what_was_measured(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    original, calls = tables.check, []

    def interrupted(*args: Any, **options: Any) -> Any:
        calls.append(options)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(*args, **options)

    monkeypatch.setattr(tables, "check", interrupted)
    code, out, _ = run(capsys, "quorum", "--quick", "-q", "--json")
    assert code == 3
    table = json.loads(out)
    assert (table["complete"], len(table["rows"])) == (False, 2)
    assert "Interrupted" in table_markdown(Table("t", "t", [], "c", complete=False))


def test_names_are_escaped() -> None:
    row = Row(
        "<a> | [red]b*",
        "way",
        12,
        0.5,
        "holds",
        None,
        None,
        [Comparison("x", 0.5)],
        "holds",
        5,
        True,
        note="why & <how>",
    )
    table = Table("t", "<title>", [row], "so")
    root = ET.fromstring(table_svg(table))
    assert any(e.text == row.setting for e in root.iter())
    assert any(e.get("class") == "hollow" for e in root.iter())
    assert "[red]b*" in table_text(table, width=120, color=False)
    narrow = table_text(table, width=60, color=False)
    assert "…" not in narrow
    assert max(map(len, narrow.splitlines())) <= 60
    assert r"| <a> \| [red]b\* | way\* |" in table_markdown(table)
    assert ET.fromstring(table_svg(Table("t", "t", [], "c"))).tag.endswith("svg")
    assert "c" in table_text(Table("t", "t", [], "c"), width=80, color=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dbss", "--json", "--markdown"], "--json and --markdown"),
        (["dbss", "--plot", "plot.png"], "does not end in .svg"),
        (["quorum", "--plot", "nowhere/plot.svg"], "there is no folder nowhere"),
        (["quorum", "--workers", "0"], "--workers: '0' is too small"),
        (["quorum", "--quorum"], "see plait bench quorum --help"),
        (["paxos"], "see plait bench --help"),
    ],
)
def test_errors(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert "hint: " in err


@pytest.mark.slow
def test_rounds(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The bug of the view change: found asynchronously, and in the sequential program; the corrected one holds."""
    from plait.bench.tables import rounds as rounds_table

    few = ("ViewChange (R, D, T, MD)",)
    monkeypatch.setattr(rounds_table, "SETTINGS", {name: rounds_table.SETTINGS[name] for name in few})
    code, out, err = run(capsys, "rounds", "--json")
    assert code == 0
    assert "4/5  ViewChange (R, D, T, MD): sequential" in err
    rows = {row["reduction"]: row for row in json.loads(out)["rows"]}
    assert [row["verdict"] for row in rows.values()] == ["violated"] * 4 + ["holds"]
    assert {row["violated"] for row in rows.values()} == {"completeness", None}
    assert (rows["sequential"]["published_time"], rows["asynchronous, bfs"]["published_time"]) == ("0.21 s", "22.02 s")
    code, out, err = run(capsys, "rounds", "--quick", "-q")
    assert (code, err) == (0, "")
    assert "1 of 1 bugs were found in the sequential program" in out
