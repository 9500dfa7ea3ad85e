"""Any number of phases: what is proven holds in more phases than were looked at, and a late bug is never missed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from plait import Message, Process, System, always, init, on, tagged
from plait.cli.main import main
from plait.kernel.errors import UsageError
from plait.model.loading.loader import load
from plait.protocols.commit_rounds import commit_rounds
from plait.protocols.distal_paxos import distal_paxos
from plait.protocols.uniform_voting import uniform_voting
from plait.rounds.check import check_rounds
from plait.rounds.unbounded.check import check_any_phases
from plait.rounds.unbounded.opaque import looks_through
from plait.rounds.unbounded.phase import AGE, NotInvariantError, Phase, frozen, rebased
from plait.rounds.unbounded.proof import prove


@tagged(phase="number", round="Ask")
class Ask(Message):
    number: int


@tagged(phase="number", round="Answer")
class Answer(Message):
    number: int


class Follower(Process):
    number: int = 0

    @on(Ask, where=lambda self, m: m.number > self.number)
    def answer(self, m: Ask) -> None:
        self.number = m.number
        self.send(m.sender, Answer(m.number))


class Leader(Process):
    """Asks, phase after phase, as long as it is answered."""

    number: int = 1
    bad: bool = False
    asked: int = 0

    @init
    def start(self) -> None:
        self.broadcast(Follower, Ask(self.number))

    @on(Answer, where=lambda self, m: m.number == self.number)
    def take(self, m: Answer) -> None:
        self.number += 1
        self.note()
        self.broadcast(Follower, Ask(self.number))

    def note(self) -> None:
        """A place for bugs."""


@always
def good(s: Any) -> bool:
    return not any(leader.bad for leader in s[Leader])


def asking(leader: type[Leader], **fields: Any) -> System:
    return System([leader(**fields), Follower()], properties=[good], rounds=["Ask", "Answer"])


LATE = 7
SEEN: dict[int, int] = {}
BOX: list[int] = [0]


class Constant(Leader):
    def note(self) -> None:
        self.bad = self.number == LATE


class Greater(Leader):
    def note(self) -> None:
        self.bad = self.number > LATE


class Difference(Leader):
    first: int = 1

    def note(self) -> None:
        self.bad = self.number - self.first == LATE - 1


class Lag(Leader):
    first: int = 1

    def note(self) -> None:
        self.bad = self.number >= self.first + LATE - 1


class Sum(Leader):
    """It compares only phases that it remembers, of which one is long past."""

    old: int = 1

    def note(self) -> None:
        self.bad = self.old + LATE == self.number + 1


class Remainder(Leader):
    def note(self) -> None:
        self.bad = self.number % LATE == 0


class Index(Leader):
    def note(self) -> None:
        self.bad = bool((False, False, False, False, False, False, False, True)[self.number])


class Repeat(Leader):
    def note(self) -> None:
        self.bad = len("x" * self.number) == LATE


class Ranged(Leader):
    def note(self) -> None:
        self.bad = LATE in list(range(self.number + 1))


class Text(Leader):
    def note(self) -> None:
        self.bad = f"{self.number}" == "7"


class Texts(Leader):
    def note(self) -> None:
        self.bad = str(self.number) == "7"


class Hashed(Leader):
    def note(self) -> None:
        self.bad = self.number in {LATE}


class Listed(Leader):
    def note(self) -> None:
        self.bad = self.number in (LATE,)


class Caught(Leader):
    def note(self) -> None:
        try:
            self.bad = self.number == LATE
        except Exception:
            self.bad = False


class Typed(Leader):
    def note(self) -> None:
        self.bad = isinstance(self.number, int) and self.number == LATE


class Matched(Leader):
    def note(self) -> None:
        match self.number:
            case int(n):
                self.bad = n == LATE
            case _:
                pass


class Same(Leader):
    def note(self) -> None:
        self.bad = self.number is LATE


def _is_int(value: Any, ask: Callable[..., bool] = isinstance) -> bool:
    return ask(value, int)


class Aliased(Leader):
    def note(self) -> None:
        self.bad = _is_int(self.number) and self.number == LATE


class Partial(Leader):
    def note(self) -> None:
        self.bad = functools.partial(_is_int)(self.number) and self.number == LATE


class Counted(Leader):
    """It counts itself."""

    def note(self) -> None:
        self.asked += 1
        self.bad = self.asked == LATE


class History(Leader):
    asks: tuple[int, ...] = ()

    def note(self) -> None:
        self.asks += (0,)
        self.bad = len(self.asks) == LATE


class Past(Leader):
    """It remembers phases themselves."""

    asks: tuple[int, ...] = ()

    def note(self) -> None:
        self.asks += (self.number,)
        self.bad = len(self.asks) == LATE


class Toggled(Leader):
    """A counter of two bits and a half."""

    def note(self) -> None:
        self.asked = (self.asked + 1) % LATE
        self.bad = self.asked == LATE - 1


MUTANTS = [
    Constant, Greater, Difference, Lag, Sum, Remainder, Index, Repeat, Ranged, Text, Texts, Hashed, Listed, Caught, Typed,
    Matched, Same, Aliased, Partial, Counted, History, Past, Toggled,
]  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_late_bug_is_not_missed(mutant: type[Leader]) -> None:
    """It needs more phases than are searched by default; that it is there, a search of enough phases shows."""
    protocol = asking(mutant)
    assert check_rounds(protocol, phases=LATE + 1).status == "violated"
    assert check_rounds(protocol, phases=3).status == "holds"
    verdict = check_any_phases(protocol)
    assert verdict.status == "holds"
    assert verdict.bound is not None
    assert verdict.bound.startswith("of 3 phases")
    (_, reduction) = verdict.statistics.reductions
    assert not reduction.applied
    assert "not shown for any number of phases" in reduction.reason


def test_a_property_may_be_the_late_bug() -> None:
    for bad in (lambda p: p.number == LATE, lambda p: p.number % LATE == 0, lambda p: p.number > p.asked + LATE):

        def early(s: Any, bad: Any = bad) -> bool:
            return not any(bad(p) for p in s[Leader])

        protocol = System([Leader(), Follower()], properties=[always(early)], rounds=["Ask", "Answer"])
        assert prove(protocol).why_not is not None


def test_without_the_bug_there_is_a_proof() -> None:
    proof = prove(asking(Leader))
    assert proof.why_not is None
    assert proof.states < 50


class Skipping(Leader):
    """It starts a phase that its clock has passed: condition 1, in each phase but the first two."""

    before: int = 0

    def note(self) -> None:
        if self.before + 2 == self.number + 0 and self.asked:
            self.send(Follower.pid(0), Ask(self.before))
        self.before = self.number - 1
        self.asked = 1


def test_a_condition_that_is_broken_late_is_not_missed() -> None:
    assert prove(asking(Skipping)).why_not is not None


class Patient(Follower):
    """Its guard accepts the question of its own phase, after it has answered: condition 3."""

    @on(Ask, where=lambda self, m: m.number >= self.number)
    def answer(self, m: Ask) -> None:
        self.number = m.number
        self.send(m.sender, Answer(m.number))


def test_the_conditions_are_part_of_the_proof() -> None:
    protocol = System([Leader(), Patient()], properties=[good], rounds=["Ask", "Answer"])
    # There is one question of each phase, so it is not taken twice. The proof does not see that, and says so.
    assert "Patient.answer" in (prove(protocol).why_not or "")

    class Late(Leader):
        @on(Answer, where=lambda self, m: m.number <= self.number)
        def take(self, m: Answer) -> None:
            self.number += 1
            self.broadcast(Follower, Ask(self.number))

    class Two(Follower):
        pass

    late = System([Late(), Follower(), Two()], properties=[good], rounds=["Ask", "Answer"])
    proof = prove(late)
    assert proof.why_not is not None
    assert "Late.take" in proof.why_not


@pytest.mark.slow
def test_two_phase_commit_and_uniform_voting() -> None:
    for protocol in (
        load("examples/endless_commit.py", {"transactions": "0"}),
        uniform_voting(inputs=(0, 1), phases=0),
    ):
        verdict = check_any_phases(protocol)
        assert (verdict.status, verdict.bound) == ("holds", None)
        assert verdict.statistics.reductions[-1].applied
        assert check_rounds(protocol, phases=6).status == "holds"
    hasty = load("examples/endless_commit.py", {"transactions": "0", "hasty": "true"})
    assert check_any_phases(hasty).property == "validity"
    assert prove(hasty).why_not is not None


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("inputs", "faulty", "proven"),
    [((0, 1, 1), "none", True), ((0, 1, 1), "estimate", False), ((0, 0, 1), "estimate", True)],
)
def test_uniform_voting_of_three(inputs: tuple[int, ...], faulty: Any, proven: bool) -> None:
    """A proof agrees with a search of seven phases."""
    protocol = uniform_voting(inputs=inputs, phases=0, faulty=faulty)
    assert (prove(protocol).why_not is None) == proven
    phases = 4 if not proven else 7
    assert (check_rounds(protocol, phases=phases, properties=["agreement"]).status == "holds") == proven


def test_where_there_is_no_proof_the_reason_is_named() -> None:
    why = {
        "a constant": commit_rounds(transactions=4),
        "condition 4": distal_paxos(ballots=4),
    }
    for said, protocol in why.items():
        found = prove(protocol).why_not
        assert found is not None
        assert said in found
    with pytest.raises(UsageError, match="may lose any message"):
        check_any_phases(commit_rounds(), assume="reliable")
    assert looks_through(asking(Leader)) is None


def test_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "examples/endless_commit.py", "-p", "transactions=0", "--rounds", "--phases", "any"]) == 0
    said = capsys.readouterr().out
    assert "any number of phases" in said
    assert "only within the bound" not in said
    assert main(["check", "examples/endless_commit.py", "--rounds", "--phases", "some"]) == 2


# -- opaque phases ---------------------------------------------------------------------------------------------------


def test_phases_compare_as_their_numbers_do_in_each_phase() -> None:
    """A law: whatever the current phase is, two numbers compare as the opaque phases do, or those refuse."""
    answered = 0
    for current in range(1, 12):
        for one in range(1, current + 3):
            for other in range(1, current + 3):
                for shift in range(-2, 3):
                    here, there = Phase(current - one) + shift, Phase(current - other)
                    try:
                        found = (here < there, here <= there, here == there, here > there, here >= there, here != there)
                    except NotInvariantError:
                        assert max(current - one, current - other) > AGE
                        continue
                    x, y = one + shift, other
                    assert found == (x < y, x <= y, x == y, x > y, x >= y, x != y)
                    answered += 1
    assert answered > 1_000


def test_phases_grow_old() -> None:
    assert frozen(rebased(Phase(0), AGE)) != frozen(rebased(Phase(0), AGE + 1))
    assert frozen(rebased(Phase(0), AGE + 1)) == frozen(rebased(Phase(0), AGE + 5))
    with pytest.raises(NotInvariantError, match="advanced"):
        frozen(Phase(AGE + 1) + 1)
    for use in (
        hash,
        str,
        repr,
        bool,
        int,
        float,
        list,
        lambda p: p % 2,
        lambda p: p * 2,
        lambda p: p < 3,
        lambda p: p == 1,
    ):
        with pytest.raises((NotInvariantError, TypeError)):
            use(Phase(0))
