"""With --json, every command prints exactly one JSON object on stdout: a result, or an error."""

from __future__ import annotations

import importlib
import inspect
import json
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from plait.cli import main as entry
from plait.cli.main import PLACES, main
from plait.epa.instrumentation.toolchain import find_all
from plait.kernel.deadline import OutOfTimeError
from plait.kernel.errors import MissingPackageError
from tests.support.command import plait


def function(command: str) -> Any:
    module, _, name = PLACES[command].partition(":")
    return getattr(importlib.import_module(module), name)


def takes_json(command: str) -> bool:
    return "json" in inspect.signature(function(command)).parameters


EXAMPLES = Path(__file__).parents[2] / "examples"
COMMANDS = [command for command in PLACES if takes_json(command)]
GOOD: dict[str, list[list[str]]] = {
    "check": [["counter.py"], ["counter.py", "-p", "most=1"], ["counter.py", "--timeout", "0"], ["loud.py"]],
    "show": [
        ["counter.py"],
        ["counter.py", "-p", "limit=2", "--decomposition"],
        ["counter.py", "--native"],
        ["loud.py"],
    ],
    "graph": [["counter.py"], ["counter.py", "-o", "g.svg"], ["loud.py"]],
    "diff": [["t.json", "t.json"], ["t.json", "counter.py", "-p", "most=0"]],
    "bmc": [["peterson", "--depth", "2"], ["peterson", "--slice", "turn", "--depth", "1"]],
    "conform": [[str(EXAMPLES / "lease.py"), str(EXAMPLES / "logs" / "lease.jsonl")]],
    "zoo": [[]],
    "bench": [[]],
    "rounds tags": [["commit-rounds"]],
    "gyro analyze": [[str(EXAMPLES / "gyro" / name)] for name in ("store.py", "store.yaml", "store_listed.sql")],
    "gyro change": [["SERVER", "--remove", "1"]],
    "gyro status": [["SERVER"]],
    "epa show": [["listing4.trace"]],
    "epa reversible": [["listing4.trace"], ["racy_counter.trace"]],
    "epa compare": [["listing4.trace", "listing4.trace"]],
    "epa campaign": [["listing4.epa", "--runs", "2"]],
}
"""Input for each command. SERVER stands for the URL of a server."""
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
    assert main(["check", "counter.py", "-p", "most=1", "--trace", "t.json"]) == 1
    capsys.readouterr()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two programs that were built and recorded."""
    if not find_all():
        pytest.skip("clang with its libLLVM is not installed: apt-get install clang-14")
    folder = tmp_path_factory.mktemp("recorded")
    for name in ("listing4", "racy_counter"):
        assert plait(["epa", "build", str(EXAMPLES / "epa" / f"{name}.c")], folder).returncode == 0
        assert plait(["epa", "run", f"{name}.epa"], folder).returncode == 0
    return folder


class Belt(BaseHTTPRequestHandler):
    """Answers as a server of `plait gyro serve` does."""

    def do_GET(self) -> None:
        url = f"http://{self.headers['Host']}"
        facts = {"known": 0, "applied": 0, "broken": None, "server": 0, "epoch": 1, "turn": 0}
        facts |= {"holds_token": True, "ready": True, "reasons": []}
        facts |= {"configuration": 1, "members": [0], "used": 1, "change": None, "aborted": None}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"urls": [url]} if self.path == "/cluster" else facts).encode())

    def do_POST(self) -> None:
        url = f"http://{self.headers['Host']}"
        self.send_response(202)
        self.end_headers()
        self.wfile.write(json.dumps({"number": 1, "members": [{"server": 0, "url": url}]}).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Belt) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_address[1]}"
        serving.shutdown()


def test_every_command_has_good_input_here() -> None:
    """A new command with --json gets a line in GOOD."""
    assert set(COMMANDS) == set(GOOD)
    assert all(GOOD.values())


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_result_is_one_object(
    inputs: None, server: str, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest, command: str
) -> None:
    if command.startswith("epa "):
        shutil.copytree(request.getfixturevalue("recorded"), ".", dirs_exist_ok=True)
    for given in GOOD[command]:
        arguments = [server if argument == "SERVER" else argument for argument in given]
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
