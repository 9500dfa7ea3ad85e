"""`native="only"` refuses a model with a function that needs Python, and counts the questions that are left to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plait import Process, System, UsageError, action, always, aux, check
from plait.cli.main import main
from tests.support.natively import checked


class Plain(Process):
    n: int = 0

    @action(when=lambda self: self.n < 3)
    def up(self) -> None:
        self.n += 1


class Trying(Plain):
    @action(when=lambda self: self.n == 3)
    def look(self) -> None:
        try:
            self.n = {0: 1}[self.n]
        except KeyError:
            self.n = 4


class Raising(Plain):
    @action(when=lambda self: self.n == 3)
    def look(self) -> None:
        self.n = {0: 1}[self.n]


class Writing(Plain):
    steps: int = aux(0)

    @action(when=lambda self: self.n < 3)
    def up(self) -> None:
        self.n += 1
        self.steps += 1


def small(s: Any) -> bool:
    return all(p.n < 5 for p in s[Plain])


def reflected(s: Any) -> bool:
    return all(vars(s) is not None and p.n < 5 for p in s[Plain])


def system(process: Process, predicate: Any = small) -> System:
    return System([process], properties=[always(predicate, name="small")])


def refused(model: System, **options: Any) -> UsageError:
    with pytest.raises(UsageError) as caught:
        check(model, native="only", **options)
    return caught.value


def test_a_model_that_runs_natively() -> None:
    verdict = check(system(Plain()), native="only")
    assert (verdict.status, verdict.statistics.states, verdict.warnings) == ("holds", 4, [])


def test_each_function_that_needs_python_is_named_with_its_place() -> None:
    error = refused(system(Trying(), reflected))
    lines = error.message.splitlines()
    assert lines[0] == "native='only': these functions of the model need Python:"
    place = Path(__file__).name
    source = Path(__file__).read_text(encoding="utf-8").splitlines()
    line = 1 + next(i for i, text in enumerate(source) if text.strip() == "try:")
    assert f"  Trying.look: try statement, {place}:{line}" in lines
    line = 1 + next(i for i, text in enumerate(source) if "vars(s)" in text)
    assert any(text.startswith("  property small: ") and text.endswith(f"{place}:{line}") for text in lines)
    assert len(lines) == 3
    assert error.hint is not None
    assert "native='auto'" in error.hint
    assert check(system(Trying(), reflected)).status == "holds"


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "model.py"
    file.write_text(
        "from plait import Process, System, action, always\n"
        "class One(Process):\n"
        "    n: int = 0\n"
        "    @action(when=lambda self: self.n < 3)\n"
        "    def up(self):\n"
        "        with open('/dev/null'):\n"
        "            self.n += 1\n"
        "system = System([One()], properties=[always(lambda s: s[One][0].n < 4, name='small')])\n",
        encoding="utf-8",
    )
    assert main(["check", str(file), "--native", "only"]) == 2
    shown = capsys.readouterr().err
    assert "--native only: these functions of the model need Python:" in shown
    assert "One.up: with statement, model.py:6" in shown
    assert "--native auto" in shown
    assert main(["check", str(file)]) == 0


def test_coverage_needs_python() -> None:
    error = refused(system(Plain()), coverage=True)
    assert error.message == "native='only': coverage is recorded by running the model in Python"
    assert error.hint == "leave coverage out, or use native='auto'"


def test_decomposition_needs_python() -> None:
    error = refused(system(Writing()), reduce="decomposition")
    assert error.message.startswith("reduce='decomposition': cannot be used if the model runs natively only")
    verdict = check(system(Writing()), native="only", reduce="auto")
    assert verdict.status == "holds"
    reasons = {r.name: (r.applied, r.reason) for r in verdict.statistics.reductions}
    assert reasons["decomposition"][0] is False
    assert "natively only" in reasons["decomposition"][1]


def test_questions_that_are_left_to_python_are_counted() -> None:
    """An exception, for example: CPython makes it, with the user's traceback."""
    found = check(system(Raising()), native="only", workers=1)
    assert found.property == "no_exceptions"
    assert found.warnings == ["native functions left 1 question to Python: a key that is missing"]
    usual = checked(system(Raising()), "auto")
    assert usual.verdict is not None
    assert usual.verdict.trace == found.trace
    assert usual.verdict.warnings == []
