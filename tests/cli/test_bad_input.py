"""Bad input gets `error: …` and `hint: …` on stderr, no result on stdout, exit code 2, and no traceback of ours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plait.cli import main as entry
from plait.cli.main import main
from tests.support.imports import forget


def refused(capsys: pytest.CaptureFixture[str], *arguments: str, out: bool = False) -> str:
    """Run a command that must fail; what it said on stderr."""
    code = main(arguments)
    captured = capsys.readouterr()
    assert code == 2, captured.err
    assert out or captured.out == ""
    assert captured.err.startswith("error: ")
    assert "\nhint: " in captured.err
    assert "Traceback" not in captured.err
    return captured.err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["chekc"], "check"),
        (["check"], "TARGET"),
        (["check", "counter.py", "extra"], "extra"),
        (["check", "counter.py", "--bogus", "1"], "--bogus"),
        (["check", "counter.py", "--search", "best"], "bfs"),
        (["check", "counter.py", "--max-states", "many"], "--max-states: 'many'"),
        (["check", "counter.py", "--max-states", "1.5"], "whole number"),
        (["check", "counter.py", "--max-states", "-1"], "--max-states"),
        (["check", "counter.py", "--workers", "0"], "1 or more"),
        (["check", "counter.py", "--timeout", "soon"], "2m"),
        (["check", "counter.py", "--memory", "4X"], "500M"),
        (["check", "counter.py", "-p", "limit"], "name=value"),
        (["check", "counter.py", "-p", "=3"], "name=value"),
        (["check", "counter.py", "-p", "limit=1", "-p", "limit=2"], "twice"),
        (["check", "counter.py", "-p", "limit=three"], "expected an int"),
        (["check", "counter.py", "-p", "limti=3"], "did you mean 'limit'"),
        (["check", "counter.py", "--property", "large"], "small, end"),
        (["check", "counter.py", "--trace", "no/where/t.json"], "no folder"),
        (["check", "counter.py", "--html", "."], "is a folder"),
        (["check", "paxso"], "did you mean 'paxos'"),
        (["check", "missing.py"], "no file missing.py"),
        (["check", "broken.py"], "broken.py, line 2"),
        (["show", "broken.py"], "ZeroDivisionError"),
        (["show", "counter.py:nothing"], "has no 'nothing'"),
        (["show", "paxos", "-p", "faulty=everything"], "'acceptor'"),
        (["check", "paxos", "-p", "acceptors=0"], "acceptors"),
        (["completion", "tcsh"], "fish"),
        (["replay", "missing.json"], "missing.json"),
        (["replay", "."], "."),
        (["replay", "counter.py"], "JSON"),
        (["replay", "other.json"], "other.json"),
        (["replay", "itf.json"], "another ITF"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input(counter: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str) -> None:
    (counter.parent / "broken.py").write_text("x = 0\ny = 1 / x\n")
    (counter.parent / "other.json").write_text('{"hello": "world"}')
    (counter.parent / "itf.json").write_text('{"#meta": {"format": "ITF"}, "vars": ["x"], "states": [{"x": 1}]}')
    assert expected in refused(capsys, *arguments)


def save(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "counter.py", "-p", "most=1", "--trace", "t.json"]) == 1
    capsys.readouterr()


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("self.number < self.limit", "self.number < 1", "step 2"),
        ("self.number += 1", "self.number += 2", "step 1"),
        ("def tick", "def tack", "step 1"),
        ("c.number <= most", "True", "small"),
        ("def small", "def little", "small"),
        ("limit: int = 3, most", "limit: int = 3, more", "no parameter 'most'"),
        ("most: int = 10", "most: str = 'x'", "most=1 does not fit"),
        ("def counter", "def contour", "has no 'counter'"),
        ("class Counter", "syntax error", "SyntaxError"),
    ],
    ids=lambda text: str(text),
)
def test_a_stale_trace(
    counter: Path, capsys: pytest.CaptureFixture[str], before: str, after: str, expected: str
) -> None:
    save(capsys)
    text = counter.read_text()
    assert before in text
    counter.write_text(text.replace(before, after))
    forget(counter)
    assert expected in refused(capsys, "replay", "t.json", out=True)


def test_a_damaged_trace(counter: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(capsys)
    file = counter.parent / "t.json"
    whole = file.read_text()
    file.write_text(whole[: len(whole) // 2])
    assert "t.json" in refused(capsys, "replay", "t.json")
    document = json.loads(whole)
    document["#meta"]["plait"]["version"] = 99
    file.write_text(json.dumps(document))
    assert "version 99" in refused(capsys, "replay", "t.json")
    assert "steps" in _step_beyond(capsys, file, whole)


def _step_beyond(capsys: pytest.CaptureFixture[str], file: Path, whole: str) -> str:
    file.write_text(whole)
    return refused(capsys, "replay", "t.json", "--step", "9")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("c.number <= most", "c.nubmer <= most", "nubmer"),
        ("self.number += 1", "self.number = object()", "number"),
        ("self.number += 1", "self.send('nobody', None)", "tick"),
        ("self.number < self.limit", "setattr(self, 'number', 5)", "tick"),
    ],
    ids=["unknown field", "value", "unknown process", "guard changes state"],
)
def test_a_model_that_breaks_a_rule(
    counter: Path, capsys: pytest.CaptureFixture[str], before: str, after: str, expected: str
) -> None:
    text = counter.read_text()
    assert before in text
    counter.write_text(text.replace(before, after))
    assert expected in refused(capsys, "check", "counter.py")
    assert expected in refused(capsys, "check", "counter.py", "--json", out=True)


def test_a_handler_that_raises_is_a_violation_that_can_be_replayed(
    counter: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counter.write_text(counter.read_text().replace("self.number += 1", "raise KeyError('oops')"))
    assert main(["check", "counter.py", "--json", "--quiet", "--trace", "t.json"]) == 1
    trace = json.loads(capsys.readouterr().out)["trace"]
    assert (trace["exception"]["type"], trace["exception"]["message"]) == ("KeyError", "'oops'")
    assert trace["exception"]["frames"][-1]["code"] == "raise KeyError('oops')"
    assert main(["replay", "t.json"]) == 0
    assert "Counter.tick raised KeyError: 'oops'" in capsys.readouterr().out


def test_a_mistake_of_ours_asks_to_be_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> int:
        raise AssertionError("impossible")

    monkeypatch.setattr(entry, "app", broken)
    assert main(["zoo"]) == 4
    error = capsys.readouterr().err
    assert "internal error: AssertionError: impossible" in error
    assert "report it" in error


def test_an_interruption_outside_of_a_search_is_clean(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(entry, "app", interrupted)
    assert main(["zoo"]) == 3
    assert capsys.readouterr().err == "error: interrupted\n"
