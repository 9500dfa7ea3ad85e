"""Every example, with the verdict that its documentation promises."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from plait import check
from plait.kernel.verdict import Verdict
from plait.model.loader import load
from tests.oracle.explorer import explore

FOLDER = Path(__file__).parents[1] / "examples"
CASES: list[tuple[str, dict[str, Any], str | None]] = [
    ("lease", {}, "no_stale_write"),
    ("lease", {"fencing": True}, None),
    ("lease", {"fencing": True, "clients": 3}, None),
    ("election", {}, "at_most_one_leader"),
    ("election", {"crashes": 0}, None),
    ("election", {"persistent": True}, None),
    ("election", {"persistent": True, "crashes": 2}, None),
    ("traitor", {}, None),
    ("traitor", {"quorum": 2}, "consistency"),
    ("traitor", {"honest": 2, "quorum": 2}, "consistency"),
    ("workers", {}, None),
    ("workers", {"faulty": True}, "everybody_has_its_square"),
    ("workers", {"faulty": True, "clients": 1}, None),
    ("job_queue", {}, "linearizable"),
    ("job_queue", {"copies": 0}, None),
    ("job_queue", {"deduplicate": True}, None),
    ("two_messages", {}, None),
    ("two_messages", {"hasty": True}, "acknowledged_means_received"),
    ("two_actors", {}, None),
    ("two_actors", {"forgetful": True}, "numbers_differ"),
    ("diamond", {}, None),
    ("late_votes", {}, "no_late_hand"),
    ("late_votes", {"strict": True}, None),
    ("diamond", {"missing": 1}, "everybody_has_bread"),
    ("philosophers", {}, None),
    ("philosophers", {"polite": False}, "deadlock_free"),
    ("philosophers", {"fair": "weak"}, "the_first_one_eats"),
    ("philosophers", {"fair": "none"}, "the_first_one_eats"),
    ("philosophers", {"number": 4}, None),
]
"""File, parameters, and the property that is violated, if one is."""


def name_of(case: tuple[str, dict[str, Any], str | None]) -> str:
    return " ".join([case[0], *(f"{k}={v}" for k, v in case[1].items())])


def verdict_of(name: str, parameters: dict[str, Any], **options: Any) -> Verdict:
    return check(load(str(FOLDER / f"{name}.py"), parameters, parse=False), **options)


@pytest.mark.parametrize(("name", "parameters", "violated"), CASES, ids=map(name_of, CASES))
def test_verdicts(name: str, parameters: dict[str, Any], violated: str | None) -> None:
    verdict = verdict_of(name, parameters)
    assert verdict.property == violated
    assert verdict.status == ("violated" if violated else "holds")
    assert (verdict.trace is not None) == (violated is not None)
    assert verdict.warnings == []


@pytest.mark.slow
@pytest.mark.parametrize(("name", "parameters", "violated"), CASES, ids=map(name_of, CASES))
def test_the_oracle_agrees(name: str, parameters: dict[str, Any], violated: str | None) -> None:
    truth = explore(load(str(FOLDER / f"{name}.py"), parameters, parse=False))
    assert truth.violated == {violated} & truth.properties.keys()
    found = verdict_of(name, parameters, keep_going=True).statistics
    assert (found.states, found.transitions, found.terminal_states) == (truth.states, truth.transitions, truth.terminal)


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.py")), ids=lambda file: file.name)
def test_every_example_explains_itself_and_is_tested(file: Path) -> None:
    assert ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
    mine = [case for case in CASES if case[0] == file.stem]
    assert {case[2] is None for case in mine} == {True, False}, "sound and faulty"
