"""Refinement: against the oracle on random systems, published relations, and by hand."""

from __future__ import annotations

from pathlib import Path
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
    crash_stop,
    eventually,
    everybody,
    init,
    on,
    refines,
    weak,
)
from plait.check.explain.replay import replay
from plait.kernel.errors import TraceError
from plait.model.loading.loader import load
from plait.report.itf import load_trace
from tests.oracle.cyclic_systems import VALUES, drawn
from tests.oracle.refinement import refined
from tests.support.examples import FOLDER


class Box(Process):
    """Goes from a number to others, as its rules say."""

    rules: tuple[tuple[int, int], ...]
    x: int

    @action(when=lambda self: any(a == self.x for a, _ in self.rules))
    def go(self) -> None:
        self.x = self.choose([b for a, b in self.rules if a == self.x])


@pytest.mark.slow
@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_systems_refine_random_boxes_as_the_oracle_says(data: st.DataObject) -> None:
    made = data.draw(drawn(limit=12))
    system, numbers = made.system, st.integers(0, VALUES - 1)
    role = type(system.processes[0])
    pairs = [(a, b) for a in range(VALUES) for b in range(VALUES) if a != b]
    rules = data.draw(st.lists(st.sampled_from(pairs), min_size=3, unique=True).map(lambda some: tuple(sorted(some))))
    start = data.draw(st.sampled_from([system.processes[0].x] * 7 + [0]))  # type: ignore[attr-defined]
    merged = data.draw(st.one_of(st.none(), numbers))  # this number and 0 map to the same one
    fair = [weak(Box)] if data.draw(st.booleans()) else []
    box = System([Box(rules=rules, x=0 if start == merged else start)], fairness=fair)

    def mapping(s: Any) -> Box:
        x = s[role][0].x
        return Box(rules=rules, x=0 if x == merged else x)

    prop = refines(box, mapping, name="it")
    system.properties, system.fairness = [prop], tuple(dict.fromkeys((*system.fairness, *made.fairness)))
    expected = refined(system, made.truth, prop)
    result = check(system, explore=True, search=data.draw(st.sampled_from(["bfs", "dfs"])))
    assert result.status == ("holds" if expected == "holds" else "violated")
    if result.trace is not None:
        assert len(list(replay(system, result.trace))) == len(result.trace)
        said = {"initial": "initial state", "step": "maps to no step", "stuttering": "stays in one state for ever"}
        assert result.trace.explanation is not None
        assert said[expected] in result.trace.explanation


# -- published relations ----------------------------------------------------------------------------------------------


def example(name: str, **parameters: Any) -> System:
    return load(str(FOLDER / f"{name}.py"), parameters, parse=False)


def test_transaction_commit_has_the_published_number_of_states() -> None:
    """34 distinct states with three resource managers, and 288 of TwoPhase (tlaplus/Examples, transaction_commit)."""
    system = example("transaction_commit")
    specification = system.properties[0].abstract  # type: ignore[attr-defined]
    assert check(specification, explore=True).statistics.states == 34
    assert check(system).statistics.states == 288


def test_a_counterexample_shows_both_runs_and_the_guards(tmp_path: Path) -> None:
    system = example("transaction_commit", faulty="hasty")
    trace = check(system).trace
    assert trace is not None
    assert [event.abstract for event in trace.events][:-1] == ["stays"] * (len(trace) - 1)
    assert trace.events[-1].abstract is not None
    assert trace.events[-1].abstract.startswith("no step: states=(State.COMMITTED,")
    assert ("commit", "its guard is false") in [(wait.handler, wait.reason) for wait in trace.waiting]
    assert all(trace.abstract in event.state.monitors for event in trace.events)
    for suffix in ("svg", "html", "txt", "itf.json"):
        trace.save(tmp_path / f"run.{suffix}")
    assert "its guard is false" in (tmp_path / "run.html").read_text(encoding="utf-8")
    loaded = load_trace(tmp_path / "run.itf.json")
    assert loaded == trace
    assert len(list(replay(system, loaded))) == len(trace)
    with pytest.raises(TraceError):
        list(replay(example("transaction_commit"), loaded))


# -- by hand ----------------------------------------------------------------------------------------------------------


class Hours(Process):
    hour: int = 0

    @action
    def tick(self) -> None:
        self.hour = (self.hour + 1) % 3


class Clock(Process):
    minutes: int = 0
    lit: bool = False

    @action
    def tick(self) -> None:
        self.minutes = (self.minutes + 30) % 180

    @action
    def light(self) -> None:
        self.lit = not self.lit


