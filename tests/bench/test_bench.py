"""`plait bench`: the tables of the papers, as text, JSON, Markdown and a drawing."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from plait.bench import registry
from plait.bench.options import Options
from plait.bench.papers import dbss, quorum, rounds, search
from plait.cli.main import main

SMALL = ("Faulty-Paxos (2, 3, 1)", "Register, 3 base objects")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["bench", *arguments])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return code, captured.out, captured.err


def the_table(out: str) -> dict[str, Any]:
    """The only table of the JSON."""
    results = json.loads(out)
    assert results["machine"]["cores"] >= 1
    (table,) = results["tables"]
    return dict(table)


def value(row: dict[str, Any], column: str) -> Any:
    return row["cells"][column]["value"]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two settings of each table, and short stateless searches."""
    monkeypatch.setattr(dbss, "SETTINGS", {name: dbss.SETTINGS[name] for name in SMALL})
    names = ("Paxos (2, 3, 1)", "Register, 3 base objects")
    monkeypatch.setattr(quorum, "SETTINGS", {name: quorum.SETTINGS[name] for name in names})
    monkeypatch.setattr(search, "QUICK", 300_000)


def by_name(rows: list[dict[str, Any]]) -> Mapping[tuple[str, str], dict[str, Any]]:
    return {(row["setting"], row["variant"]): row for row in rows}


def consistent(rows: list[dict[str, Any]]) -> None:
    """Shares fit the states; where everything was searched, reductions have no more states than the unreduced search."""
    found = by_name(rows)
    for row in rows:
        for comparison in row.get("comparisons", []):
            base = found[row["setting"], comparison["base"]]
            assert comparison["removed"] == pytest.approx(1 - value(row, "states") / value(base, "states"))
            assert comparison["at_least"] == ("limit" in base)
            if value(row, "verdict") == "holds" and comparison["base"] in ("stateless", "stateful", "single", "quorum"):
                assert comparison["removed"] >= 0


