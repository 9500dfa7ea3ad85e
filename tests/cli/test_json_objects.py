"""With --json, every command prints exactly one JSON object on stdout: a result, or an error."""

from __future__ import annotations

import importlib
import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from plait.cli import main as entry
from plait.cli.main import PLACES, main
from plait.kernel.deadline import OutOfTimeError
from plait.kernel.errors import MissingPackageError


def function(command: str) -> Any:
    module, _, name = PLACES[command].partition(":")
    return getattr(importlib.import_module(module), name)


def takes_json(command: str) -> bool:
    return "json" in inspect.signature(function(command)).parameters


COMMANDS = [command for command in PLACES if takes_json(command)]
GOOD: dict[str, list[list[str]]] = {
    "check": [["counter.py"], ["counter.py", "-p", "most=1"], ["counter.py", "--timeout", "0"], ["loud.py"]],
    "show": [["counter.py"], ["counter.py", "-p", "limit=2", "--decomposition"], ["loud.py"]],
    "graph": [["counter.py"], ["counter.py", "-o", "g.svg"], ["loud.py"]],
    "diff": [["t.json", "t.json"], ["t.json", "counter.py", "-p", "most=0"]],
    "bmc": [["peterson", "--depth", "2"], ["peterson", "--slice", "turn", "--depth", "1"]],
    "zoo": [[]],
    "bench": [[]],
    "rounds tags": [["commit-rounds"]],
    "gyro analyze": [["store.sql"]],
    "gyro status": [],  # needs servers
    "epa show": [],  # these need a program that clang has built
    "epa reversible": [],
    "epa compare": [],
    "epa campaign": [],
}
"""Input for each command."""
BAD = [
    ["--bogus"],
    ["no/such/thing.py"],
    ["no/such/thing.py", "other"],
    ["broken.py"],
    ["broken.py", "--json", "x", "y"],
]


def one_object(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> tuple[int, dict[str, Any]]:
    code = main(arguments)
    captured = capsys.readouterr()
    assert captured.out.count("\n") == 1, captured.out
    return code, json.loads(captured.out)


@pytest.fixture
def inputs(counter: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = counter.parent
    (folder / "broken.py").write_text("x = 1 / 0\n")
    (folder / "loud.py").write_text(
        "print('hello')\n" + counter.read_text().replace("def tick(self):", "def tick(self):\n        print(1)")
    )
    (folder / "store.sql").write_text(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER);\n-- name: read\nSELECT n FROM t WHERE id = :id;\n"
    )
    assert main(["check", "counter.py", "-p", "most=1", "--trace", "t.json"]) == 1
    capsys.readouterr()


def test_every_command_has_good_input_here() -> None:
    assert set(COMMANDS) == set(GOOD)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_result_is_one_object(inputs: None, capsys: pytest.CaptureFixture[str], command: str) -> None:
    for arguments in GOOD[command]:
        if command == "gyro analyze":
            continue
        code, found = one_object(capsys, [*command.split(), *arguments, "--json"])
        assert code in (0, 1, 3), (arguments, found)
        assert "error" not in found


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_an_error_is_one_object(inputs: None, capsys: pytest.CaptureFixture[str], command: str) -> None:
    for arguments in BAD:
        code, found = one_object(capsys, [*command.split(), *arguments, "--json"])
        assert code == 2, arguments
        assert list(found) == ["error"]
        assert set(found["error"]) == {"kind", "message", "hint", "exit_code"}
        assert found["error"]["exit_code"] == code
        assert found["error"]["message"]


@pytest.mark.parametrize(
    ("raised", "kind", "code"),
    [
        (KeyboardInterrupt(), "interrupted", 3),
        (OutOfTimeError(), "timeout", 3),
        (MissingPackageError("no z3", hint="install it"), "package", 2),
        (AssertionError("impossible"), "internal", 4),
        (OSError(5, "strange \udcff"), "internal", 4),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], raised: BaseException, kind: str, code: int
) -> None:
    def failing(*_: object, **__: object) -> int:
        raise raised

    monkeypatch.setattr(entry, "app", failing)
    ended, found = one_object(capsys, ["check", "x", "--json"])
    assert (ended, found["error"]["kind"], found["error"]["exit_code"]) == (code, kind, code)


def test_an_unknown_command_with_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert one_object(capsys, ["chekc", "--json"])[1]["error"]["kind"] == "usage"
    assert one_object(capsys, ["--json"])[1]["error"]["kind"] == "usage"


def test_kinds_of_errors(inputs: None, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, kind in (
        (["check", "counter.py", "--bogus"], "usage"),
        (["check", "missing.py"], "usage"),
        (["diff", "broken.py", "t.json"], "trace"),
    ):
        assert one_object(capsys, [*arguments, "--json"])[1]["error"]["kind"] == kind
