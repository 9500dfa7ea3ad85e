"""`plait gyro record` and `plait gyro serve --recording`: what they say about wrong input."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from plait.cli.main import main

PYTHON = ["--", sys.executable, "-c"]


@pytest.mark.parametrize(
    ("arguments", "error", "hint"),
    [
        (["a.yaml"], "no command that runs the tests", "plait gyro record a.yaml -- pytest"),
        (["a.json", *PYTHON, "pass"], "expected the suffix .yaml", "a.yaml"),
        (["a.yaml", "--", "no-such-program-of-plait"], "no-such-program-of-plait cannot be run", "after --"),
        (["a.yaml", *PYTHON, "raise SystemExit(1)"], "ended with exit code 1", "tests that pass"),
        (["a.yaml", *PYTHON, "pass"], "no request executed SQL", "Flask, FastAPI or Django"),
    ],
)
def test_nothing_is_recorded(
    arguments: list[str],
    error: str,
    hint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["gyro", "record", *arguments]) == 2
    shown = capsys.readouterr().err
    assert error in shown
    assert hint in shown
    assert list(tmp_path.iterdir()) == []


RECORDED = "recorded: true\nschema: CREATE TABLE t (a INTEGER PRIMARY KEY)\ntransactions: {}\n"


@pytest.mark.parametrize(
    ("text", "more", "error"),
    [
        (RECORDED, ["--db", "postgresql"], "web applications need SQLite"),
        (RECORDED, ["--schema", "a.sql"], "the recording has a schema"),
        ("transactions: {}", [], "is not a recording"),
        (": [", [], "is not a recording"),
    ],
)
def test_recordings_that_cannot_be_served(
    text: str, more: list[str], error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(text)
    assert main(["gyro", "serve", "shop:app", "--recording", str(file), "--folder", str(tmp_path), *more]) == 2
    assert error in capsys.readouterr().err
