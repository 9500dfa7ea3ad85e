"""Odd little protocols: what rounds say of each is what the search of the protocol itself says, or they refuse it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plait import ModelError, System, check
from plait.model.loading.loader import load
from plait.rounds.assumptions import Custom
from plait.rounds.check import check_rounds
from plait.rounds.conditions.decision import conditions
from plait.rounds.emit.plait import program_text
from plait.rounds.sequential import sequentialize
from tests.rounds.odd import IMPORTS, SOURCES


@pytest.fixture
def odd(tmp_path: Path) -> Any:
    def find(name: str, **parameters: str) -> System:
        file = tmp_path / f"{name}.py"
        file.write_text(IMPORTS + SOURCES[name], encoding="utf-8")
        return load(str(file), parameters)

    return find


@pytest.mark.parametrize(
    ("name", "phases", "why"),
    [
        ("newborn", 3, "a process that is created may send after a quiet round"),
        ("newborn", 5, "and in many phases"),
        ("crash_at_the_end", 1, "a process may crash after its last step"),
        ("nested_type", 1, "0 and False are different, wherever they are"),
        ("two_faults", 1, "a crash is of one fault or another"),
        ("same", 1, "1 and True are not the same"),
        ("newborn_thinks", 3, "a process that is created may take several steps before it hears anything"),
    ],
)
def test_rounds_agree(odd: Any, name: str, phases: int, why: str) -> None:
    assert check_rounds(odd(name), phases=phases).status == check(odd(name)).status, why


@pytest.mark.slow
@pytest.mark.parametrize("property_", ["ok", "ok2"])
def test_created_in_another_order_than_that_of_rounds(odd: Any, property_: str) -> None:
    found = check_rounds(odd("creators"), phases=1, properties=[property_])
    assert (found.status, check(odd("creators"), properties=[property_]).status) == ("violated", "violated")


@pytest.mark.slow
def test_an_order_that_rounds_do_not_have_is_refused(odd: Any) -> None:
    assert check(odd("creators"), properties=["ok3"]).status == "violated"
    with pytest.raises(ModelError, match="property ok3 depends on their numbers"):
        check_rounds(odd("creators"), phases=1, properties=["ok3"])


def test_that_nothing_is_reached_is_a_claim(odd: Any) -> None:
    assert check(odd("reach")).status == "holds"
    with pytest.raises(ModelError, match="not round-based"):
        check_rounds(odd("reach"))


def test_one_violation_makes_no_other_property_hold(odd: Any) -> None:
    verdict = check_rounds(odd("keep"), keep_going=True)
    assert (verdict.status, verdict.property) == ("violated", "silly")
    assert {p.name: p.status for p in verdict.properties} == {"never_late": "inconclusive", "silly": "violated"}


def test_values_of_different_types_differ(odd: Any) -> None:
    """A named tuple and a tuple, 0.0 and -0.0."""
    found = [check_rounds(odd("named_tuples"), keep_going=True), check(odd("named_tuples"), keep_going=True)]
    assert [[p.status for p in verdict.properties] for verdict in found] == [["violated", "violated", "holds"]] * 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kinds", "loop", "wrapped_guard", "twice", "merged_states", "walrus"])
def test_what_is_not_round_based_is_never_proven_to_be(odd: Any, name: str) -> None:
    assert conditions(odd(name)).status == "violated"
    assert conditions(odd(name), max_states=1).status != "holds"


@pytest.mark.slow
def test_a_predicate_is_about_those_who_crashed_as_well(odd: Any) -> None:
    def first_hears_all(hears: Any) -> bool:
        return len(hears[min(hears)]) == len(hears)

    def m_hears_all(hears: Any) -> bool:
        return all(len(hears[p]) == len(hears) for p in hears if p.role == "M")

    free = check_rounds(odd("first_hears_all"), phases=2, assume=Custom("first", first_hears_all))  # type: ignore[arg-type]
    assert free.status == "violated"
    bound = check_rounds(odd("last_hears", crashes="1"), phases=1, assume=Custom("m", m_hears_all))  # type: ignore[arg-type]
    assert bound.status == "holds"


FAMILY = '''
import enum


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@tagged(phase="phase", round="A")
class A(Message):
    phase: int


class N(Process):
    x: int = 0
    color: Color = Color.RED
    TEXT = """one



        two"""

    @action(when=lambda self: self.x < 2 and self.id.index == 0)
    def go(self):
        self.x += 1
        self.send(N.pid(1), A(self.x))

    start = go

    @on(A, where=lambda self, m: m.phase > self.x)
    def take(self, m):
        self.x = m.phase


@always
def whole(s):
    return N.TEXT.count(chr(10)) == 4 and all(p.x < 3 for p in s)
'''
MODELS = {
    "function": """
def model(color: Color = Color.RED) -> System:
    return System([N(color=color), N()], properties=[whole], rounds=["A"])


def other() -> System:
    return model()
""",
    "variable": """
model = System([N(), N()], properties=[whole], rounds=["A"])
""",
}


@pytest.mark.parametrize("kind", MODELS)
def test_the_emitted_program_is_the_only_model(kind: str, tmp_path: Path) -> None:
    file, program = tmp_path / "family.py", tmp_path / "program.py"
    file.write_text(IMPORTS + FAMILY + MODELS[kind], encoding="utf-8")
    system = load(f"{file}:model", {"color": "BLUE"} if kind == "function" else {})
    program.write_text(program_text(system, phases=2, assume="none"), encoding="utf-8")
    emitted, direct = check(load(str(program))), check(sequentialize(system, phases=2))
    assert (emitted.status, emitted.statistics.states) == ("holds", direct.statistics.states)
