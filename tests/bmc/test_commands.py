"""`plait bmc` as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plait.cli.main import main


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return code, captured.out, captured.err


@pytest.mark.slow
def test_a_violation_is_shown_saved_and_replayed(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "bmc", "peterson", "-p", "polite=false", "--html", "report.html", "-q")
    assert code == 1
    assert out.splitlines()[0] == "VIOLATED assertions"
    saved = ".plait/peterson-assertions-polite=false.itf.json"
    assert f"replay: plait replay {saved}" in out
    assert "assert(inside == 1);" in Path("report.html").read_text(encoding="utf-8")
    code, out, _ = run(capsys, "replay", saved)
    assert code == 0
    assert "reproduced: property assertions is violated after" in out


@pytest.mark.slow
def test_holds(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "bmc", "peterson")
    assert code == 0
    assert err.splitlines() == ["2 statements are several steps, for example line 13: inside = inside + 1;"]
    assert "HOLDS 2 properties" in out


def test_an_example_that_does_not_exist_is_no_violation_that_was_found(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("never.plait").write_text("int x = 0; process p { x = 1; } reachable two: x == 2;")
    code, out, _ = run(capsys, "bmc", "never.plait")
    assert code == 1
    assert "No example was found. Runs of at most" in out
    assert "A violation was found" not in out


def test_json(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "bmc", "projections", "--json", "--width", "8", "--encoding", "steps")
    found = json.loads(out)
    assert (code, found["verdict"], found["property"]) == (1, "violated", "never_twelve")
    assert found["formula"]["encoding"] == "steps"
    assert found["formula"]["integers"] == "8 bits, wrapping around"
    assert len(found["trace"]["events"]) == 4


def test_slice(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "bmc", "projections", "--slice", "y")
    assert (code, out.splitlines()[0]) == (0, "3 projections on y of 12 runs")
    code, out, _ = run(capsys, "bmc", "projections", "--slice", "y", "--json")
    assert [p["values"]["y"] for p in json.loads(out)["projections"]] == [17, 18, 12]
    code, _, err = run(capsys, "bmc", "projections", "--slice", "q")
    assert (code, "has no variable 'q'" in err) == (2, True)


def test_smt2(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, _ = run(capsys, "bmc", "projections", "--depth", "4", "--smt2", "p.smt2", "-q")
    assert code == 1
    assert Path("p.smt2").read_text(encoding="utf-8").endswith("(check-sat)\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.plait"], "there is no file nothing.plait"),
        (["projections", "-p", "n=3"], "has no constant 'n'"),
        (["philosophers", "-p", "n=many"], "n='many' does not fit"),
        (["philosophers", "-p", "careful=7"], "careful='7' does not fit"),
        (["projections", "--property", "nope"], "has no property 'nope'"),
        (["projections", "--depth", "x"], "--depth"),
        (["projections", "--smt2", "f.smt2"], "--smt2 needs a depth"),
        (["projections", "--html", "nowhere/r.html"], "--html"),
        (["bad.plait"], "bad.plait, line 2, column 3"),
    ],
)
def test_bad_input(workplace: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    Path("spin.plait").write_text("int b = 0, c = 0; process p { while (b == 0) { } c = 1; } always d: c < 2;")
    Path("bad.plait").write_text("int b = 0;\n  } process p { skip; }")
    code, out, err = run(capsys, "bmc", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert "hint: " in err


def test_a_depth_is_a_limit(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "bmc", "peterson", "--depth", "5", "-q")
    assert (code, out) == (3, "INCONCLUSIVE stopped at depth 5\n")
