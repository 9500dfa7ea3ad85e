"""`plait conform`: results, exit codes, several logs, mappings, following a log."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from plait.cli.main import main

ROOT = Path(__file__).parents[2]
LEASE = str(ROOT / "examples" / "lease.py")
GOOD = str(ROOT / "examples" / "logs" / "lease.jsonl")
STALE = str(ROOT / "examples" / "logs" / "lease_stale.jsonl")
FENCED = ["-p", "fencing=true"]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(["conform", *arguments])
    return code, capsys.readouterr().out


def result(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    code, out = run(capsys, *arguments, "--json")
    found = json.loads(out)
    assert found["exit_code"] == code
    logs: list[dict[str, Any]] = found["logs"]
    return code, logs


def test_a_log_conforms(capsys: pytest.CaptureFixture[str]) -> None:
    code, (found,) = result(capsys, LEASE, GOOD, *FENCED)
    assert code == 0
    assert (found["status"], found["events"], found["explained"], found["steps"]) == ("conforms", 6, 6, 7)
    assert found["free"] == 1, "the lease expires, which no event says"
    assert [step["label"] for step in found["last"] if not step["events"]] == ["expire"]
    assert [event["label"] for event in found["trace"]["events"]] == [step["label"] for step in found["last"]]


def test_a_log_deviates(capsys: pytest.CaptureFixture[str]) -> None:
    code, (found,) = result(capsys, LEASE, STALE, *FENCED)
    assert code == 1
    assert (found["status"], found["explained"]) == ("deviates", 5)
    (event,) = found["unexplained"]
    assert event["place"] == f"{STALE}:7"
    assert event["candidates"][0]["forbids"] == ["log is [2], and the log says [2, 1]"]


def test_a_run_violates_a_property(capsys: pytest.CaptureFixture[str]) -> None:
    code, (found,) = result(capsys, LEASE, STALE)
    assert code == 1
    assert found["status"] == "violated"
    assert [(one["property"], one["step"]) for one in found["violations"]] == [("no_stale_write", 7)]


def test_many_logs(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run(capsys, LEASE, GOOD, STALE, *FENCED, "-q")
    assert code == 1
    assert out.splitlines() == [f"CONFORMS {GOOD}", f"DEVIATES {STALE}", "1 of 2 logs conform"]


def test_the_logs_of_a_folder_are_one_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header, *lines = Path(GOOD).read_text(encoding="utf-8").splitlines()
    parts: dict[str, list[str]] = {}
    for line in lines:
        parts.setdefault(json.loads(line)["at"], [header]).append(line)
    for name, part in parts.items():
        (tmp_path / f"{name}.jsonl").write_text("\n".join(part) + "\n", encoding="utf-8")
    code, (found,) = result(capsys, LEASE, str(tmp_path), *FENCED)
    assert (code, found["events"], found["status"]) == (0, 6, "conforms")
    files = sorted(map(str, tmp_path.glob("*.jsonl")))
    assert result(capsys, LEASE, *files, "--merge", *FENCED)[1][0]["explained"] == 6
    code, logs = result(capsys, LEASE, *files, *FENCED)
    assert len(logs) == 4


def test_a_limit(capsys: pytest.CaptureFixture[str]) -> None:
    code, (found,) = result(capsys, LEASE, STALE, *FENCED, "--max-states", "2")
    assert (code, found["status"], found["bound"]) == (3, "inconclusive", "states")


def test_a_mapping(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "read_log.py").write_text(
        "from plait.conform.mapping import conforms\n\n"
        "@conforms(text=True)\ndef event(line):\n"
        "    who, what = line.split()\n    return {'at': who, 'step': what} if what != 'idle' else None\n"
    )
    (tmp_path / "a.log").write_text("Lock0 grant\nLock0 idle\nClient0 work\n")
    arguments = [LEASE, str(tmp_path / "a.log"), "--map", str(tmp_path / "read_log.py")]
    code, (found,) = result(capsys, *arguments)
    assert (code, found["events"]) == (0, 2)
    (tmp_path / "read_log.py").write_text("x = 1\n")
    assert run(capsys, *arguments)[0] == 2


def test_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "report.html"
    assert run(capsys, LEASE, STALE, *FENCED, "--html", str(page))[0] == 1
    text = page.read_text(encoding="utf-8")
    assert "log is [2], and the log says [2, 1]" in text
    assert "lease_stale.jsonl:7" in text
    assert 'class="viewer"' in text


def test_coverage(capsys: pytest.CaptureFixture[str]) -> None:
    _, (found,) = result(capsys, LEASE, STALE, "--coverage")
    steps = {(one["role"], one["name"]): one["steps"] for one in found["handlers"]}
    assert steps == {("Client", "work"): 2, ("Lock", "grant"): 2, ("Lock", "expire"): 1, ("Store", "write"): 2}
    branches = {(one["text"], one["true"], one["false"]) for one in found["coverage"]["branches"]}
    assert ("not self.fencing", True, False) in branches, "without fencing, nothing else was tried"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([LEASE], "parameter LOGS requires an argument"),
        ([LEASE, "no.jsonl"], "no.jsonl cannot be read: No such file or directory"),
        ([LEASE, GOOD, "--complete", "all"], "complete: 'all' is no handler"),
        ([LEASE, GOOD, "--follow", "--json"], "--follow cannot be combined with --json or --html"),
        (["raft", GOOD], "the model has no process 'Lock0'"),
    ],
)
def test_wrong_commands(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conform", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "hint: " in error


@pytest.mark.slow
def test_follow_ends_when_the_log_deviates() -> None:
    """The log comes line by line; what follows the wrong line is not needed."""
    command = [sys.executable, "-m", "plait.cli.main", "conform", LEASE, "/dev/stdin", "--follow", *FENCED]
    wrong = json.dumps({"at": "Store0", "state": {"log": [7]}})
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        process.stdin.write(Path(GOOD).read_text(encoding="utf-8") + wrong + "\n")
        process.stdin.close()
        assert process.stdout is not None
        out = process.stdout.read()
        assert process.wait() == 1
    assert "DEVIATES" in out
    assert "log is [1, 2], and the log says [7]" in out


@pytest.mark.slow
def test_follow_a_log_that_conforms() -> None:
    command = [sys.executable, "-m", "plait.cli.main", "conform", LEASE, "/dev/stdin", "--follow", *FENCED]
    text = Path(GOOD).read_text(encoding="utf-8")
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "conforms so far: 6 of 6 events"
