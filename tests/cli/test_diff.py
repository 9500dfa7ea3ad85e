"""`plait diff`: files of all kinds, models, exit codes and bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plait.cli.main import main
from tests.cli.toggle import TOGGLE


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved counterexample, the same as the JSON of the verdict, and a verdict without one."""
    folder = tmp_path_factory.mktemp("diff")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["check", "raft", "-p", "faulty=vote", "-q", "--trace", "a.itf.json"]) == 1
    return folder


@pytest.mark.slow
def test_files_and_models(traces: Path, capsys: Any) -> None:
    a, page = str(traces / "a.itf.json"), traces / "d.html"
    assert main(["check", "raft", "-p", "faulty=vote", "--json", "--trace", a]) == 1
    (traces / "a.json").write_text(capsys.readouterr().out)
    assert main(["diff", a, str(traces / "a.json")]) == 0
    assert capsys.readouterr().out.startswith("The same: 6 steps in both")
    assert main(["diff", a, "raft", "--html", str(page)]) == 1
    said = capsys.readouterr()
    assert "they differ from step 4 on" in said.out
    assert "matched by position: ForgetfulServer0 (in B: Server0)" in said.out
    assert "report:" in said.err
    assert "plait-diagram" in page.read_text()
    assert main(["diff", a, "raft", "-q"]) == 1
    assert capsys.readouterr().out == "The same up to step 3; they differ from step 4 on.\n"
    assert main(["diff", a, "raft", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["same"], found["common"], found["renamed"]["Server0"]) == (False, 3, "ForgetfulServer0")
    assert [row["relation"] for row in found["rows"]] == ["same", "same", "same", "one", "same", "one"]


def test_a_lasso_and_its_model(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("toggle.py").write_text(TOGGLE)
    assert main(["check", "toggle.py", "--trace", "t.json", "-q"]) == 1
    capsys.readouterr()
    assert main(["diff", "t.json", "toggle.py"]) == 0
    assert capsys.readouterr().out.startswith("The same: 3 steps in both")
    assert main(["diff", "t.json", "toggle.py", "-p", "fair=true", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["same"], found["loops"]) == (False, [1, 1])
    assert found["headline"] == "The same steps, but the loop is not fair in B."
    assert found["unfair"] == "weak(Worker): Worker0 work is enabled in all states of the loop and never happens"


def refused(arguments: list[str], capsys: Any) -> str:
    assert main(arguments) == 2
    said = str(capsys.readouterr().err)
    assert "hint:" in said
    return said


@pytest.mark.slow
def test_bad_input(traces: Path, tmp_path: Path, capsys: Any) -> None:
    a = str(traces / "a.itf.json")
    assert "no such file" in refused(["diff", a, "nothing.json"], capsys).lower()
    assert "cannot be read" in refused(["diff", "nothing.json", a], capsys)
    assert "there is no protocol 'nothing'" in refused(["diff", a, "nothing"], capsys)
    assert "-p sets parameters of a model, but" in refused(["diff", a, a, "-p", "faulty=none"], capsys)
    assert main(["check", "ping_pong", "--json"]) == 0
    verdict = tmp_path / "holds.json"
    verdict.write_text(capsys.readouterr().out)
    assert "has no trace" in refused(["diff", a, str(verdict)], capsys)
    verdict.write_text('{"verdict": "violated", "trace": {"lanes": 3}}')
    assert "not as expected" in refused(["diff", str(verdict), a], capsys)
    verdict.write_text("[1, 2]")
    assert str(verdict) in refused(["diff", a, str(verdict)], capsys)
    assert str(tmp_path) in refused(["diff", a, str(tmp_path)], capsys)
    assert "--html" in refused(["diff", a, a, "--html", str(tmp_path / "no" / "such" / "d.html")], capsys)


@pytest.mark.slow
def test_coverage(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["check", "raft", "--coverage", "--html", "r.html"]) == 0
    said = capsys.readouterr().out
    assert "Coverage  over all 14,091 states" in said
    assert "log_matching  holds vacuously: one[i].term == other[i].term was never true" in said
    assert "holds vacuously" in (tmp_path / "r.html").read_text()
    assert main(["check", "ping_pong", "--coverage", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["coverage"]
    assert {h["name"]: h["steps"] > 0 for h in found["handlers"]} == {"serve": True, "pong": True, "ping": True}
    assert "a sequential program has no handlers" in refused(["check", "ben_or", "--rounds", "--coverage"], capsys)