@pytest.mark.slow
def test_quorum(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "quorum", "--json", "--quick")
    assert code == 0
    assert "1/48  Paxos (2, 3, 1): single" in err
    table = the_table(out)
    published = {
        "Paxos (2, 3, 1)": ("holds", None),
        "Faulty Paxos (2, 3, 1)": ("violated", "agreement"),
        "Echo multicast (3, 0, 1, 1)": ("holds", None),
        "Echo multicast (2, 1, 0, 1)": ("holds", None),
        "Register, 3 base objects": ("holds", None),
        "Register, 3, wrong regularity": ("violated", "regularity"),
    }
    assert len(table["rows"]) == len(published) * 8
    for row in table["rows"]:
        assert (value(row, "verdict"), row["cells"]["verdict"].get("detail")) == published[row["setting"]]
        assert "limit" not in row
    consistent(table["rows"])
    found = by_name(table["rows"])
    dpor = found["Paxos (2, 3, 1)", "single + DPOR"]["cells"]["states"]
    assert (dpor["published"], dpor["published_at_least"]) == (16_087_468, True)
    assert table["complete"]
    assert table["summary"][-1].startswith("Quorum transitions remove 95.2% of the states on Paxos (2, 3, 1)")


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_dbss(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = run(capsys, "dbss", "--json", "--quick", "-q", "--plot", str(tmp_path / "dbss.svg"))
    assert (code, err) == (0, f"plot: {tmp_path / 'dbss.svg'}\n")
    rows = the_table(out)["rows"]
    assert len(rows) == 2 * 7
    consistent(rows)
    found = by_name(rows)
    assert {value(r, "verdict") for r in rows if r["setting"] == SMALL[0]} == {"violated"}
    assert {value(r, "verdict") for r in rows if r["setting"] == SMALL[1] and r["variant"] != "stateless"} == {"holds"}
    stateless, stateful = found[SMALL[1], "stateless"], found[SMALL[1], "stateful"]
    assert (value(stateless, "verdict"), stateless["limit"]) == ("inconclusive", "max-states")
    assert "comparisons" not in stateless
    assert stateless["cells"]["states"]["at_least"]
    assert stateful["cells"]["states"] == {"value": 3_628, "published": 89_041}
    assert stateful["comparisons"][0]["at_least"]
    assert stateful["cells"]["time"]["published"] == 7 * 60 + 31
    # As the paper states: 25 % over the stateful search, 86 % over it, and 18 % over POR.
    for variant, saved in (("DBSS", 0.25), ("POR", 0.86), ("DBSS + POR", 0.18)):
        assert found[SMALL[1], variant]["cells"]["saved"]["published"] == pytest.approx(saved, abs=0.005)
    assert value(found[SMALL[1], "DBSS"], "states") == value(found[SMALL[1], "DBSS without SPoS"], "states") == 1_990
    assert [c["base"] for c in found[SMALL[1], "DBSS + POR"]["comparisons"]] == ["stateful", "POR"]
    root = ET.parse(tmp_path / "dbss.svg").getroot()
    bars = [e for e in root.iter() if e.get("class") in ("bar", "limit")]
    marks = [e for e in root.iter() if e.get("class") == "mark"]
    assert (len(bars), len(marks)) == (14, sum("published" in row["cells"]["states"] for row in rows))


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_markdown_and_text(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "quorum", "--markdown", "--quick", "-q")
    assert code == 0
    lines = [line for line in out.splitlines() if line.startswith("|")]
    assert len(lines) == 2 + 2 * 8
    assert len({line.count("|") for line in lines}) == 1
    assert any(line.startswith("| Paxos (2, 3, 1) | quorum | 9,945 |") for line in lines)
    code, out, _ = run(capsys, "dbss", "--quorum", "--quick", "-q")
    assert code == 0
    assert "quorum transitions, states with history; depth first" in out
    assert all(name in out for name in (*SMALL, *dbss.WAYS))
    assert "89,041" in out


def test_published_settings() -> None:
    """All that Table I of DBSS has: nothing is left out but by --quick."""
    assert len(dbss.SETTINGS) == 10
    assert sum(len(setting.states) for setting in dbss.SETTINGS.values()) == 8 * 4 + 3 + 2 * 2
    assert all(setting.seconds.keys() == setting.states.keys() for setting in dbss.SETTINGS.values())
    assert len(quorum.SETTINGS) == 7
    assert sorted(s.states[quorum.SINGLE_DPOR] for s in quorum.SETTINGS.values() if quorum.SINGLE_DPOR in s.states) == [
        *(66, 162, 2_010, 2_911, 16_087_468)
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_another_verdict_is_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    name = SMALL[0]
    monkeypatch.setattr(dbss, "SETTINGS", {name: dbss.SETTINGS[name]._replace(verdict="holds")})
    code, out, _ = run(capsys, "dbss", "--quick", "-q", "--markdown")
    assert code == 1
    assert "violated (agreement) instead of holds" in out
    assert "These differ from DBSS" in out


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_an_interrupted_table_has_what_was_measured(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    original, calls = search.check, []

    def interrupted(*args: Any, **options: Any) -> Any:
        calls.append(options)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(*args, **options)

    monkeypatch.setattr(search, "check", interrupted)
    code, out, _ = run(capsys, "quorum", "dbss", "--quick", "-q", "--json")
    assert code == 3
    table = the_table(out)  # what comes after it is not begun
    assert (table["complete"], len(table["rows"])) == (False, 2)
    calls.clear()
    code, out, _ = run(capsys, "quorum", "--quick", "-q", "--markdown")
    assert code == 3
    assert "Interrupted: the rest is missing." in out


@pytest.mark.slow
def test_rounds(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The bug of the view change: found asynchronously, and in the sequential program; the corrected one holds."""
    few = ("ViewChange (R, D, T, MD)",)
    monkeypatch.setattr(rounds, "SETTINGS", {name: rounds.SETTINGS[name] for name in few})
    code, out, err = run(capsys, "rounds", "--json")
    assert code == 0
    assert "4/5  ViewChange (R, D, T, MD): sequential" in err
    rows = {row["variant"]: row for row in the_table(out)["rows"]}
    assert [value(row, "verdict") for row in rows.values()] == ["violated"] * 4 + ["holds"]
    assert {row["cells"]["verdict"].get("detail") for row in rows.values()} == {"completeness", None}
    times = [rows[name]["cells"]["time"]["published"] for name in ("sequential", "asynchronous, bfs")]
    assert times == ["0.21 s", "22.02 s"]
    code, out, err = run(capsys, "rounds", "--quick", "-q")
    assert (code, err) == (0, "")
    assert "1 of 1 bugs were found in the sequential program" in out


# -- the command ------------------------------------------------------------------------------------------------------


def test_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys)
    assert code == 0
    for name, found in registry.BENCHMARKS.items():
        assert f"    {name:<12}{found.about}\n" in f"{out}\n"
    code, out, _ = run(capsys, "--json")
    assert json.loads(out).keys() == registry.BENCHMARKS.keys()
    papers = {"dbss", "quorum", "rounds", "bmc", "epa", "gyro"}
    engine = {
        "peers",
        "spin",
        "stateright",
        "throughput",
        "native",
        "searches",
        "reductions",
        "liveness",
        "memory",
        "startup",
        "explore",
    }
    assert registry.BENCHMARKS.keys() == papers | engine
    assert set(registry.select(["papers"])) == papers
    assert set(registry.select(["engine"])) == engine


@pytest.mark.parametrize("name", registry.BENCHMARKS)
def test_each_is_a_file_with_one_function(name: str) -> None:
    benchmark = registry.BENCHMARKS[name]
    module = importlib.import_module(benchmark.module)
    assert module.measure.__doc__
    assert not benchmark.about.endswith(".")
    assert benchmark.options <= {*Options.__dataclass_fields__, "plot"}


def test_what_cannot_be_measured_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "memory", "--quick", "-q")
    assert code == 3
    assert "Not measured: this benchmark needs minutes and 4 GiB; run it without --quick" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dbss", "--json", "--markdown"], "--json and --markdown"),
        (["dbss", "--plot", "plot.png"], "does not end in .svg"),
        (["quorum", "--plot", "nowhere/plot.svg"], "there is no folder nowhere"),
        (["quorum", "dbss", "--plot", "plot.svg"], "--plot draws one benchmark only"),
        (["startup", "--plot", "plot.svg"], "plait bench startup does not take --plot"),
        (["quorum", "--workers", "0"], "--workers: '0' is too small"),
        (["quorum", "--quorum"], "plait bench quorum does not take --quorum\nhint: it works with dbss"),
        (["gyro", "--figure", "9"], "see plait bench --help"),
        (["epa", "--examples", "nowhere"], "kmeans.c does not exist"),
        (["epa", "--runs", "0"], "--runs: '0' is too small"),
        (["dbss", "--runs", "9"], "plait bench dbss does not take --runs\nhint: it works with epa"),
        (["gyro", "--jobs", "2"], "plait bench gyro does not take --jobs\nhint: it works with epa"),
        (["paxos"], "there is no benchmark paxos"),
        (["--plot", "plot.svg"], "the name of a benchmark is missing"),
    ],
)
def test_errors(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == "" or json.loads(out)["error"]["exit_code"] == 2, "with --json, an error is an object"
    assert message in err
    assert "hint: " in err
