"""Log lines: JSON objects with the right keys, and no secrets in them."""

from __future__ import annotations

import datetime
import io
import json
import logging
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from plait.gyro.belt.client import Client
from plait.gyro.belt.service.events import LogFormat, configure, event, passwords
from plait.gyro.belt.supervisor import free_ports, unready
from tests.gyro.belt.processes import processes
from tests.support.patience import PATIENCE, until

STORE = Path(__file__).parents[3] / "examples" / "gyro" / "store.py"
KEYS = {"time", "level", "server", "event", "message", "fields"}


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """A place for log lines; the handlers of the process are as before afterwards."""
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", root.level)
    return io.StringIO()


@pytest.mark.parametrize("form", ["text", "json"])
def test_secrets_are_not_shown(form: LogFormat, stream: io.StringIO) -> None:
    configure(
        form,
        server=1,
        secrets=["swordfish", *passwords(["host=a password='open sesame'", "postgresql://u:xyzzy@b/d"])],
        stream=stream,
    )
    logger = logging.getLogger("plait.gyro")
    logger.error("header X: swordfish", extra=event("e", given="swordfish", number=3))
    logger.error("it says open sesame and xyzzy")
    logger.error('connection to "host=c password=plugh dbname=d" failed, and etcd:http://root:plover@h:1/ too')
    try:
        raise ValueError("swordfish")
    except ValueError:
        logger.exception("a traceback")
    text = stream.getvalue()
    for secret in ("swordfish", "open sesame", "xyzzy", "plugh", "plover"):
        assert secret not in text
    assert text.count("***") >= 6
    assert "dbname=d" in text
    assert "root:***@h:1" in text


def test_a_json_line(stream: io.StringIO) -> None:
    configure("json", server=2, stream=stream)
    logging.getLogger("plait.gyro").warning(
        "the log\ndoes not %s", "answer", extra=event("log_gone", error=OSError("x"), n=1)
    )
    (line,) = stream.getvalue().splitlines()
    found = json.loads(line)
    assert found.keys() == KEYS
    assert (found["level"], found["server"], found["event"]) == ("warning", 2, "log_gone")
    assert (found["message"], found["fields"]) == ("the log\ndoes not answer", {"error": "x", "n": 1})
    assert datetime.datetime.fromisoformat(found["time"]).tzinfo is not None


@pytest.mark.slow
def test_all_lines_of_the_command_are_json(tmp_path: Path) -> None:
    """A server starts and stops; the secret is in none of the lines."""
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    (tmp_path / "secret").write_text("a-very-long-secret-of-this-test", encoding="ascii")
    command = [
        sys.executable,
        "-m",
        "plait.cli.main",
        "gyro",
        "serve",
        str(STORE),
        "--servers",
        "1",
        "--port",
        str(port),
    ]
    command += ["--folder", str(tmp_path / "f"), "--log-format", "json", "--secret-file", str(tmp_path / "secret")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: unready(url) is None, "the server is ready")
        client = Client(url)
        client.call("create", cart=1)
        client.close()
    finally:
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)
    lines: list[dict[str, Any]] = [json.loads(line) for line in said.splitlines()]
    assert all(line.keys() >= KEYS for line in lines)
    assert {"started", "stopped", "supervisor"} <= {line["event"] for line in lines}
    (started,) = [line for line in lines if line["event"] == "started"]
    assert (started["server"], started["fields"]["url"]) == (0, url)
    assert "a-very-long-secret" not in said


@pytest.mark.slow
def test_a_start_that_fails_says_why_without_the_password(tmp_path: Path) -> None:
    with processes(1) as cluster:
        settings = msgspec.structs.replace(
            cluster.settings, db="postgresql", dsns=["host=127.0.0.1 port=9 password=opensesame"], log_format="json"
        )
        file = tmp_path / "settings.json"
        file.write_bytes(msgspec.json.encode(settings))
        command = [sys.executable, "-m", "plait.gyro.belt.server", str(file), "0"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 3
    (line,) = map(json.loads, done.stderr.splitlines())
    assert (line["event"], line["level"]) == ("start_failed", "error")
    assert "opensesame" not in done.stderr
