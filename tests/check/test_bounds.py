"""Constraints, `System(within=…)`, and random systems with all kinds of bounds and initial states."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plait import (
    Message,
    ModelError,
    Process,
    System,
    UsageError,
    action,
    always,
    check,
    deadlock_free,
    eventually,
    final,
    init,
    on,
    reachable,
    strong,
    weak,
)
from plait.model.loading.loader import load
from plait.protocols.paxos import paxos
from plait.report.wording import claim
from tests.oracle import bounded_systems, cyclic_systems, independent_systems, random_systems, symmetric_systems
from tests.oracle.explorer import Exploration, explore
from tests.oracle.orbits import orbits
from tests.support import configurations, liveness
from tests.support.agreement import check_traces
from tests.support.agreement import compare as compare_all
from tests.support.configurations import Way, leaving_out, run, violated, ways
from tests.support.examples import FOLDER

RANDOM = settings(deadline=None, suppress_health_check=list(HealthCheck))


class Counter(Process):
    n: int = 0

    @action
    def up(self) -> None:
        self.n += 1


def counters(count: int = 2, most: int = 3, *properties: Any, **more: Any) -> System:
    def small(s: Any) -> bool:
        return all(c.n <= most for c in s[Counter])

    return System([Counter() for _ in range(count)], within=small, properties=properties, **more)


@always
def below_five(s: Any) -> bool:
    return all(c.n < 5 for c in s[Counter])


# -- constraints -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{}, {"search": "dfs"}, {"workers": 3}, {"search": "dfs", "workers": 3}, {"native": "off"}, {"spos": False}],
)
def test_states_outside_are_counted_apart_and_not_expanded(options: dict[str, Any]) -> None:
    verdict = check(counters(2, 3, below_five), **options)
    stats = verdict.statistics
    assert verdict.status == "holds"
    assert (stats.states, stats.cut_states, stats.transitions) == (16, 8, 32)
    assert verdict.bound == "within small"
    assert verdict.limit is None
    assert verdict.exit_code == 0
    assert claim(verdict).startswith(
        "Only states within the bound small were expanded: 16 states, up to hash collisions"
    )
    assert claim(verdict).endswith("8 states outside of it were checked. Nothing is known beyond.")
    assert verdict.to_json()["cut_states"] == 8


def test_a_state_outside_is_checked() -> None:
    verdict = check(counters(2, 4, below_five))
    assert (verdict.status, verdict.property) == ("violated", "below_five")
    assert verdict.trace is not None
    assert len(verdict.trace) == 5
    found = check(counters(1, 3, reachable(lambda s: s[Counter][0].n == 4, name="four")))
    assert found.status == "holds"


def test_a_bound_that_cuts_nothing_is_no_bound() -> None:
    verdict = check(System([Counter()], within=lambda s: s[Counter][0].n < 1, properties=[below_five]))
    assert verdict.bound == "within"
    system = paxos()
    free = check(system).statistics
    system.within = bounded_systems.condition("within", lambda s: len(s.messages) < 100)
    bounded = check(system)
    assert bounded.bound is None
    assert (bounded.statistics.states, bounded.statistics.transitions) == (free.states, free.transitions)


def test_what_was_not_reached_is_not_decided() -> None:
    verdict = check(counters(1, 3, reachable(lambda s: s[Counter][0].n == 9, name="nine"), below_five))
    assert {p.name: p.status for p in verdict.properties} == {"nine": "inconclusive", "below_five": "holds"}
    assert (verdict.status, verdict.exit_code) == ("inconclusive", 3)
    assert "no example within the bound; 1 states outside" in str(verdict) or "no example within the bound" in str(
        verdict
    )


def test_a_border_is_no_end() -> None:
    """A state whose steps all lead out of the bound is not terminal, and a run does not end there."""
    verdict = check(counters(1, 2, final(lambda s: False, name="ends"), deadlock_free()))
    assert (verdict.status, verdict.statistics.terminal_states) == ("holds", 0)


def test_initial_states_outside() -> None:
    class Start(Counter):
        @init
        def begin(self) -> None:
            self.n = self.choose([2, 9])

    verdict = check(System([Start()], within=lambda s: s[Counter][0].n <= 3, properties=[below_five]), keep_going=True)
    assert verdict.status == "violated"
    assert verdict.trace is not None
    assert (len(verdict.trace), verdict.trace.chosen) == (0, {"Start0": [9]})
    assert (verdict.statistics.states, verdict.statistics.cut_states) == (2, 2)
    nothing = check(System([Counter(n=4)], within=lambda s: s[Counter][0].n <= 3, properties=[below_five]))
    assert (nothing.status, nothing.bound) == ("inconclusive", "no-state")
    assert "every initial state is outside of the bound" in str(nothing)


def test_a_bound_that_raises_or_is_no_function() -> None:
    verdict = check(System([Counter()], within=lambda s: 1 // (3 - s[Counter][0].n) >= 0, properties=[below_five]))
    assert verdict.property == "no_exceptions"
    assert "within raised ZeroDivisionError" in str(verdict)
    with pytest.raises(ModelError, match="within=True is not a function of the view"):
        System([Counter()], within=True)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=r"within=.* is not a function of the view"):
        System([Counter()], within=below_five)
    with pytest.raises(ModelError, match="property within returned 3"):
        check(System([Counter()], within=lambda s: 3, properties=[below_five]))


class Grown(Message): ...


class Grower(Process):
    big: bool = False

    @action(when=lambda self: not self.big)
    def grow(self) -> None:
        self.big = True
        self.broadcast(Witness, Grown())


class Witness(Process):
    ready: bool = False
    saw: bool = False

    @action(when=lambda self: not self.ready)
    def prepare(self) -> None:
        self.ready = True

    @on(Grown)
    def see(self, m: Grown) -> None:
        self.saw = True


@pytest.mark.parametrize("search", ["bfs", "dfs"])
def test_a_shortened_counterexample_stays_within_the_bound(search: Any) -> None:
    """Without the first step, the run would be shorter, but it would lead through a state outside."""
    system = System(
        [Grower(), Witness()],
        within=lambda s: s[Witness][0].ready or not s[Grower][0].big,
        properties=[always(lambda s: not s[Witness][0].saw, name="unseen")],
    )
    trace = check(system, search=search).trace
    assert trace is not None
    assert [event.label for event in trace.events] == ["prepare", "grow", "see"]


def test_coverage_shows_where_the_search_left_its_bound() -> None:
    class Twin(Counter):
        @action(when=lambda self: self.n == 0)
        def leap(self) -> None:
            self.n = 7

    verdict = check(
        System([Twin()], within=lambda s: s[Counter][0].n <= 2, properties=[below_five]), coverage=True, keep_going=True
    )
    assert verdict.coverage is not None
    assert {(e.role, e.handler, e.states) for e in verdict.coverage.exits} == {("Twin", "up", 1), ("Twin", "leap", 1)}
    assert "Twin.leap" in str(verdict)
    assert "led out of the bound, to 1 state" in str(verdict)


def test_random_and_stateless_searches_stay_within() -> None:
    walks = check(counters(2, 3, below_five), search="random", walks=300, max_depth=50)
    assert (walks.statistics.states, walks.statistics.cut_states, walks.bound) == (16, 8, "walks")
    tree = check(counters(1, 3, below_five), search="stateless")
    assert (tree.status, tree.statistics.states, tree.statistics.cut_states) == ("holds", 4, 1)
    with pytest.raises(UsageError, match="the System has the bound within small, which dpor does not support"):
        check(counters(1, 3, below_five), search="stateless", reduce="dpor")
    assert not any(
        r.applied for r in check(counters(1, 3, below_five), search="stateless", reduce="auto").statistics.reductions
    )


# -- temporal properties within a bound --------------------------------------------------------------------------------


class Flip(Counter):
    """Goes on counting, or turns in place."""

    on: bool = False

    @action
    def turn(self) -> None:
        self.on = not self.on


def flip(prop: Any, *fairness: Any) -> str:
    verdict = check(System([Flip()], within=lambda s: s[Flip][0].n <= 2, properties=[prop], fairness=fairness))
    assert verdict.bound == "within"
    return verdict.status


def test_a_step_out_of_the_bound_counts_as_enabled() -> None:
    """A loop at the border is not fair if it never takes the step that leads out."""
    three = eventually(lambda s: s[Flip][0].n >= 3, name="three")
    assert flip(three) == "violated"  # it turns for ever
    assert flip(three, weak(Flip.up)) == "holds"  # a fair run counts on, and leaves the bound
    assert flip(three, strong(Flip.up)) == "holds"
    assert flip(three, weak(Flip.turn)) == "violated"
    # Nothing is known beyond the bound: all runs that stay within it are unfair.
    assert flip(eventually(lambda s: s[Flip][0].n >= 30, name="thirty"), weak(Flip.up)) == "holds"


def test_the_verdict_says_what_it_is_about() -> None:
    verdict = check(
        System(
            [Flip()],
            within=lambda s: s[Flip][0].n <= 2,
            properties=[eventually(lambda s: s[Flip][0].n > 2, name="more")],
            fairness=[weak(Flip.up)],
        )
    )
    assert verdict.properties[0].note == "assuming weak(Counter.up); on all runs that stay within the bound"


def test_a_bound_takes_the_view() -> None:
    with pytest.raises(ModelError, match=r"System\(within=…\): <lambda> does not take the view"):
        System([Counter()], within=lambda s, t: True)
    with pytest.raises(ModelError, match=r"System\(initially=…\): <lambda> does not take the view"):
        System([Counter()], initially=lambda: True)


def test_nothing_holds_where_the_bound_raises() -> None:
    system = System(
        [Counter()], within=lambda s: 1 // (s[Counter][0].n - 1) < 5, properties=[always(lambda s: True, name="it")]
    )
    verdict = check(system, keep_going=True, max_states=100)
    assert {p.name: p.status for p in verdict.properties} == {"it": "inconclusive", "no_exceptions": "violated"}


# -- random systems ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(RANDOM, max_examples=12)
@given(bounded_systems.explored_systems(random_systems.specs(), random_systems.build, 200))
def test_random_systems(pair: tuple[System, Exploration]) -> None:
    compare_all(*pair)


LOOSE = bounded_systems.explored_systems(independent_systems.specs(), independent_systems.build, 200)


@pytest.mark.slow
@settings(RANDOM, max_examples=40)
@given(LOOSE, ways())
def test_partial_order_reduction(pair: tuple[System, Exploration], way: Way) -> None:
    configurations.compare(*pair, way)


@pytest.mark.slow
@settings(RANDOM, max_examples=25)
@given(LOOSE)
def test_dynamic_partial_order_reduction(pair: tuple[System, Exploration]) -> None:
    system, truth = pair
    if system.within is not None:
        return
    verdict = check(
        system, search="stateless", reduce="dpor", max_states=20_000, max_depth=40, keep_going=True, explore=True
    )
    assert violated(verdict) <= truth.violated
    if verdict.limit is None:
        assert violated(verdict) == truth.violated
    check_traces(system, verdict, truth, shortest=False)


@pytest.mark.slow
@settings(RANDOM, max_examples=8)
@given(
    bounded_systems.explored_systems(
        symmetric_systems.specs(), symmetric_systems.build, 200, bounded_systems.SYMMETRIC
    ),
    ways(),
)
def test_symmetry(pair: tuple[System, Exploration], way: Way) -> None:
    system, truth = pair
    there = orbits(system, truth)
    verdict = run(system, way, "symmetry")
    assert violated(verdict) == truth.violated
    assert (verdict.statistics.states, verdict.statistics.terminal_states) == (there.states, there.terminal)
    check_traces(system, verdict, truth, shortest=way.search == "bfs")
    assert violated(run(system, way, "symmetry,por")) == truth.violated


def test_a_bound_must_be_symmetric() -> None:
    system = System(
        [Counter(), Counter()], within=lambda s: s[Counter][0].n <= 2, symmetric=[Counter], properties=[below_five]
    )
    with pytest.raises(ModelError, match="property within treats them differently"):
        check(system, reduce="symmetry", max_states=1000)


@pytest.mark.slow
@settings(RANDOM, max_examples=40)
@given(st.data())
def test_temporal_properties(data: st.DataObject) -> None:
    made = data.draw(cyclic_systems.drawn(limit=16))
    number = data.draw(st.integers(0, 2))
    bounded_systems.bounded(made.system, bounded_systems.Bounds((0,), within=("every x" if number else "sum", number)))
    truth = explore(made.system, limit=40)
    if truth.complete and truth.states:
        formula = data.draw(cyclic_systems.formulas(made.atoms))
        liveness.compare(made._replace(truth=truth), formula, length=4)


# -- each rule is needed -----------------------------------------------------------------------------------------------


class Leaver(Process):
    x: int = 0

    @action(when=lambda self: self.x == 0)
    def leave(self) -> None:
        self.x = 9


class Failing(Process):
    ready: bool = False

    @action(when=lambda self: not self.ready)
    def prepare(self) -> None:
        self.ready = True

    @action(when=lambda self: self.ready)
    def fail(self) -> None:
        assert not self.ready


def test_partial_order_reduction_must_not_put_steps_off_beyond_the_bound() -> None:
    """The step out of the bound alone would be a stubborn set: after it, nothing else would happen."""
    system = System(
        [Leaver(), Failing()],
        within=lambda s: s[Leaver][0].x == 0,
        properties=[always(lambda s: len(s[Leaver]) == 1, name="it")],
    )
    assert check(system, reduce="por").property == "assertions"
    with leaving_out("bounds"):
        assert check(system, reduce="por").status == "holds"


def test_the_examples_say_their_bounds() -> None:
    verdict = check(load(str(FOLDER / "alternating_bit.py"), {}, parse=False))
    assert verdict.bound == "within short_queues"
    assert verdict.statistics.cut_states > 0
