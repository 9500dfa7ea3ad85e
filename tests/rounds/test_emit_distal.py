"""`plait rounds emit --to distal`: the emitted text reaches what `plait check --rounds` reaches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plait import ModelError, Pid, System, always, check
from plait.cli.main import main
from plait.model.loading.loader import load
from plait.model.system import with_properties
from plait.rounds.distal.layout import formatted
from plait.rounds.distal.module import module_of
from plait.rounds.emit.description import describe
from plait.rounds.emit.distal.program import distal_text
from plait.rounds.sequential import sequentialize

CASES = [
    ("distal_paxos", {"n": 2, "phases": 1}, 1),
    ("ben_or", {"inputs": (0, 1), "f": 0}, 1),
    ("ben_or", {"inputs": (0, 1), "f": 0, "phases": 2, "stubborn": True}, 1),
    ("uniform_voting", {"inputs": (0, 1), "least": 1}, 1),
    ("view_change", {"n": 2, "confused": True, "few": True}, 1),
    ("commit_rounds", {"participants": 2, "phases": 1}, 1),
    ("commit_rounds", {"participants": 2, "phases": 1, "doubt": True}, 1),
    ("one_third_rule", {"phases": 1}, 1),
]
LARGER = [
    ("distal_paxos", {"n": 2, "phases": 2}, 2),
    ("distal_paxos", {"n": 3, "phases": 1}, 1),
    ("distal_paxos", {"n": 2, "phases": 3, "early": True}, 3),
    ("ben_or", {"phases": 2}, 2),
    ("uniform_voting", {"phases": 1}, 1),
    ("view_change", {"phases": 2, "few": True}, 2),
    ("commit_rounds", {"participants": 2, "phases": 2, "hasty": True}, 2),
    ("commit_rounds", {"participants": 3, "phases": 1}, 1),
    ("one_third_rule", {"inputs": (0, 1, 1), "half": True}, 2),
]


def plain(value: Any) -> Any:
    if isinstance(value, Pid):
        return ("pid", value.index)
    return tuple(plain(part) for part in value) if isinstance(value, tuple) else value


def of_engine(system: System, phases: int, names: list[str]) -> tuple[set[Any], dict[str, str]]:
    """The local states of the sequential program, without mailboxes, and its verdicts."""
    seen = set()

    @always
    def spy(s: Any) -> bool:
        seen.update((p.id.index, *(plain(getattr(p, f)) for f in names)) for p in s)
        return True

    found = check(sequentialize(with_properties(system, [*system.properties, spy]), phases=phases), keep_going=True)
    return seen, {p.name: p.status for p in found.properties if p.name != "spy"}


def of_text(system: System, names: list[str], count: int) -> tuple[set[Any], dict[str, str]]:
    """The local states of the emitted text, and its verdicts."""
    seen = set()

    @always
    def spy(s: Any) -> bool:
        for run in s:
            if not run.dead_:
                seen.update((i, *(plain(getattr(run, f"s_{f}")[i]) for f in names)) for i in range(count))
        return True

    found = check(with_properties(system, [*system.properties, spy]), keep_going=True)
    return seen, {p.name: p.status for p in found.properties if p.name != "spy"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "parameters", "phases"), [*CASES, *(pytest.param(*c, marks=pytest.mark.long) for c in LARGER)]
)
def test_the_local_states_of_the_engine(name: str, parameters: dict[str, Any], phases: int, tmp_path: Path) -> None:
    system = load(f"{name}.distal", parameters)
    text = distal_text(describe(system, phases=phases, assume="none"))
    assert formatted(text, "emitted.distal") == text
    file = tmp_path / "emitted.distal"
    file.write_text(text, encoding="utf-8")
    emitted = module_of(file).__dict__["emitted"]()
    names = [field[2:] for field in emitted.classes[0].__plait_fields__ if field.startswith("s_")]
    assert len(names) > 2
    expected, verdicts = of_engine(system, phases, names)
    found, decided = of_text(emitted, names, len(system.processes))
    assert found == expected
    assert decided == {**verdicts, "round_based": "holds"}


LATE = """\
type Ask = struct { phase int x; }
type Answer = struct { phase int x; int to_what; }
init
  if self.index = 0 then
    x = 1;
    send Ask(1) to ALL;
while true do
  upon Ask with m.x > seen do
    seen = m.x;
    send Answer(m.x, m.x) to m.sender;
  upon Answer do
    answers.add(m.to_what);
    if x < 2 then
      x = 2;
      send Ask(2) to ALL;
always fine: forall p: length(p.answers) < 9;
"""


@pytest.mark.slow
def test_a_protocol_without_rounds_is_found_out(tmp_path: Path) -> None:
    """An Answer of phase 1 is taken in phase 2, as `plait rounds tags` says."""
    source, file = tmp_path / "late.distal", tmp_path / "emitted.distal"
    source.write_text(LATE, encoding="utf-8")
    assert main(["rounds", "tags", f"{source}", "-p", "n=2"]) == 1
    assert main(["rounds", "emit", str(source), "-p", "n=2", "--phases", "2", "--to", "distal", "-o", str(file)]) == 0
    found = check(module_of(file).__dict__["emitted"](), keep_going=True)
    statuses = {p.name: p.status for p in found.properties}
    assert statuses["round_based"] == "violated"


REFUSED = [
    ("distal_paxos", [], "is not written in Distal"),
    ("raft_membership.distal", [], "does not support processes that are created"),
    ("ben_or.distal", ["--assume", "n-f"], "supports no network assumption"),
]


@pytest.mark.parametrize(("target", "options", "words"), REFUSED)
def test_what_is_refused(target: str, options: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rounds", "emit", target, "--phases", "1", "--to", "distal", *options]) == 2
    assert words in capsys.readouterr().err


def test_a_refused_statement_has_its_place(tmp_path: Path) -> None:
    file = tmp_path / "late.distal"
    file.write_text(LATE.replace("    seen = m.x;", "    start timeout(t);\n    seen = m.x;").replace(
        "always", "  upon timeout(t) do\n    skip;\nalways"), encoding="utf-8")  # fmt: skip
    with pytest.raises(ModelError, match=r"late.distal, line 17, column 3: --to distal does not support"):
        distal_text(describe(load(str(file)), phases=1, assume="none"))
