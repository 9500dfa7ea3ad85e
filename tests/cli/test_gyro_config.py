"""`plait gyro serve --config`: every option, the command line wins, and mistakes are told."""

from __future__ import annotations

import inspect
import tomllib
from pathlib import Path
from typing import Any

import pytest

from plait.cli import gyro_serve
from plait.cli.main import app, main

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "deploy" / "gyro" / "gyro.toml"
VALUES: dict[str, Any] = {
    "application": "shop.py", "servers": 5, "db": "postgresql", "dsn": ["a", "b"], "schema": "x/shop.sql", "data": "d.sql",
    "classification": "c.json", "log": "etcd:http://h:1", "folder": "f", "host": "0.0.0.0", "port": 9000,
    "url": ["http://a:1", "http://b:2"], "only": [1, 0], "secret-file": "s", "log-format": "json", "max-lag": 7,
    "client-rate": 2.5, "rate": 100, "queue": 9, "trusted-proxy": ["10.0.0.1"], "tls-certificate": "c.pem",
    "tls-key": "/k.pem", "tls-ca": "ca.pem", "tls-clients": "optional",
    "fence": "etcd:http://f:1", "replicate": "background", "rebuild": 1, "upgrade": True, "recording": "shop.yaml",
    "join": "http://d:3", "older-copy": [2],
}  # fmt: skip
FILES = {
    "application",
    "schema",
    "data",
    "classification",
    "folder",
    "secret-file",
    "tls-certificate",
    "tls-key",
    "tls-ca",
    "recording",
}


def toml(content: dict[str, Any]) -> str:
    return "".join(
        f"{key} = {str(value).lower() if isinstance(value, bool) else repr(value)}\n" for key, value in content.items()
    )


def parsed(*arguments: str) -> dict[str, Any]:
    """The arguments with which `serve` would be called."""
    _, bound, _ = app.parse_args(["gyro", "serve", *arguments], exit_on_error=False, print_error=False)
    found = {name.replace("_", "-"): value for name, value in bound.arguments.items()}
    found.pop("config", None)
    return found


def test_every_option_is_possible_in_the_file(tmp_path: Path) -> None:
    parameters = inspect.signature(gyro_serve.serve).parameters
    assert {name.replace("_", "-") for name in parameters} == VALUES.keys() | {"config"}
    (tmp_path / "gyro.toml").write_text(toml(VALUES), encoding="utf-8")
    found = parsed("--config", str(tmp_path / "gyro.toml"))
    assert found.keys() == VALUES.keys()
    for key, value in VALUES.items():
        if key in FILES:
            assert Path(found[key]) == tmp_path / value, key
        else:
            assert found[key] == (tuple(value) if isinstance(value, list) else value), key


def test_the_command_line_wins(tmp_path: Path) -> None:
    (tmp_path / "gyro.toml").write_text(toml(VALUES), encoding="utf-8")
    found = parsed(
        "mine.py", "--config", str(tmp_path / "gyro.toml"), "--port", "1", "--url=http://c:3", "--schema", "y.sql"
    )
    assert (found["application"], found["port"], found["schema"]) == ("mine.py", 1, Path("y.sql"))
    assert found["url"] == ("http://c:3",), "a list of the file is replaced, not extended"
    assert found["queue"] == 9


def test_without_a_file_nothing_changes() -> None:
    assert parsed("mine.py", "--port", "1") == {"application": "mine.py", "port": 1}


@pytest.mark.parametrize(
    ("content", "said", "hint"),
    [
        ("prot = 1\n", "unknown key prot", "did you mean port?"),
        ('tls_key = "k"\n', "unknown key tls_key", "did you mean tls-key?"),
        ('config = "x"\n', "unknown key config", "keys: application, "),
        ("[tls]\nkey = 1\n", "unknown key tls", "did you mean tls-"),
        ("port = [1, 2]\n", "port is a list", "give one value"),
        ("port = true\n", "port is neither a string nor a number", "port = "),
        ("url = [{a = 1}]\n", "url is neither a string nor a number", "url = "),
        ("port = 0\n", "gyro.toml: '0' is too small", "give 1 or more"),
        ('port = "x"\n', "gyro.toml: 'x' does not fit", "expected a whole number"),
        ('db = "oracle"\n', "oracle", ""),
        ("rate = -1\n", "--rate", ""),
        ("folder = 3\nport = 0\n", "--port", ""),
        ('url = ["http://a:1", "http://a:1"]\n', "--url http://a:1 is given twice", "once"),
        ("port = \n", "is not TOML", "port = 8400"),
        (None, "cannot be read", "give a TOML file"),
    ],
)
def test_mistakes_are_told(
    content: str | None, said: str, hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "gyro.toml"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    assert main(["gyro", "serve", "x.py", "--config", str(file)]) == 2
    error, _, told = capsys.readouterr().err.partition("hint: ")
    assert said in error
    assert hint in told
    assert "Traceback" not in error


def test_a_short_secret_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PLAIT_GYRO_SECRET", "secret")
    assert main(["gyro", "serve", "x.py"]) == 2
    assert "PLAIT_GYRO_SECRET has 6 characters" in capsys.readouterr().err


def test_the_example_is_right() -> None:
    """The documented file has only options, and the guide shows it as it is."""
    found = parsed("--config", str(EXAMPLE), "--only", "2")
    content = tomllib.loads(EXAMPLE.read_text(encoding="utf-8"))
    assert found.keys() == content.keys() | {"only"}
    assert found["url"] == tuple(content["url"])
    assert len(found["dsn"]) == len(found["url"]) == 3
    guide = (ROOT / "docs" / "guides" / "gyro-operating.md").read_text(encoding="utf-8")
    assert EXAMPLE.read_text(encoding="utf-8") in guide
