"""Every example, with the verdict that its documentation promises."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from plait import Clock, check
from plait.kernel.verdict import Verdict
from plait.model.loading.loader import load
from tests.oracle.explorer import explore
from tests.support.examples import BOUNDS, CASES, FOLDER, LARGE, name_of
from tests.support.further import further


def verdict_of(name: str, parameters: dict[str, Any], **options: Any) -> Verdict:
    return check(load(str(FOLDER / f"{name}.py"), parameters, parse=False), **options)


@pytest.mark.parametrize(("name", "parameters", "violated"), CASES, ids=map(name_of, CASES))
def test_verdicts(name: str, parameters: dict[str, Any], violated: str | None) -> None:
    verdict = verdict_of(name, parameters)
    assert verdict.property == violated
    assert verdict.status == ("violated" if violated else "holds")
    assert (verdict.trace is not None) == (violated is not None)
    assert verdict.warnings == []


SMALL = [case for case in CASES if case[0] not in LARGE]
LONG = [
    ("alternating_bit", {"careful": False}),
    ("courier", {"assume": "processes,messages,loss"}),
    ("philosophers", {"number": 4}),
    ("philosophers", {"polite": False}),
    ("philosophers", {"fair": "weak"}),
    ("timed_lease", {"pauses": False, "drift": 1, "margin": 1}),
    ("traitor", {"quorum": 2}),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        *(pytest.param(case, id=name_of(case)) for case in SMALL if case[:2] not in LONG),
        *further(*(case for case in SMALL if case[:2] in LONG), name=name_of),
    ],
)
def test_the_oracle_agrees(case: tuple[str, dict[str, Any], str | None]) -> None:
    name, parameters, violated = case
    system = load(str(FOLDER / f"{name}.py"), parameters, parse=False)
    for process in system.processes:
        for clock, bound in BOUNDS.get(name, {}).items():
            if clock in process.__plait_clocks__:
                process.__dict__[clock] = Clock(running=False, bound=bound)
    truth = explore(system)
    assert truth.violated == {violated} & truth.properties.keys()
    found = verdict_of(name, parameters, keep_going=True).statistics
    assert (found.states, found.transitions, found.terminal_states) == (truth.states, truth.transitions, truth.terminal)


@pytest.mark.parametrize(
    "file", sorted([*FOLDER.glob("*.py"), *FOLDER.glob("shared/*.py")]), ids=lambda file: file.name
)
def test_every_example_explains_itself_and_is_tested(file: Path) -> None:
    assert ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
    mine = [case for case in CASES if FOLDER / f"{case[0]}.py" == file]
    assert {case[2] is None for case in mine} == {True, False}, "sound and faulty"
