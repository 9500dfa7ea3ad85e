"""`plait rounds emit --to p`: the emitted text, read by the front end for P, has the states and the verdict."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from plait import System, always, check
from plait.cli.main import main
from plait.model.loading.loader import load
from plait.model.system import with_properties
from plait.rounds.check import check_rounds
from plait.rounds.distal.module import module_of
from plait.rounds.emit.description import describe
from plait.rounds.emit.distal.program import distal_text
from plait.rounds.emit.p.program import p_text

CASES = [
    ("one_third_rule", {"phases": 1}, 1),
    ("ben_or", {"inputs": (0, 1), "f": 0, "phases": 1}, 1),
    ("uniform_voting", {"inputs": (0, 1), "least": 1}, 1),
]
LARGER = [
    ("distal_paxos", {"n": 2, "phases": 1}, 1),
    ("commit_rounds", {"participants": 2, "phases": 1}, 1),
    ("view_change", {"few": True}, 1),
    ("distal_paxos", {"n": 3, "phases": 1}, 1),
    ("ben_or", {"phases": 1}, 1),
    ("uniform_voting", {"phases": 1}, 1),
    ("commit_rounds", {"participants": 2, "phases": 1, "doubt": True}, 1),
    ("one_third_rule", {"inputs": (0, 1, 1), "half": True}, 2),
]


def plain(value: Any) -> Any:
    """A value, without what differs in the two languages: the kinds of collections, ids, and numbers that may be none."""
    if hasattr(value, "index") and hasattr(value, "role"):
        return value.index
    if isinstance(value, dict):
        return plain(tuple(value.values()))
    if isinstance(value, set | frozenset):
        return tuple(sorted(map(plain, value), key=repr))
    return tuple(map(plain, value)) if isinstance(value, list | tuple) else value


def states(system: System, names: list[str], dead: str) -> tuple[set[Any], Any]:
    """The values of variables in all states, and the verdict."""
    seen = set()

    @always
    def spy(s: Any) -> bool:
        for p in s:
            if not getattr(p, dead):
                seen.add(tuple(plain(getattr(p, name)) for name in names))
        return True

    return seen, check(with_properties(system, [*system.properties, spy]), keep_going=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "parameters", "phases"), [*CASES, *(pytest.param(*c, marks=pytest.mark.long) for c in LARGER)]
)
def test_the_states_of_the_program(name: str, parameters: dict[str, Any], phases: int, tmp_path: Path) -> None:
    described = describe(load(f"{name}.distal", parameters), phases=phases, assume="none")
    distal, text = tmp_path / "emitted.distal", tmp_path / "emitted.p"
    distal.write_text(distal_text(described), encoding="utf-8")
    text.write_text(p_text(described), encoding="utf-8")
    one, other = module_of(distal).__dict__["emitted"](), load(str(text))
    names = [
        f for f in one.classes[0].__plait_fields__ if f.startswith("s_") and f != "s_voted"
    ]  # none is a sequence in P
    expected, _ = states(one, names, "dead_")
    found, verdict = states(other, names, "dead__")
    rounds = check_rounds(load(f"{name}.distal", parameters), phases=phases)
    if any(p.kind == "always" and p.status == "violated" for p in rounds.properties):
        assert verdict.property == "assertions"
        return
    assert verdict.status == "holds"
    assert {state for state in found if all(state)} == expected  # before the entry action, all variables are empty
    assert len(expected) > 5


@pytest.mark.slow
def test_a_failed_assertion_names_the_property(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "sequential.p"
    options = ["-p", "few=true", "--phases", "1", "--to", "p", "-o", str(file)]
    assert main(["rounds", "emit", "view_change.distal", *options]) == 0
    assert f"plait check {file}" in capsys.readouterr().err
    assert main(["check", str(file)]) == 1
    assert "completeness" in capsys.readouterr().out


@pytest.mark.skipif(shutil.which("p") is None, reason="needs the P compiler")
def test_the_p_compiler_takes_it(tmp_path: Path) -> None:
    file = tmp_path / "sequential.p"
    file.write_text(p_text(describe(load("uniform_voting.distal", {}), phases=1, assume="none")), encoding="utf-8")
    subprocess.run(["p", "compile", "-pf", str(file), "-o", str(tmp_path / "made")], check=True, timeout=300)
