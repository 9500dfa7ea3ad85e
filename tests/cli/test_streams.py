"""Whatever stdout and stderr are, the exit code is that of the verdict, and the counterexample is saved."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.endless import PLAIT
from tests.support.patience import PATIENCE

VIOLATED = ["check", "counter.py", "-p", "most=1"]
SAVED = Path(".plait/counter-small-most=1.itf.json")


def plait(
    arguments: list[str], redirect: str = "", out: str | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command under a shell that redirects its streams."""
    return subprocess.run(
        ["sh", "-c", f'"$@" {redirect}', "sh", *PLAIT, *arguments],
        stdout=subprocess.PIPE if out is None else Path(out).open("w"),
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        check=False,
        timeout=PATIENCE,
        env={**os.environ, **environment},
    )


@pytest.mark.slow
@pytest.mark.parametrize("redirect", [">&-", "> /dev/full"])
def test_a_violation_with_a_bad_stdout(counter: Path, redirect: str) -> None:
    for more in ([], ["--json"], ["--quiet"]):
        done = plait([*VIOLATED, *more], redirect)
        assert done.returncode == 1
        assert SAVED.exists()
        lines = done.stderr.splitlines()
        assert [line.partition(":")[0] for line in lines] == ["warning", "replay"], done.stderr
        assert "stdout cannot be written" in lines[0]
        SAVED.unlink()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["check", "counter.py"], 0),
        (["check", "counter.py", "--max-states", "1"], 3),
        (["check", "missing.py"], 2),
        (["replay", "t.json"], 0),
        (["diff", "t.json", "t.json"], 0),
        (["diff", "t.json", "counter.py", "-p", "limit=1"], 1),
        (["bmc", "peterson", "--depth", "2"], 3),
        (["--help"], 0),
    ],
)
def test_every_verdict_keeps_its_exit_code(counter: Path, arguments: list[str], code: int) -> None:
    assert plait([*VIOLATED, "--trace", "t.json"]).returncode == 1
    closed, full = ("<&- >&- 2>&-", "> /dev/full 2> /dev/full")
    each = (">&-", "> /dev/full", "2>&-", "2> /dev/full", ">&- 2>&-") if arguments == ["check", "counter.py"] else ()
    for redirect in (closed, full, *each):
        done = plait(arguments, redirect)
        assert done.returncode == code, (redirect, done.stderr)
        assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["zoo"], ["show", "counter.py"], ["graph", "counter.py"]])
def test_a_listing_that_is_lost_was_not_done(counter: Path, arguments: list[str]) -> None:
    assert plait(arguments, "> /dev/full").returncode == 2
    assert plait(arguments, ">&-").returncode == 0, "nobody wants it"


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "cp1252"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
    ids=["cp1252", "ascii", "C"],
)
def test_a_stream_that_is_not_utf_8_gets_ascii_art(counter: Path, environment: dict[str, str]) -> None:
    usual = plait(VIOLATED).stdout
    assert "●" in usual
    done = plait(VIOLATED, **environment)
    assert (done.returncode, done.stderr) == (1, "")
    assert SAVED.exists()
    assert done.stdout.isascii()
    assert "1  *" in done.stdout
    assert "number: 0 -> 1" in done.stdout
    drawing = [[line for line in out.splitlines() if line.endswith("tick")] for out in (usual, done.stdout)]
    assert [len(a) for a in drawing[0]] == [len(b) for b in drawing[1]], "columns stay"
    assert plait(["replay", str(SAVED)], **environment).returncode == 0


@pytest.mark.slow
def test_json_is_valid_in_every_encoding(counter: Path) -> None:
    import json

    counter.write_text(counter.read_text(encoding="utf-8").replace("Counts to", "Zählt → 🙂 to"), encoding="utf-8")
    name = "limit=3"
    documents = [
        plait(["show", "counter.py", "-p", name, "--json"], PYTHONIOENCODING=encoding).stdout
        for encoding in ("utf-8", "cp1252", "ascii")
    ]
    assert documents[1].isascii()
    assert len({json.dumps(json.loads(document)) for document in documents}) == 1


@pytest.mark.slow
def test_the_replay_command_survives_a_reader_that_goes_away(counter: Path) -> None:
    done = plait(VIOLATED, "| true")
    assert SAVED.exists()
    assert "Traceback" not in done.stderr
    assert "warning" not in done.stderr
