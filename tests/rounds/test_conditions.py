"""The conditions of Sequentialization, sections 4.2 and 5.1: for each a protocol that breaks it, and how that is told."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from plait import Message, ModelError, Pid, Process, System, action, check, on, tagged
from plait.check.explain.execute import execute
from plait.kernel.step import Step
from plait.rounds.calendar import Calendar
from plait.rounds.check import check_rounds
from plait.rounds.conditions.decision import conditions
from plait.rounds.conditions.declarations import proved
from plait.rounds.sequential import program_of
from tests.rounds.protocols import Spec, specs, system


@tagged(phase="phase", round="A")
class A(Message):
    phase: int


@tagged(phase="phase", round="B")
class B(Message):
    phase: int


class Script(Process):
    """Sends what its script says, one message after the other."""

    to: Pid
    script: tuple[tuple[str, int], ...] = ()

    @action(when=lambda self: self.script)
    def speak(self) -> None:
        (kind, phase), *rest = self.script
        self.script = tuple(rest)
        self.send(self.to, A(phase) if kind == "A" else B(phase))


class Careful(Process):
    """Takes only what is not behind it."""

    phase: int = 0
    stage: int = 0

    @on(A, where=lambda self, m: (m.phase, 0) >= (self.phase, self.stage))
    def take_a(self, m: A) -> None:
        self.phase, self.stage = m.phase, 0

    @on(B, where=lambda self, m: (m.phase, 1) >= (self.phase, self.stage))
    def take_b(self, m: B) -> None:
        self.phase, self.stage = m.phase, 1


class Careless(Careful):
    """Takes everything."""

    @on(A)
    def take_a(self, m: A) -> None:
        self.phase, self.stage = m.phase, 0

    @on(B)
    def take_b(self, m: B) -> None:
        self.phase, self.stage = m.phase, 1


class Echo(Careful):
    """Answers in the round that it hears."""

    def take_a(self, m: A) -> None:
        self.phase = m.phase
        self.send(m.sender, A(m.phase))


class Pair(Careful):
    """Takes two at once, whatever their phases."""

    @on(A, quorum=2, where=lambda self, m: m.phase > self.phase)
    def take_a(self, ms: tuple[A, ...]) -> None:
        self.phase = max(m.phase for m in ms)


def talk(listener: Process, *scripts: Any) -> System:
    to = type(listener).pid(0)
    return System([*(Script(to=to, script=s) for s in scripts), listener], rounds=["A", "B"])


BREAKING: dict[int, tuple[System, str]] = {
    1: (talk(Careful(), (("A", 2), ("A", 1))), "Script.speak"),
    2: (talk(Careful(), (("B", 1), ("A", 1))), "Script.speak"),
    3: (talk(Careless(), (("A", 1), ("B", 1))), "Careless.take_a"),
    4: (talk(Pair(), (("A", 1), ("B", 1)), (("A", 2),)), "Pair.take_a"),
    5: (talk(Echo(), (("A", 1), ("B", 1))), "Echo.take_a"),
    6: (talk(Careful(), (("A", 1), ("A", 1), ("B", 1))), "Script.speak"),
}
KEEPING = talk(Careful(), (("A", 1), ("B", 1), ("A", 2)))


def line(name: str) -> int:
    """The line of a handler in this file."""
    cls, _, method = name.partition(".")
    return globals()[cls].__dict__[method].__code__.co_firstlineno  # type: ignore[no-any-return]


@pytest.mark.parametrize("number", BREAKING)
def test_a_broken_condition_names_handler_and_line_with_a_run(number: int) -> None:
    broken, handler = BREAKING[number]
    verdict = conditions(broken)
    result = verdict.properties[number - 1]
    assert (verdict.status, verdict.exit_code) == ("violated", 1)
    assert (result.name, result.status) == (f"condition {number}", "violated")
    assert result.note is not None
    place = re.match(r"(\S+) \((.*):(\d+)\) ", result.note)
    assert place is not None
    assert (place[1], Path(place[2]).name, int(place[3])) == (handler, "test_conditions.py", line(handler))
    assert result.trace is not None
    assert result.trace.events[-1].label == handler.partition(".")[2]
    assert "rounds_watch" not in result.trace.initial.fields["Script0"]  # a run of the protocol itself


@pytest.mark.parametrize("number", BREAKING)
def test_only_that_condition_is_broken(number: int) -> None:
    """Except that who takes a message of a round that it has left also sends too late, or the other way round."""
    verdict = conditions(BREAKING[number][0])
    broken = {i for i, p in enumerate(verdict.properties, 1) if p.status == "violated"}
    assert broken == {number}


def test_a_protocol_that_keeps_them() -> None:
    verdict = conditions(KEEPING)
    assert (verdict.status, [p.status for p in verdict.properties]) == ("holds", ["holds"] * 6)
    assert proved(KEEPING).keys() == {4}
    assert proved(BREAKING[4][0]).keys() == set()


@pytest.mark.parametrize("number", BREAKING)
def test_holds_is_never_claimed_of_it(number: int) -> None:
    """Whether by the asynchronous steps or, where these are too many, by the audit."""
    with pytest.raises(ModelError, match=r"not round-based: .*test_conditions.py:"):
        check_rounds(BREAKING[number][0], phases=2)
    assert not _claims(BREAKING[number][0], number)


def _claims(protocol: System, number: int) -> bool:
    """Whether a condition is said to hold when only two asynchronous states are looked at."""
    try:
        return conditions(protocol, max_states=2, phases=2).properties[number - 1].status == "holds"
    except ModelError:  # the program itself comes to the step
        return False


@pytest.mark.slow
def test_the_audit_decides_nearly_all_protocols_that_are_round_based() -> None:
    audited: list[bool] = []

    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), database=None, derandomize=True)
    @given(specs(processes=2, most_rounds=2))
    def audit(spec: Spec) -> None:
        program = program_of(system(spec), phases=spec.phases, audited=True)
        assert check(program.make(), workers=1, explore=True).status == "holds"
        assert program.audit is not None
        audited.append(not program.audit.suspicions())

    audit()
    assert sum(audited) >= 0.9 * len(audited) > 0


def test_places_are_counted_through() -> None:
    calendar = Calendar(KEEPING)
    assert [calendar.place(m) for m in (A(1), B(1), A(2), B(2))] == [1, 2, 3, 4]
    assert [calendar.name(t) for t in (0, 1, 4)] == ["before phase 1", "phase 1, round A", "phase 2, round B"]
    with pytest.raises(ModelError, match="phases are whole numbers") as caught:
        calendar.place(A(0))
    assert "has phase 0" in caught.value.message


def test_follow_refuses_what_the_model_cannot_do() -> None:
    from plait import TraceError

    assert len(execute(KEEPING, [Step("Script0", "speak")])) == 1
    with pytest.raises(TraceError, match=r"step 1 \(Careful0: take_a\) is not possible"):
        execute(KEEPING, [Step("Careful0", "take_a", consumed=[("Script0", "A", {"phase": 1})])])
