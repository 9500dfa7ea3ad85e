"""Clocks against the oracle: counts, verdicts and runs; and that saturation changes no verdict."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from plait import (
    Clock,
    ModelError,
    Process,
    System,
    TraceError,
    UsageError,
    action,
    always,
    check,
    crash_recovery,
    crash_stop,
    durable,
    eventually,
    final,
    init,
    reachable,
    refines,
    tick,
    weak,
)
from plait.check import runner
from plait.check.explain.graph import state_graph
from plait.check.explain.replay import replay
from plait.report.itf import load_trace
from tests.oracle.clock_systems import Spec, Timed, build, specs, symmetric_specs, timed_systems
from tests.oracle.cyclic_systems import Drawn, formulas
from tests.oracle.explorer import explore
from tests.oracle.orbits import orbits
from tests.support.agreement import check_traces, compare
from tests.support.liveness import compare as compare_runs
from tests.support.natively import compare as compare_natively
from tests.support.natively import share

LIMIT = 4
RANDOM: Any = {"deadline": None, "suppress_health_check": list(HealthCheck)}
CAP = 8
"""More than the bound of every clock of a random system."""


@pytest.mark.slow
@settings(max_examples=40, **RANDOM)
@given(timed_systems(100, specs()))
def test_random_systems(made: Timed) -> None:
    compare(made.system, made.truth)


@pytest.mark.slow
@settings(max_examples=60, **RANDOM)
@given(specs())
def test_saturation_changes_no_verdict(spec: Spec) -> None:
    """The engine, with saturated clocks, decides as the oracle does whose clocks count on."""
    system = build(spec)[0]
    far = explore(build(spec, cap=CAP)[0], limit=400)
    assume(far.complete)
    verdict = check(system, keep_going=True)
    assert {p.name for p in verdict.properties if p.status == "violated"} == far.violated


@pytest.mark.slow
@settings(max_examples=40, **RANDOM)
@given(timed_systems(150, symmetric_specs()))
def test_symmetry(made: Timed) -> None:
    verdict = check(made.system, reduce="symmetry", keep_going=True)
    expected = orbits(made.system, made.truth)
    assert (verdict.statistics.states, verdict.statistics.terminal_states) == (expected.states, expected.terminal)
    assert {p.name for p in verdict.properties if p.status == "violated"} == made.truth.violated
    check_traces(made.system, verdict, made.truth, shortest=False)


@pytest.mark.slow
@settings(max_examples=60, **RANDOM)
@given(timed_systems(30, specs()), st.data())
def test_runs(made: Timed, data: Any) -> None:
    """Temporal properties, under fairness of the tick and of processes."""
    drawn = Drawn(made.system, made.fairness, made.atoms, made.truth)
    compare_runs(drawn, data.draw(formulas(made.atoms)), 4)


@pytest.mark.slow
@settings(max_examples=25, **RANDOM)
@given(specs())
def test_native_execution(spec: Spec) -> None:
    assume(explore(build(spec)[0], limit=100).complete)
    compare_natively(lambda: build(spec)[0], keep_going=True)


# -- by hand --------------------------------------------------------------------------------------------------------------


class Watch(Process):
    """Counts, and does nothing else."""

    a: Clock = Clock(bound=4)
    up: bool = False


def test_a_clock_alone() -> None:
    """It has the values 0 to its bound, and more."""
    verdict = check(System([Watch()]))
    found = verdict.statistics
    assert (found.states, found.transitions, found.terminal_states, found.depth) == (6, 5, 1, 5)


@pytest.mark.parametrize("drift", [1, 2, 3])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_drift(count: int, drift: int) -> None:
    """All combinations of ticks that are at most `drift` apart; what can be told apart are saturated counts, and leads."""
    bound = 3
    far = range(bound + drift + 3)
    states = {
        (tuple(min(t, bound + 1) for t in ticks), tuple(t - min(ticks) for t in ticks))
        for ticks in product(far, repeat=count)
        if max(ticks) - min(ticks) <= drift
    }
    system = System([Watch(a=Clock(bound=bound)) for _ in range(count)], drift=drift, symmetric=[Watch][: count - 1])
    verdict = check(system)
    assert verdict.statistics.states == len(states)
    assert verdict.statistics.terminal_states == sum(set(counts) == {bound + 1} for counts, _ in states)
    if count > 1:
        orbits = {tuple(sorted(zip(counts, leads, strict=True))) for counts, leads in states}
        assert check(system, reduce="symmetry").statistics.states == len(orbits)


class Alarm(Process):
    a: Clock = Clock()
    rang: bool = False

    @action(when=lambda self: not self.rang and self.a >= 2, urgent=True)
    def ring(self) -> None:
        self.rang = True


def test_urgent() -> None:
    """The alarm rings at two: time waits for it."""
    late = reachable(lambda s: not s[Alarm][0].rang and s[Alarm][0].a > 2, name="late")
    verdict = check(System([Alarm(), Watch()], properties=[late]))
    assert verdict.property == "late"


def test_a_state_in_which_only_time_passes_is_not_terminal() -> None:
    """It is when nothing can change any more, and then it is reported as a deadlock."""
    rings = final(lambda s: s[Alarm][0].rang, name="rings")
    assert check(System([Alarm()], properties=[rings]))

    class Stuck(Alarm):
        @action(when=lambda self: self.a >= 2, urgent=True)
        def ring(self) -> None: ...  # nothing changes, and time waits for ever

    verdict = check(System([Stuck()], properties=[rings]))
    assert verdict.property == "rings"
    assert verdict.trace is not None
    assert [event.label for event in verdict.trace.events] == ["tick", "tick"]


def test_time_goes_on_for_ever() -> None:
    """Without fairness of a process, time may pass for ever, although the process could take a step."""

    class Lazy(Process):
        a: Clock = Clock(bound=1)
        done: bool = False

        @action(when=lambda self: not self.done)
        def work(self) -> None:
            self.done = True

    def verdict(*fairness: Any, **more: Any) -> Any:
        done = eventually(lambda s: all(p.done for p in s[Lazy]), name="done", fairness=fairness)
        return check(System([Lazy() for _ in range(2)], properties=[done], **more))

    for drift in (0, 1):
        assert verdict(drift=drift).property == "done"
        assert verdict(weak(tick), drift=drift).property == "done"
        assert verdict(weak(Lazy), drift=drift).status == "holds"
    trace = verdict().trace
    assert trace.loop is None
    assert "time passes for ever" in trace.explanation
    assert [event.kind for event in trace.events] == ["tick", "tick"]


def test_fairness_of_the_tick() -> None:
    class Busy(Process):
        on: bool = False

        @action
        def flip(self) -> None:
            self.on = not self.on

    def verdict(*fairness: Any, **more: Any) -> Any:
        late = eventually(lambda s: s[Watch][0].a > 4, name="late", fairness=fairness)
        return check(System([Busy(), Watch()], properties=[late], **more))

    assert verdict().property == "late"
    assert verdict(weak(Busy)).property == "late"
    assert verdict(weak(tick)).status == "holds"
    assert verdict(weak(tick), drift=1).status == "holds"
    trace = verdict().trace
    assert trace.loop is not None
    late = eventually(lambda s: s[Watch][0].a > 4, name="late", fairness=[weak(tick)])
    with pytest.raises(TraceError, match=r"weak\(tick\): time tick is enabled in all states of the loop"):
        list(replay(System([Busy(), Watch()], properties=[late]), trace))


def test_partial_order_reduction_is_refused_without_urgent_steps() -> None:
    system = System([Watch(), Watch()])
    for search, reduction in (("bfs", "por"), ("stateless", "dpor")):
        with pytest.raises(
            UsageError, match=r"the model has clocks( and no urgent step: a tick is possible|, and a tick dep)"
        ):
            check(system, search=search, reduce=reduction)  # type: ignore[arg-type]
        verdict = check(system, search=search, reduce="auto")  # type: ignore[arg-type]
        assert [r.name for r in verdict.statistics.reductions if not r.applied and "clocks" in r.reason] == [reduction]


def test_decomposition() -> None:
    """Clocks are relevant; a log on which nothing depends is not, and its states are merged."""

    class Logging(Process):
        a: Clock = Clock()
        log: tuple[int, ...] = ()

        @action(when=lambda self: self.a == 2)
        def note(self) -> None:
            self.log = (*self.log, len(self.log))
            self.a.reset()

        @action(when=lambda self: self.a > 2)
        def stop(self) -> None:
            self.a.stop()

    system = System([Logging(), Logging()], properties=[always(lambda s: all(p.a >= 0 for p in s[Logging]))])
    verdict = check(system, reduce="decomposition")
    assert verdict.status == "holds"  # without the reduction, the log grows for ever
    assert [r.reason for r in verdict.statistics.reductions if r.applied] == ["auxiliary: Logging.log"]
    counts = set(product(range(3), repeat=2))  # neither is late
    assert verdict.statistics.states >= len(counts)


def test_crashes_and_recovery() -> None:
    """While a process is down, durable clocks run and others do not; a crash resets those that are not durable."""

    class Server(Process):
        kept: Clock = durable(Clock(bound=2))
        fresh: Clock = Clock(bound=2)

    def apart(s: Any) -> bool:
        return bool(s[Server][0].kept > 2 and s[Server][0].fresh == 0)

    def ahead(s: Any) -> bool:
        return bool(s[Server][0].fresh > 0 and s[Server][0].kept == 0)

    faults = [crash_recovery(Server, budget=1)]
    system = System([Server()], faults=faults, properties=[reachable(apart), always(lambda s: not ahead(s), name="no")])
    compare(system, explore(system))
    assert "violated" not in [p.status for p in check(system).properties]
    stopped = System([Server()], faults=[crash_stop(budget=1)])
    compare(stopped, explore(stopped))
    assert check(stopped).statistics.terminal_states == 5  # crashed at 0, 1, 2 and later; or late


# -- traces ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("drift", [0, 1])
def test_traces(drift: int, tmp_path: Path) -> None:
    """A tick of all processes is a line across all lanes; with drift, a mark on the lane of its process."""
    rang = always(lambda s: not s[Alarm][0].rang, name="silence")
    system = System([Alarm(), Watch()], properties=[rang], drift=drift)
    verdict = check(system)
    trace = verdict.trace
    assert trace is not None
    ticks = [event for event in trace.events if event.kind == "tick"]
    assert {event.lane for event in ticks} == ({"Alarm0", "Watch0"} if drift else {"time"})
    assert {lane.name for lane in trace.lanes} == {"Alarm0", "Watch0"}
    if drift:
        assert all("(lead)" in event.state.fields["Watch0"] for event in trace.events)
    else:
        assert ticks[0].changed == {
            "Alarm0.a": ({"#clock": "0"}, {"#clock": "1"}),
            "Watch0.a": ({"#clock": "0"}, {"#clock": "1"}),
        }
    text = str(verdict)
    assert ("◦ tick" if drift else "─── tick") in text
    assert "a: 0 → 1" in text
    for suffix in (".itf.json", ".svg", ".html", ".txt"):
        trace.save(tmp_path / f"run{suffix}")
    assert load_trace(tmp_path / "run.itf.json") == trace
    assert ('class="tick"' in (tmp_path / "run.svg").read_text()) == (not drift)
    assert len(list(replay(system, load_trace(tmp_path / "run.itf.json")))) == len(trace)
    assert trace.why is not None
    assert len(trace.events) - 1 in trace.why.steps
    graph = state_graph(system, max_states=50)
    assert {edge.lane for edge in graph.edges if edge.kind == "tick"} == ({"Alarm0", "Watch0"} if drift else {"time"})


def test_a_clock_above_its_bound() -> None:
    trace = check(System([Watch()], properties=[always(lambda s: s[Watch][0].a <= 4, name="early")])).trace
    assert trace is not None
    assert trace.events[-1].changed == {"Watch0.a": ({"#clock": "4"}, {"#clock": "more than 4"})}


def test_what_runs_natively() -> None:
    """Comparisons with constants, and operations; the machine agrees with CPython."""

    class Native(Process):
        a: Clock = Clock()
        b: Clock = Clock(running=False)
        n: int = 0

        @action(when=lambda self: 1 <= self.a < 3 and not self.b.running)
        def begin(self) -> None:
            self.b.start()
            self.n += 1

        @action(when=lambda self: self.b == 2 and self.n < LIMIT)
        def again(self) -> None:
            self.a.reset()
            self.b.reset()
            self.b.stop()

    def system(drift: int) -> System:
        early = always(lambda s: all(p.a < LIMIT or p.b.running or p.n == 0 for p in s[Native]), name="early")
        return System([Native(), Native()], properties=[early], drift=drift)

    for drift in (0, 1):
        native = compare_natively(lambda drift=drift: system(drift), keep_going=True)
        assert share(native) == (5, 5)
        assert native.runner is not None
        assert native.runner.engine.native_left == 0
    assert (
        check(system(0), native="only", keep_going=True).statistics.states
        == explore(declared(system(0), a=4, b=2)).states
    )


def declared(system: System, **bounds: int) -> System:
    """The system with declared bounds."""
    for process in system.processes:
        for name in process.__plait_clocks__:
            process.__dict__[name] = Clock(running=process.__dict__[name].running, bound=bounds[name])
    return system


# -- mutants --------------------------------------------------------------------------------------------------------------


class Server(Process):
    kept: Clock = durable(Clock(bound=2))
    fresh: Clock = Clock(bound=2)
    late: bool = False

    @action(when=lambda self: self.kept > 2)
    def look(self) -> None:  # natively, so that the native engine advances the clocks
        self.late = True


def mutated(monkeypatch: pytest.MonkeyPatch, mutant: str) -> None:
    """Plant a mistake in what the engine is told about time, or in the clock of CPython."""
    clocks = runner._clocks

    def told(system: System) -> Any:
        fields, urgent, drift = clocks(system) or ([], [], 0)
        if mutant == "nothing is urgent":
            urgent = [[] for _ in urgent]
        elif mutant == "no drift":
            drift = 0
        elif mutant == "a clock is forgotten":
            fields = [some[:1] for some in fields]
        elif mutant == "all clocks are durable":
            fields = [[(field, True) for field, _ in some] for some in fields]
        return fields, urgent, drift

    def early(self: Any) -> None:
        if self._running and self._ticks < self._bound:
            self._ticks += 1

    def late(self: Any) -> None:
        if self._running and self._ticks <= self._bound + 1:
            self._ticks += 1

    monkeypatch.setattr(runner, "_clocks", told)
    if mutant in ("saturated too early", "saturated too late"):
        monkeypatch.setattr(Clock, "_tick", early if mutant == "saturated too early" else late)


@pytest.mark.parametrize(
    "mutant",
    [
        "none",
        "nothing is urgent",
        "no drift",
        "a clock is forgotten",
        "all clocks are durable",
        "saturated too early",
        "saturated too late",
    ],
)
def test_mistakes_in_the_tick_are_noticed(monkeypatch: pytest.MonkeyPatch, mutant: str) -> None:
    """By the comparison with the oracle, on small systems."""
    systems = [
        System([Alarm(a=Clock(bound=2)), Watch()]),
        System([Watch(), Watch()], drift=1),
        System([Server()], faults=[crash_recovery(Server, budget=1)]),
    ]
    mutated(monkeypatch, mutant)
    native = "off" if mutant.startswith("saturated") else "auto"
    counts = [check(system, native=native).statistics for system in systems]
    truths = [explore(system) for system in systems]
    same = [(c.states, c.transitions) == (t.states, t.transitions) for c, t in zip(counts, truths, strict=True)]
    assert all(same) == (mutant == "none")


def test_refinement() -> None:
    """A mapping may compare clocks. A tick maps to a step of the abstract System, or to none."""

    class Light(Process):
        on: bool = False

        @action(when=lambda self: not self.on)
        def turn_on(self) -> None:
            self.on = True

    def verdict(*fairness: Any) -> Any:
        light = System([Light()], fairness=fairness)
        shows = refines(light, lambda s: Light(on=s[Watch][0].a > 2), name="shows")
        return check(System([Watch(), Alarm()], properties=[shows]))

    assert verdict().status == "holds"
    assert verdict(weak(Light)).status == "holds"  # there is nothing to do but to tick
    with pytest.raises(ModelError, match="compares a clock with 9"):
        check(System([Watch()], properties=[refines(System([Light()]), lambda s: Light(on=s[Watch][0].a > 9))]))


@pytest.mark.parametrize("drift", [0, 1])
def test_bounds_and_initial_states(drift: int) -> None:
    """@init methods may stop clocks, and `within` may compare them."""

    class Either(Process):
        a: Clock = Clock(bound=3)

        @init
        def begin(self) -> None:
            if self.choose([True, False]):
                self.a.stop()

    system = System([Either(), Either()], within=lambda s: s[Either][0].a < 2, drift=drift)
    truth = explore(system)
    found = check(system).statistics
    assert (found.states, found.transitions) == (truth.states, truth.transitions)
