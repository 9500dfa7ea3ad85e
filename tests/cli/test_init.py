"""`plait init`: what it writes does what its README says, and nothing is overwritten or hidden."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from plait.cli.main import main
from plait.model.loading.loader import load
from tests.oracle.explorer import explore
from tests.support.patience import PATIENCE
from tests.support.session import Command, Session, parts


@pytest.mark.slow
def test_the_readme_can_be_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(tmp_path)
    monkeypatch.chdir(session.folder)
    assert main(["init", "turnstile"]) == 0
    session.folder /= "turnstile"
    commands = [part for part in parts(session.folder / "README.md") if isinstance(part, Command)]
    assert [command.line.split()[0] for command in commands] == ["plait", "plait", "plait", "pytest"]
    for command in commands:
        session.run(command)
    assert "NAME" not in "".join(
        file.read_text(encoding="utf-8") for file in session.folder.glob("*.*") if file.is_file()
    )


def test_the_oracle_agrees_with_the_model(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "turnstile"]) == 0
    assert "next: cd turnstile && plait check turnstile.py\n" in capsys.readouterr().out
    file = str(workplace / "turnstile" / "turnstile.py")
    assert explore(load(file, {})).violated == set()
    assert explore(load(file, {"remembers": False}, parse=False)).violated == {"adds_once"}


@pytest.mark.slow
def test_the_files_are_formatted(workplace: Path) -> None:
    assert main(["init", "turnstile"]) == 0
    for arguments in (["format", "--check"], ["check", "--select", "E,F,I,UP,W"]):
        command = [sys.executable, "-m", "ruff", *arguments, "--isolated", "--no-cache", "--line-length", "120"]
        done = subprocess.run(command, cwd="turnstile", capture_output=True, text=True, check=False, timeout=PATIENCE)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("token-ring", "'token-ring' is not a public name in Python"),
        ("class", "'class' is not a public name in Python"),
        ("_ring", "'_ring' is not a public name in Python"),
        ("a/ring", "'a/ring' is not a public name in Python"),
        ("", "'' is not a public name in Python"),
        ("test_ring", "leave test_ out: plait init ring"),
        ("System", "uses the name 'System'"),
        ("range", "uses the name 'range'"),
        ("queue", "queue.py would hide a module of that name: "),
        ("there", "there is there already"),
    ],
)
def test_a_name_that_does_not_fit(
    workplace: Path, capsys: pytest.CaptureFixture[str], name: str, expected: str
) -> None:
    (workplace / "there").mkdir()
    assert main(["init", name]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("error: ")
    assert "\nhint: " in captured.err
    assert expected in captured.err
    assert (captured.out, list(workplace.iterdir())) == ("", [workplace / "there"])


def test_a_folder_that_cannot_be_made(
    workplace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(self: Path, *given: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "mkdir", refused)
    assert main(["init", "turnstile"]) == 2
    assert "error: turnstile cannot be written: Permission denied" in capsys.readouterr().err
