"""A long counterexample does not flood a terminal. A pipe gets all of it."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import plait

MODEL = """
from plait import Process, System, action, always

class Counter(Process):
    n: int = 0

    @action
    def count(self) -> None:
        self.n += 1

def model() -> System:
    return System([Counter()], properties=[always(lambda s: s[Counter][0].n < 250, name="small")])
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "counter.py").write_text(MODEL, encoding="utf-8")
    return tmp_path


def on_terminal(arguments: list[str], folder: Path, code: int = 1) -> str:
    """What a terminal shows."""
    reader, writer = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "plait.cli.main", *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=writer,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "NO_COLOR": "1"},
    )
    os.close(writer)
    shown = b""
    while True:
        try:
            part = os.read(reader, 65536)
        except OSError:  # the end of a terminal
            break
        if not part:
            break
        shown += part
    os.close(reader)
    assert process.wait() == code
    return shown.decode().replace("\r\n", "\n")


def steps(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"^ *(\d+)\. Counter0", text, re.MULTILINE)]


@pytest.mark.slow
def test_a_terminal_shows_the_end_and_the_verdict_last(folder: Path) -> None:
    text = on_terminal(["check", "counter.py"], folder)
    assert steps(text) == [1, 2, 3, *range(239, 251)]
    assert "steps 4 to 238 are not shown" in text
    *_, verdict, replay = text.splitlines()
    assert verdict.startswith("VIOLATED small  (250 steps)")
    assert replay.startswith("replay: ")
    assert steps(on_terminal(["check", "counter.py", "--all"], folder)) == list(range(1, 251))


@pytest.mark.slow
def test_a_pipe_gets_every_step(folder: Path) -> None:
    result = plait(["check", "counter.py"], folder)
    assert steps(result.stdout) == list(range(1, 251))


@pytest.mark.slow
def test_a_replay_is_abridged_as_well(folder: Path) -> None:
    plait(["check", "counter.py", "--quiet", "--trace", "run.json"], folder)
    text = on_terminal(["replay", "run.json"], folder, code=0)
    assert steps(text) == [1, 2, 3, *range(239, 251)]
    assert "steps 4 to 238 are not shown" in text
    assert text.splitlines()[-1] == "reproduced: property small is violated after 250 steps"
    assert steps(on_terminal(["replay", "run.json", "--step", "40"], folder, code=0)) == [1, 2, 3, *range(29, 41)]
    assert steps(on_terminal(["replay", "run.json", "--all"], folder, code=0)) == list(range(1, 251))
    assert steps(plait(["replay", "run.json"], folder).stdout) == list(range(1, 251))
