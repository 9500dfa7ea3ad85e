"""The tutorial does what it says; so do the commands on bad input."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.epa.conftest import EXAMPLES
from tests.support.command import ELLIPSIS, plait
from tests.support.markdown import ROOT, blocks


def session() -> list[tuple[str, list[str]]]:
    found: list[tuple[str, list[str]]] = []
    for block in blocks(ROOT / "docs" / "guides" / "epa-tutorial.md", "console"):
        for line in block.text.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


@pytest.mark.slow
@pytest.mark.usefixtures("toolchain")
def test_the_tutorial(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "examples" / "epa")
    for command, expected in session():
        done = plait(command.split()[1:], tmp_path)
        failing = expected[:1] != [] and expected[0].startswith(("NOT", "deviating"))
        assert done.returncode == (1 if failing else 0), done.stderr
        pattern = "".join(r"(?:.*\n)*?" if line == ELLIPSIS else re.escape(line) + r"\n" for line in expected)
        assert re.fullmatch(pattern, done.stdout), f"{command}\n{done.stdout}"
    page = (tmp_path / "propagation.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "sub 16466" in page
    lines = plait(["epa", "compare", "kmeans.trace", "faulty.trace"], tmp_path).stdout.splitlines()
    way = lines[lines.index(next(line for line in lines if line.startswith("a path of the error"))) + 1 :]
    assert way[0].startswith("  [0] T_0_5 sub")
    assert "printf" in way[-1]
    assert {"T_0", "T_0_5"} == {line.split()[1] for line in way}


@pytest.mark.slow
@pytest.mark.usefixtures("toolchain")
def test_other_outputs(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "examples" / "epa")
    assert plait(["epa", "build", "examples/epa/listing4.c"], tmp_path).returncode == 0
    assert plait(["epa", "run", "listing4.epa"], tmp_path).stdout == "Result: 9\n"
    shown = plait(["epa", "show", "listing4.trace", "--chrome", "t.json", "--html", "t.html"], tmp_path)
    assert shown.returncode == 0, shown.stderr
    events = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))["traceEvents"]
    names = [e["args"]["name"] for e in events if e.get("name") == "thread_name"]
    assert names == ["T_0", "T_0_0", "T_0_1"]
    assert {"main", "inc", "dec"} <= {e["name"] for e in events if e["ph"] == "B"}
    assert sum(e["ph"] == "B" for e in events) == sum(e["ph"] == "E" for e in events)
    assert "create T_0_0" in (tmp_path / "t.html").read_text(encoding="utf-8")
    sanitized = plait(["epa", "sanitize", "listing4.trace"], tmp_path)
    assert "M(2) := T_0_1" in sanitized.stdout
    assert "digest" in sanitized.stderr
    verdict = json.loads(plait(["epa", "reversible", "listing4.trace", "--json"], tmp_path).stdout)["verdict"]
    assert verdict["status"] == "holds"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["build"], "no source file was given"),
        (["build", "nothing.c"], "there is no such file"),
        (["build", "readme.md"], "neither C nor C++"),
        (["build", "broken.c"], "failed: broken.c:1"),
        (["build", "good.c", "--clang", "3"], "clang 3 with its libLLVM was not found"),
        (["build", "good.c", "-o", "no/where"], "cannot be written"),
        (["run", "good.c"], "is not a program"),
        (["run", "/bin/true", "-o", "t"], "recorded nothing"),
        (["run", "/bin/true", "-o", "."], "exists and is not a trace"),
        (["run", "/bin/true", "--fault", "bitflip"], "TYPE:SITE:THREAD:NTH:VALUE"),
        (["run", "/bin/true", "--fault", "zap:1:T_0:0:1"], "does not fit"),
        (["show", "good.c"], "is not a trace"),
        (["reversible", "nothing"], "is not a trace"),
        (["compare", "nothing", "else"], "is not a trace"),
        (["campaign", "nothing.epa"], "is not a program"),
        (["campaign", "/bin/true", "--faults", "zap"], "is not a type of fault"),
        (["campaign", "/bin/true", "--plot", "no/where.svg"], "cannot be written"),
    ],
)
def test_bad_input(tmp_path: Path, command: list[str], said: str, request: pytest.FixtureRequest) -> None:
    if command[0] == "build" and len(command) > 1:
        request.getfixturevalue("toolchain")
    (tmp_path / "good.c").write_text("int main(void) { return 0; }\n", encoding="utf-8")
    (tmp_path / "broken.c").write_text("int main(void) { return x; }\n", encoding="utf-8")
    (tmp_path / "readme.md").write_text("no program\n", encoding="utf-8")
    done = plait(["epa", *command], tmp_path)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert said in done.stderr
    assert "hint:" in done.stderr
