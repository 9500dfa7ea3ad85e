"""Two runs side by side: laws of the alignment, and runs whose differences are known."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from plait import (
    Message,
    Pid,
    Process,
    System,
    Trace,
    action,
    always,
    check,
    crash_recovery,
    crash_stop,
    durable,
    eventually,
    on,
    recovery,
    weak,
)
from plait.check.explain.execute import retraced, unfairness
from plait.kernel import alignment
from plait.kernel.alignment import _longest_common, align
from plait.kernel.renaming import by_position, renamed
from plait.kernel.trace import Event, Lane, Snapshot
from plait.model.fairness import Fairness
from plait.protocols.raft import raft
from plait.report.diff import counts, diff_text, headline
from plait.report.diff_html import diff_page
from tests.oracle.explorer import Exploration
from tests.oracle.random_systems import explored_systems


def table(a: str, b: str) -> int:
    """The length of a longest common subsequence, by the table."""
    best = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            best[i + 1][j + 1] = best[i][j] + 1 if x == y else max(best[i][j + 1], best[i + 1][j])
    return best[-1][-1]


def test_longest_common_subsequences() -> None:
    rng = random.Random(0)
    for _ in range(2000):
        a, b = ("".join(rng.choice("abc") for _ in range(rng.randint(0, 9))) for _ in range(2))
        pairs = _longest_common(a, b)
        assert len(pairs) == table(a, b)
        assert all(a[i] == b[j] for i, j in pairs)
        assert pairs == sorted(pairs)
        assert len({i for i, _ in pairs}) == len({j for _, j in pairs}) == len(pairs)


def test_too_many_equal_events_are_matched_in_order(monkeypatch: Any) -> None:
    monkeypatch.setattr(alignment, "MOST_PAIRS", 3)
    assert _longest_common("aaa", "aa") == [(0, 0), (1, 1)]
    assert _longest_common("aab", "baa") == [(0, 1), (1, 2)]


def run(*steps: str, lanes: str = "PQR") -> Trace:
    """A run without states: `Pa` is lane P doing a."""
    empty = Snapshot(fields={name: {} for name in lanes})
    events = [Event(step[0], "step", step[1:], empty) for step in steps]
    return Trace("", {}, None, [Lane(name, "role") for name in lanes], [], empty, events)


def relations(one: Trace, other: Trace) -> list[tuple[str, int | None, int | None]]:
    found = align(one, other)
    for side, trace in (("first", one), ("second", other)):
        order = [getattr(row, side) for row in found.rows if getattr(row, side) is not None]
        assert order == list(range(len(trace)))  # each event once, and in order
    return [(row.relation, row.first, row.second) for row in found.rows]


def test_what_is_in_one_only() -> None:
    assert relations(run("Pa", "Qb", "Pc"), run("Pa", "Pc")) == [
        ("same", 0, 0),
        ("one", 1, None),
        ("same", 2, 1),
    ]
    assert headline(run("Pa", "Qb"), run("Pa"), align(run("Pa", "Qb"), run("Pa"))) == (
        "The same up to step 1, where B ends and A continues."
    )
    assert headline(run("Pa"), run(), align(run("Pa"), run())) == "B has no steps; A has steps."


def test_the_same_steps_in_another_order_have_moved() -> None:
    one, other = run("Pa", "Qb", "Rc"), run("Qb", "Rc", "Pa")
    assert relations(one, other) == [
        ("moved", 0, None),
        ("same", 1, 0),
        ("same", 2, 1),
        ("moved", None, 2),
    ]
    assert counts(align(one, other)) == "3 steps are the same, 1 of them at another time"
    assert headline(one, other, align(one, other)) == "The same steps, but in another order from step 1 on."


def test_lassos_that_go_back_elsewhere() -> None:
    one = msgspec.structs.replace(run("Pa", "Pb"), loop=0)
    other = msgspec.structs.replace(run("Pa", "Pb"), loop=1)
    found = align(one, other)
    assert not found.same
    assert headline(one, other, found) == "The same steps, but the loops start at different steps."
    assert align(one, one).same
    assert "The first difference" not in diff_page(one, other, found, ("a", "b"), {})
    assert "go on" not in diff_text(one, other, found, ("a", "b"), {})
    for pair, name in (((one, run("Pa", "Pb")), "A"), ((run("Pa", "Pb"), one), "B")):
        assert headline(*pair, align(*pair)) == f"The same steps, but only {name} repeats them."


def test_both_pages_say_where_a_lasso_repeats() -> None:
    one, other = msgspec.structs.replace(run("Pa", "Pb"), loop=1), run("Pa", "Pb")
    found = align(one, other)
    for said in (diff_text(one, other, found, ("a", "b"), {}), diff_page(one, other, found, ("a", "b"), {})):
        assert said.count("2 steps, repeating from step 2 on") == 1


class Lamp(Process):
    """Blinks; a fast one does nothing else, a slow one is stuck when it is on."""

    slow: bool = False
    on: bool = False

    @action(when=lambda self: not (self.on and self.slow))
    def blink(self) -> None:
        self.on = not self.on


class Eye(Process):
    """Could close."""

    closed: bool = False

    @action(when=lambda self: not self.closed)
    def close(self) -> None:
        self.closed = True


def blinking(*fairness: Fairness, slow: bool = False) -> System:
    closes = eventually(lambda s: s[Eye][0].closed, name="closes")
    return System([Lamp(slow=slow), Eye()], properties=[closes], fairness=fairness)


def test_a_lasso_on_a_model() -> None:
    trace = check(blinking()).trace
    assert trace is not None
    assert (trace.loop, len(trace)) == (0, 2)
    again = retraced(blinking(), trace)
    assert again.loop == 0
    assert align(trace, again).same
    assert unfairness(blinking(weak(Lamp)), trace) is None
    broken = unfairness(blinking(weak(Eye)), trace)
    assert broken == "weak(Eye): Eye0 close is enabled in all states of the loop and never happens"
    found = msgspec.structs.replace(align(trace, again), unfair=broken)
    assert not found.same
    assert headline(trace, again, found) == "The same steps, but the loop is not fair in B."
    for said in (
        diff_text(trace, again, found, ("a", "b"), {}, width=200),
        diff_page(trace, again, found, ("a", "b"), {}),
    ):
        assert f"the loop of B is not fair: {broken}" in said
    stuck = retraced(blinking(weak(Eye), slow=True), trace)
    assert (stuck.loop, len(stuck)) == (None, 1), "it does not come back"
    assert unfairness(blinking(weak(Eye), slow=True), trace) is None, "no loop, nothing that is put off"


class Broken(Process):
    """A lamp that can be switched, and stays as it is."""

    slow: bool = False
    on: bool = False

    @action
    def blink(self) -> None:
        self.on = False


def test_steps_that_change_nothing_are_no_loop() -> None:
    trace = check(blinking()).trace
    assert trace is not None
    assert retraced(System([Broken(), Eye()]), trace).loop is None


def test_what_comes_before_the_loop_may_be_gone() -> None:
    """The first step of the stem is not possible any more; the loop is, and begins one step earlier."""
    never = eventually(lambda s: False, name="never")
    trace = check(System([Eye(), Lamp()], properties=[never], fairness=[weak(Eye)])).trace
    assert trace is not None
    assert [e.lane for e in trace.events] == ["Eye0", "Lamp0", "Lamp0"]
    other = retraced(System([Eye(closed=True), Lamp()]), trace)
    assert (other.loop, len(other)) == (0, 2)


class Ask(Message):
    """A question."""

    number: int


class Asker(Process):
    """Asks twice."""

    to: Pid
    left: int = 2

    @action(when=lambda self: self.left > 0)
    def ask(self) -> None:
        self.left -= 1
        self.send(self.to, Ask(self.left))


class Answerer(Process):
    """Adds up; a fixed one does not take what it has taken."""

    fixed: bool
    total: int = 0

    @on(Ask)
    def answer(self, m: Ask) -> None:
        if not self.fixed or self.total == 0:
            self.total += m.number + 1


def asking(fixed: bool) -> System:
    @always
    def small(s: Any) -> bool:
        return bool(s[Answerer][0].total < 3)

    return System([Asker(to=Answerer.pid(0)), Answerer(fixed=fixed)], properties=[small])


def test_a_fix() -> None:
    faulty = check(asking(False)).trace
    assert faulty is not None
    fixed = retraced(asking(True), faulty)
    found = align(faulty, fixed)
    assert found.common == 3
    assert [row.relation for row in found.rows] == ["same"] * 3 + ["changed"]
    assert [(d.lane, d.field, d.first, d.second) for d in found.start] == [("Answerer0", "fixed", False, True)]
    ((_, total),) = [(d.field, (d.first, d.second)) for d in found.end if d.field == "total"]
    assert total == (3, fixed.events[2].state.fields["Answerer0"]["total"])
    said = diff_text(faulty, fixed, found, ("a", "b"), {}, width=100)
    assert "they differ from step 4 on" in said
    assert "Both continue with Answerer0 answer, with other effects" in said
    page = diff_page(faulty, fixed, found, ("a", "b"), {})
    assert page.count("<svg") == 2
    assert 'class="event step changed"' in page


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(explored_systems(limit=40))
def test_a_run_is_the_same_as_itself_on_its_own_model(pair: tuple[System, Exploration]) -> None:
    system, _ = pair
    for result in check(system, keep_going=True).properties:
        if result.trace is not None:
            again = retraced(system, result.trace)
            assert align(result.trace, again).same
            assert "</html>" in diff_page(result.trace, again, align(result.trace, again), ("a", "b"), {})


def test_a_crash_is_that_of_its_own_fault() -> None:
    class Node(Process):
        back: bool = durable(False)

        @recovery
        def wake(self) -> None:
            self.back = True

    never_back = always(lambda s: not s[Node][0].back, name="never_back")
    faults = [crash_stop(Node, budget=1), crash_recovery(budget=1)]
    system = System([Node()], faults=faults, properties=[never_back])
    trace = check(system).trace
    assert trace is not None
    assert len(trace.events) == 2
    assert align(trace, retraced(system, trace)).same


def test_a_faulty_twin_stands_where_the_process_stood() -> None:
    """The vote that a forgetful server gives twice is what the fixed one does not do; all else is the same."""
    faulty = check(raft(faulty="vote")).trace
    assert faulty is not None
    fixed = retraced(raft(), faulty)
    names = by_position([lane.name for lane in fixed.lanes], [lane.name for lane in faulty.lanes])
    assert names == {f"Server{i}": f"ForgetfulServer{i}" for i in range(3)}
    other = renamed(fixed, names)
    assert renamed(other, {v: k for k, v in names.items()}) == fixed
    found = align(faulty, other)
    alone = [faulty.events[row.first].label for row in found.rows if row.relation != "same" and row.first is not None]
    assert sorted(alone) == ["vote", "win"]
    assert align(faulty, fixed).only[1] == ["Server0", "Server1", "Server2"]


def test_lanes_of_one_run_only_are_not_drawn_in_the_other() -> None:
    page = diff_page(run("Pa"), run("Pa", lanes="P"), align(run("Pa"), run("Pa", lanes="P")), ("<a>", "b"), {})
    assert "&lt;a&gt;" in page
    assert page.count('class="lane unborn"') == 2
