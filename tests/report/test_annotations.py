"""Annotations: each property that does not hold is reported at its line, in both formats."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.command import plait
from tests.support.markdown import ROOT

LEASE = ROOT / "examples" / "lease.py"
COUNTER = ROOT / "examples" / "bmc" / "counter.plait"


def line_of(file: Path, text: str) -> int:
    return next(n for n, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1) if text in line)


CASES = [
    pytest.param(["check", LEASE], LEASE, "@always", "no_stale_write", id="check"),
    pytest.param(["bmc", COUNTER], COUNTER, "nothing_is_lost", "nothing_is_lost", id="bmc"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("command", "file", "text", "name"), CASES)
def test_a_violation_is_annotated_at_its_line(
    command: list[object], file: Path, text: str, name: str, tmp_path: Path
) -> None:
    log = tmp_path / "plait.sarif"
    done = plait([*map(str, command), "--github", "--sarif", str(log), "--quiet"], tmp_path)
    code, out = done.returncode, done.stdout
    line = line_of(file, text)
    assert code == 1
    assert re.search(rf"^::error file={file.as_posix()},line={line},title=Plait%3A {name}::{name} is viol", out, re.M)
    (run,) = json.loads(log.read_text(encoding="utf-8"))["runs"]
    (result,) = run["results"]
    (location,) = result["locations"]
    assert (run["tool"]["driver"]["name"], result["ruleId"], result["level"]) == ("Plait", name, "error")
    assert location["physicalLocation"]["region"]["startLine"] == line
    assert location["physicalLocation"]["artifactLocation"]["uri"] == file.as_posix()


@pytest.mark.slow
def test_what_holds_has_no_annotation(tmp_path: Path) -> None:
    done = plait(["check", str(LEASE), "-p", "fencing=true", "--github", "--sarif", "x.sarif", "--quiet"], tmp_path)
    assert (done.returncode, "::" in done.stdout) == (0, False)
    assert json.loads((tmp_path / "x.sarif").read_text(encoding="utf-8"))["runs"][0]["results"] == []


@pytest.mark.slow
def test_with_json_the_annotations_go_to_stderr(tmp_path: Path) -> None:
    done = plait(["check", str(LEASE), "--max-states", "3", "--github", "--json", "--quiet"], tmp_path)
    assert json.loads(done.stdout)["verdict"] == "inconclusive"
    assert done.stderr.count("::warning file=") == 2
