"""`plait graph`: to stdout or a file, by the file's ending."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from plait.cli.main import main


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["graph", *arguments])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return code, captured.out, captured.err


@pytest.mark.usefixtures("counter")
def test_the_listing_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "counter.py", "-p", "limit=3", "-p", "most=2")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "counter.py:counter (limit=3, most=2): 4 states and 3 transitions"
    assert "s1  initial" in lines
    assert lines[-2:] == ["s4  from s3  terminal, violates small", "    Counter0.number = 3"]


@pytest.mark.usefixtures("counter")
def test_files_by_their_ending(capsys: pytest.CaptureFixture[str]) -> None:
    for suffix in ("svg", "dot", "json"):
        code, out, err = run(capsys, "counter.py", "-o", f"graph.{suffix}")
        assert (code, err) == (0, "")
        assert out == f"graph: graph.{suffix}  (4 states and 3 transitions)\n"
    assert ET.parse("graph.svg").getroot().tag.endswith("svg")
    assert Path("graph.dot").read_text(encoding="utf-8").startswith("digraph")
    assert len(json.loads(Path("graph.json").read_text(encoding="utf-8"))["states"]) == 4


@pytest.mark.usefixtures("counter")
def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "counter.py", "--json", "-o", "graph.SVG")
    assert code == 0
    assert "graph: graph.SVG" in err, "what is not data goes to stderr"
    found = json.loads(out)
    assert (len(found["states"]), len(found["moves"]), found["model"]) == (4, 3, "counter.py:counter")
    assert [s["violated"] for s in found["states"]] == [[]] * 4


@pytest.mark.usefixtures("counter")
def test_a_limit_that_is_hit_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "counter.py", "--max-states", "2")
    assert code == 0
    said = "Not all states are shown: 1 transition from s2 leads to a state that is left out."
    assert said in out.splitlines()
    assert err == f"note: {said}\nhint: give a larger --max-states\n"


@pytest.mark.usefixtures("counter")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-o", "graph.png"], "does not end in .svg, .dot, .json"),
        (["-o", "nowhere/graph.svg"], "there is no folder nowhere"),
        (["--reduce", "frob"], "--reduce frob"),
        (["--max-states", "0"], "--max-states"),
        (["--history", "first"], "history"),
    ],
)
def test_bad_input(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    code, out, err = run(capsys, "counter.py", *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert "hint:" in err