def hours(s: Any) -> Hours:
    return Hours(hour=s[Clock][0].minutes // 60)


def clock(*fairness: Any, fair: bool = False, **options: Any) -> System:
    abstract = System([Hours()], fairness=[weak(Hours)] if fair else [])
    return System([Clock()], properties=[refines(abstract, hours)], fairness=fairness, **options)


@pytest.mark.parametrize("native", ["auto", "off"])
@pytest.mark.parametrize("search", ["bfs", "dfs"])
def test_steps_that_change_no_hour_are_no_steps(native: Any, search: Any) -> None:
    assert check(clock(), native=native, search=search).status == "holds"
    assert check(clock(), native=native, search=search, history="last").status == "holds"


def test_with_fairness_endless_stuttering_is_a_violation() -> None:
    result = check(clock(weak(Clock), fair=True))
    assert result.status == "violated"
    assert result.trace is not None
    assert result.trace.loop is not None
    assert len(list(replay(clock(weak(Clock), fair=True), result.trace))) == len(result.trace)
    assert check(clock(weak(Clock.tick), fair=True)).status == "holds"
    with pytest.raises(TraceError, match="does not violate refines Hours any more"):
        list(replay(clock(weak(Clock.tick), fair=True), result.trace))


def test_an_end_is_endless_stuttering_too() -> None:
    class Dead(Process):
        done: bool = False

        @action(when=lambda self: not self.done)
        def die(self) -> None:
            self.done = True

    abstract = System([Hours()], fairness=[weak(everybody)])
    prop = refines(abstract, lambda s: Hours(hour=int(s[Dead][0].done)))
    result = check(System([Dead()], properties=[prop]))
    assert result.status == "violated"
    assert result.trace is not None
    assert (result.trace.loop, len(result.trace)) == (None, 1)


def test_another_initial_state_is_a_violation() -> None:
    prop = refines(System([Hours(hour=1)]), hours)
    result = check(System([Clock()], properties=[prop]))
    assert result.trace is not None
    assert len(result.trace) == 0
    assert "the initial state does not map to the initial state of Hours" in (result.trace.explanation or "")


def test_with_other_properties() -> None:
    system = clock()
    system.properties += [
        always(lambda s: s[Clock][0].minutes < 180, name="small"),
        eventually(lambda s: False, name="no"),
    ]
    found = {p.name: p.status for p in check(system, keep_going=True).properties}
    assert found == {"refines Hours": "holds", "small": "holds", "no": "violated"}
    assert check(system, properties=["refines Hours"]).status == "holds"
    assert check(system, properties=["small"], search="stateless", max_depth=4).status == "inconclusive"


@pytest.mark.parametrize("reduce", ["por", "symmetry", "decomposition"])
def test_reductions_are_refused_with_the_reason(reduce: str) -> None:
    with pytest.raises(UsageError, match="refines Hours is a refinement, which is about each step"):
        check(clock(), reduce=reduce)
    automatic = check(clock(), reduce="auto")
    assert automatic.status == "holds"
    assert not any(reduction.applied for reduction in automatic.statistics.reductions)


@pytest.mark.parametrize("search", ["stateless", "random"])
def test_searches_without_a_graph_are_refused(search: Any) -> None:
    with pytest.raises(UsageError, match="refines Hours is a refinement, which needs the graph of all states"):
        check(clock(), search=search)


def test_a_limit_makes_it_inconclusive() -> None:
    assert check(clock(), max_states=3).status == "inconclusive"
    assert check(clock(), coverage=True).status == "holds"


class Note(Message):
    """Is sent."""


class Talker(Process):
    @init
    def talk(self) -> None:
        self.send(self.id, Note())


class Listener(Process):
    @on(Note)
    def hear(self, m: Note) -> None:
        pass


def test_bad_input() -> None:
    with pytest.raises(ModelError, match="expected a System"):
        refines(Hours, hours)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="expected a function of the view"):
        refines(System([Hours()]), 3)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=r"its handler Listener.hear takes messages"):
        refines(System([Listener()]), hours)
    with pytest.raises(ModelError, match="it has faults"):
        refines(System([Hours()], faults=[crash_stop(Hours)]), hours)
    for mapping, said in (
        (lambda s: 3, "the mapping returned 3, not the processes of the abstract System"),
        (lambda s: [Hours(), Hours()], "not the processes of the abstract System"),
        (lambda s: 1 // 0, "the mapping of refines Hours"),
        (lambda s: s[Hours], "the mapping of refines Hours|the system has no Hours"),
        (lambda s: Hours(hour=object()), "the mapping of refines Hours"),  # type: ignore[arg-type]
    ):
        with pytest.raises(ModelError, match=said):
            check(System([Clock()], properties=[refines(System([Hours()]), mapping)]))
    with pytest.raises(ModelError, match="the abstract System sends messages"):
        check(System([Clock()], properties=[refines(System([Talker()]), lambda s: Talker())]))


# -- the abstract System -----------------------------------------------------------------------------------------------


def counting(most: int, **more: Any) -> System:
    class Count(Process):
        n: int = 0

        @init
        def begin(self) -> None:
            self.n = self.choose([0, 1])

        @action(when=lambda self: self.n < most)
        def up(self) -> None:
            self.n += 1

    return System([Count()], **more)


def same(abstract: System) -> Any:
    return refines(abstract, lambda s: type(abstract.processes[0])(n=s[Process][0].n))


def test_initial_states_are_those_that_the_abstract_system_allows() -> None:
    allowed = counting(3, initially=lambda s: s[Process][0].n == 0)
    assert check(counting(3, properties=[same(counting(3))])).status == "holds"
    verdict = check(counting(3, properties=[same(allowed)]))
    assert verdict.status == "violated"
    assert verdict.trace is not None
    assert not verdict.trace.events


def test_a_chain_of_refinements() -> None:
    middle = counting(4, properties=[same(counting(5)), eventually(lambda s: s[Process][0].n == 4)])
    assert check(counting(3, properties=[same(middle)])).status == "holds"


def test_an_abstract_system_that_fails_or_has_a_bound_is_refused() -> None:
    class Fragile(Process):
        n: int = 0

        @action(when=lambda self: 1 // (1 - self.n) > 0)
        def up(self) -> None:
            self.n += 1

    with pytest.raises(
        ModelError, match=r"a step of the abstract System fails where n=1: the guard of Fragile\.up raised"
    ):
        check(counting(3, initially=lambda s: s[Process][0].n == 0, properties=[same(System([Fragile()]))]))
    with pytest.raises(ModelError, match=r"because it has a bound \(within\)"):
        same(counting(3, within=lambda s: True))
