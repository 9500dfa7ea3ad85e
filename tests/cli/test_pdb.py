"""`plait replay --pdb`: the debugger that the user has chosen stops in the step that the user has chosen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from plait.cli.main import main
from tests.cli.endless import PLAIT
from tests.support.patience import PATIENCE

LOSING = """
from plait import Message, Process, System, action, always, on, unordered

class Go(Message): ...

class Client(Process):
    number: int = 0

    @action(when=lambda self: self.number == 0)
    def ask(self):
        self.number = 1
        self.send(self.id, Go())

    @on(Go, where=lambda self, m: False)
    def go(self, m):
        pass

@always
def pending(s):
    return s[Client][0].number == len(s[Client][0].inbox)

losing = System([Client()], network=unordered(lossy=True), properties=[pending])
"""


@pytest.fixture
def trace(counter: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """A counterexample of two steps."""
    assert main(["check", "counter.py", "-p", "most=1", "--trace", "t.json", "-q"]) == 1
    capsys.readouterr()
    return "t.json"


@pytest.fixture
def stops(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number that the counter has where the debugger stops."""
    found: list[int] = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: found.append(sys._getframe(1).f_locals["self"].number))
    return found


def test_the_last_step(trace: str, stops: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", trace, "--pdb", "-q"]) == 0
    assert stops == [1], "once, although the handler runs several times in a replay"
    assert capsys.readouterr().out.splitlines() == [
        "stopped in step 2 of 2: Counter0  tick",
        "reproduced: property small is violated after 2 steps",
    ]


def test_a_chosen_step(trace: str, stops: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", trace, "--pdb", "--step", "1"]) == 0
    assert stops == [0]
    said = capsys.readouterr().out
    assert said.index("initially") < said.index("stopped in step 1 of 2") < said.index("after step 1")


@pytest.mark.slow
def test_pdb(trace: str) -> None:
    """The debugger of Python, as a user works with it."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONBREAKPOINT"}

    def replayed(script: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [*PLAIT, "replay", trace, "--pdb", "-q"]
        return subprocess.run(
            command,
            input=script,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
            env={**environment, **more},
        )

    done = replayed("p self.number\nn\np self.number\nc\n")
    assert done.returncode == 0, done.stderr
    first, *said = done.stdout.splitlines()
    assert first == "stopped in step 2 of 2: Counter0  tick"
    assert said[:3:2] == [next(line for line in said if "counter.py(" in line), "(Pdb) 1"]
    assert said[1] == "-> self.number += 1", "the first line of the handler has not run yet"
    assert "(Pdb) 2" in said
    assert said[-1] == "(Pdb) reproduced: property small is violated after 2 steps"

    done = replayed("q\n")
    assert (done.returncode, done.stderr) == (3, "error: interrupted\n")

    Path("mine.py").write_text("import sys\ndef stop():\n    print('mine:', sys._getframe(1).f_code.co_name)\n")
    done = replayed("", PYTHONBREAKPOINT="mine.stop", PYTHONPATH=".")
    assert (done.returncode, done.stdout.splitlines()[1]) == (0, "mine: tick")


def test_a_debugger_that_is_off(
    trace: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "breakpointhook", sys.__breakpointhook__)  # pytest has its own
    monkeypatch.setenv("PYTHONBREAKPOINT", "0")
    assert main(["replay", trace, "--pdb", "-q"]) == 0
    assert "warning: PYTHONBREAKPOINT=0 turns the debugger off" in capsys.readouterr().err


def test_a_step_that_runs_no_handler(workplace: Path, stops: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    (workplace / "losing.py").write_text(LOSING)
    assert main(["check", "losing.py", "--trace", "t.json", "-q"]) == 1
    assert main(["replay", "t.json", "--pdb", "-q"]) == 0
    assert stops == [0], "the last step loses a message, the one before it runs a handler"
    assert main(["replay", "t.json", "--pdb", "--step", "2"]) == 2
    assert capsys.readouterr().err == ("error: --pdb: step 2 (Client0: lose) runs no handler\nhint: give --step 1\n")


def test_a_trace_without_steps(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (workplace / "losing.py").write_text(LOSING.replace("number ==", "number + 1 =="))
    assert main(["check", "losing.py", "--trace", "t.json", "-q"]) == 1
    assert main(["replay", "t.json", "--pdb", "-q"]) == 2
    assert "error: --pdb: no step of this trace runs a handler" in capsys.readouterr().err


@pytest.mark.slow
def test_a_program_of_bmc(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "int x = 0;\nprocess p { x = 1; }\nalways zero: x == 0;\n"
    (workplace / "one.plait").write_text(text)
    assert main(["bmc", "one.plait", "--depth", "2", "--trace", "t.json", "-q"]) == 1
    assert main(["replay", "t.json", "--pdb"]) == 2
    assert "error: --pdb: the program of plait bmc has no handlers in Python" in capsys.readouterr().err
