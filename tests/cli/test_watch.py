"""`plait check --watch`: checks again after each save, whatever state the model is in; Ctrl-C ends it truthfully."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from plait.cli import watch
from plait.cli.main import main
from tests.cli.endless import ENDLESS, PLAIT
from tests.support.patience import PATIENCE, started, until

MODEL = """
from limits import LIMIT
from plait import Process, System, action, always

class Counter(Process):
    number: int = 0

    @action(when=lambda self: self.number < 3)
    def tick(self):
        self.number += 1

@always
def small(s):
    return all(c.number <= LIMIT for c in s[Counter])

model = System([Counter()], properties=[small])
"""


class Watching:
    """A `plait check --watch` that runs, and what it has printed."""

    def __init__(self, process: subprocess.Popen[str], output: Path) -> None:
        self.process, self.output = process, output

    def says(self, text: str, times: int = 1) -> None:
        """Wait until a text was printed so many times."""

        def said() -> bool:
            assert self.process.poll() is None, self.output.read_text()
            return self.output.read_text().count(text) >= times

        until(said, f"{text!r} is printed {times} times")
        assert self.output.read_text().count(text) == times, self.output.read_text()

    def ends(self, number: signal.Signals = signal.SIGINT) -> int:
        """Send a signal, and return the exit code."""
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        assert "Traceback" not in self.output.read_text()
        return code


@contextmanager
def watching(*arguments: str) -> Iterator[Watching]:
    output = Path("output")
    with (
        output.open("a") as stream,
        started([*PLAIT, "check", *arguments, "--watch", "-q"], stdout=stream, stderr=stream) as process,
    ):
        yield Watching(process, output)


def save(file: Path, text: str) -> None:
    """Save a file within the second and with the size of the version before: Python then trusts its compiled file."""
    before = file.stat().st_mtime_ns // 10**9 * 10**9
    file.write_text(text)
    os.utime(file, ns=(before + 1, before + 1))


@pytest.mark.slow
def test_a_module_is_saved(workplace: Path) -> None:
    """On a terminal, the screen is cleared before each check, so that it shows the last one only."""
    (workplace / "limits.py").write_text("LIMIT = 3\n")
    (workplace / "model.py").write_text(MODEL)
    terminal, inner = pty.openpty()
    command = [*PLAIT, "check", "model.py", "--watch", "-q"]
    shown = b""
    with started(command, stdin=inner, stdout=inner, stderr=inner, env={**os.environ, "TERM": "xterm"}) as process:
        os.close(inner)
        while b"Ctrl-C ends" not in shown:
            shown += os.read(terminal, 1000)
        save(workplace / "limits.py", "LIMIT = 1\n")
        while shown.count(b"Ctrl-C ends") < 2:
            shown += os.read(terminal, 1000)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 1, "the exit code of the last check"
    os.close(terminal)
    before, first, second = shown.split(b"\x1b[H\x1b[2J")
    assert before == b""
    assert b"HOLDS small" in first
    assert b"VIOLATED small" in second
    assert b"watching limits.py, model.py: Ctrl-C ends" in first
    assert (workplace / ".plait" / "model-small.itf.json").exists()


@pytest.mark.slow
def test_mistakes_are_shown_and_watching_goes_on(workplace: Path) -> None:
    (workplace / "model.py").write_text(MODEL)
    with watching("model.py") as command:
        command.says("No module named 'limits'")
        command.says("watching model.py: Ctrl-C ends")
        (workplace / "limits.py").write_text("LIMIT =\n")
        command.says("SyntaxError")
        command.says("watching limits.py, model.py: Ctrl-C ends")
        (workplace / "limits.py").write_text("LIMIT = 3\n")
        command.says("HOLDS small")
        command.says("watching limits.py, model.py: Ctrl-C ends", 2)
        (workplace / "model.py").unlink()
        command.says("there is no file model.py")
        command.says("watching limits.py, model.py: Ctrl-C ends", 3)
        assert command.ends(signal.SIGTERM) == 2


@pytest.mark.slow
def test_a_save_ends_the_check_that_runs(workplace: Path) -> None:
    (workplace / "limits.py").write_text("LIMIT = 3\n")
    (workplace / "model.py").write_text(ENDLESS)
    with watching("model.py", "--memory", "1G", "--workers", "1") as command:
        until((workplace / "running").exists, "the search begins")
        (workplace / "model.py").write_text(MODEL)
        command.says("HOLDS small")
        command.says("Ctrl-C ends")
        assert command.ends() == 0


@pytest.mark.slow
def test_ctrl_c_ends_the_check_that_runs(workplace: Path) -> None:
    """With what was found so far; its exit code is that of the command."""
    two = ENDLESS.replace("properties=[positive]", "properties=[positive, always(lambda s: True)]")
    (workplace / "model.py").write_text(two.replace("c.number >= 0", "c.number < 2"))
    with watching("model.py", "--memory", "1G", "--workers", "1", "--keep-going") as command:
        until((workplace / "running").exists, "the search begins")
        assert command.ends() == 1
        assert "VIOLATED positive" in command.output.read_text()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["counter.py", "--json"], "--watch cannot be combined with --json"),
        (["counter.py", "--timeout", "soon"], "--timeout: 'soon' does not fit"),
        (["counter.py", "--html", "no/where.html"], "--html: no/where.html cannot be written"),
    ],
)
def test_what_no_save_can_repair(
    counter: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str
) -> None:
    assert main(["check", *arguments, "--watch"]) == 2
    assert f"error: {expected}" in capsys.readouterr().err


@pytest.mark.slow
def test_a_target_that_is_not_there(workplace: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """There is no file to wait for: its name is wrong."""
    assert main(["check", "missing.py", "--watch"]) == 2
    assert capfd.readouterr().err.count("error: ") == 1


def test_a_model_of_an_installed_package(
    workplace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_started", lambda report, command: subprocess.Popen(["true"]))
    assert main(["check", "some.package:model", "--watch"]) == 2
    assert "error: --watch: some.package:model is in an installed package" in capsys.readouterr().err
