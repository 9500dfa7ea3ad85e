"""`plait bench bmc --peer cbmc`: Plait and CBMC on the same C programs."""

from __future__ import annotations

import json
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from plait.bench.errors import FailedError, MissingError
from plait.bench.options import Options
from plait.bench.peers import cbmc as side
from plait.bench.table import Table, exit_code
from plait.cli.main import main


def report(*failed: str, passed: tuple[str, ...] = ()) -> str:
    """What `cbmc --json-ui` prints for these failed and passed properties."""
    results = [{"property": name, "status": "FAILURE"} for name in failed]
    results += [{"property": name, "status": "SUCCESS"} for name in passed]
    status = "failure" if failed else "success"
    return json.dumps([{"program": "CBMC 6.6.0"}, {"result": results}, {"cProverStatus": status}])


def test_answers_of_cbmc() -> None:
    assert side.answer_of(report(passed=("main.assertion.1",))) == "true"
    assert side.answer_of(report("main.assertion.1", "main.unwind.0")) == "false"
    assert side.answer_of(report("one.unwind.1", passed=("main.assertion.1",))) == "bounded"
    said = json.dumps([{"messageType": "ERROR", "messageText": "pointer handling for concurrency is unsound"}])
    for text, message in ((said, "pointer handling"), ("Segmentation fault", "Segmentation fault"), ("", "no output")):
        with pytest.raises(FailedError, match=message):
            side.answer_of(text)


def test_every_program_states_its_verdict() -> None:
    programs = side.shipped(quick=False)
    assert len(programs) > 20
    assert {p.verdict for p in programs} == {"true", "false"}
    assert {p.name for p in side.shipped(quick=True)} < {p.name for p in programs}
    named = {size.file for size in side.SIZES}
    assert named == {file.stem for file in side.FOLDER.glob("*.c")}
    assert sum(p.locked for p in programs) >= 5
    assert all(re.search(r"#define THREADS [5-9]", p.text) for p in programs if p.locked)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_the_programs_are_c(tmp_path: Path) -> None:
    """A compiler accepts them, with the header of the system and with ours."""
    for program in side.shipped(quick=True):
        file = tmp_path / "program.c"
        file.write_text(program.text)
        for include in ([], ["-I", str(side.FOLDER / "include")]):
            command = ["gcc", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-fsyntax-only", *include]
            subprocess.run([*command, str(file)], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("program", side.shipped(quick=True), ids=lambda p: p.name)
def test_plait_gives_the_stated_verdict(program: side.Program, tmp_path: Path) -> None:
    file = tmp_path / "program.c"
    file.write_text(program.text)
    assert side.Plait().check(program, file, 100)[0] == program.verdict


def installed(folder: Path, monkeypatch: pytest.MonkeyPatch, said: str, *, wait: float = 0) -> None:
    """Put a program `cbmc` on PATH that prints a report of CBMC."""
    (folder / "said.json").write_text(said)
    script = folder / "cbmc"
    script.write_text(
        f'#!/bin/sh\nif [ "$1" = --version ]; then echo "6.6.0 (cbmc-6.6.0)"; exit; fi\n'
        f"sleep {wait}\ncat {folder / 'said.json'}\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


def programs(*verdicts: str | None) -> list[side.Program]:
    text = "#include <assert.h>\nint x = 1;\nint main(void) { x = x + 1; assert(x == 2); return 0; }\n"
    return [side.Program(f"sum {number}", text, verdict, 2) for number, verdict in enumerate(verdicts)]


def compared(found: list[side.Program], timeout: float = 100) -> Table:
    return side.compare(Options(timeout=timeout), found, [side.Plait(), side.Cbmc()])


@pytest.mark.slow
def test_a_wrong_answer_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, monkeypatch, report("main.assertion.1"))
    table = compared(programs("true"))
    assert [row.value("answer") for row in table.rows] == ["true", "false"]
    assert [row.differs for row in table.rows] == [False, True]
    assert (exit_code([table]), table.summary[0]) == (1, "WRONG ANSWERS: sum 0, CBMC.")
    # Without a stated verdict, the answers must agree.
    assert exit_code([compared(programs(None))]) == 1


@pytest.mark.slow
def test_timeouts_bounds_and_refusals_are_no_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, monkeypatch, report("main.unwind.0"))
    table = compared(programs("true"))
    assert (table.rows[1].value("answer"), exit_code([table])) == ("bounded", 0)
    assert "CBMC decides 0 of 1 programs; not decided: sum 0 (bounded)." in table.summary
    installed(tmp_path, monkeypatch, json.dumps([{"messageType": "ERROR", "messageText": "not supported"}]))
    table = compared(programs("true"))
    assert (table.rows[1].value("answer"), table.rows[1].note) == ("refused", "cbmc: not supported")
    assert exit_code([table]) == 0
    installed(tmp_path, monkeypatch, "Segmentation fault")  # a crash is no refusal
    table = compared(programs("true"))
    assert (table.rows[1].failed, exit_code([table])) == ("cbmc: Segmentation fault", 3)
    installed(tmp_path, monkeypatch, report(passed=("main.assertion.1",)), wait=30)
    row = side.compare(Options(timeout=0.2), programs("true"), [side.Cbmc()]).rows[0]
    assert (row.value("answer"), row.limit, row.cells["time"].at_least) == ("timeout", "timeout", True)


def test_without_cbmc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingError, match="cbmc is not on PATH") as caught:
        side.Cbmc().version()
    assert "install" in caught.value.hint
    assert main(["bench", "bmc", "--peer", "cbmc", "-q"]) == 3
    assert "cbmc is not on PATH; install it" in capsys.readouterr().out
    for arguments, message in (
        (["--files", str(tmp_path)], "--files needs --peer"),
        (["--peer", "cbmc", "--files", str(tmp_path)], "has no C programs"),
    ):
        assert main(["bench", "bmc", *arguments]) == 2
        assert message in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cbmc") is None, reason="cbmc is not installed")
def test_cbmc_itself(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name in ("peterson", "peterson_late", "triangular"):
        shutil.copy(side.FOLDER / f"{name}.c", tmp_path)
    assert main(["bench", "bmc", "--peer", "cbmc", "--files", str(tmp_path), "--json", "-q"]) == 0
    rows = json.loads(capsys.readouterr().out)["tables"][0]["rows"]
    answers = {(row["setting"], row["cells"]["answer"]["value"]) for row in rows if row["variant"] == "CBMC"}
    assert answers == {("peterson", "true"), ("peterson_late", "false"), ("triangular", "true")}
