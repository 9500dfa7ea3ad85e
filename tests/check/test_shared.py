"""Shared state: against the oracle with all searches and reductions; published counts; traces."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plait import (
    ModelError,
    Pid,
    Process,
    Shared,
    System,
    action,
    always,
    check,
    crash_recovery,
    durable,
    final,
    reachable,
)
from plait.check.explain.replay import replay
from plait.model.loading.loader import load
from plait.report.itf import load_trace
from plait.rounds.check import check_rounds
from tests.oracle import shared_systems
from tests.oracle.cyclic_systems import formulas
from tests.oracle.explorer import Exploration, explore
from tests.oracle.orbits import orbits
from tests.support import agreement, natively
from tests.support.agreement import check_traces
from tests.support.configurations import WAYS, Way, compare, leaving_out, run, violated, ways
from tests.support.examples import FOLDER
from tests.support.liveness import compare as compare_runs

INCREMENT_LOCK = str(FOLDER / "shared" / "increment_lock.py")
RANDOM = settings(deadline=None, suppress_health_check=list(HealthCheck))


# -- random systems --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(RANDOM, max_examples=12)
@given(shared_systems.explored_systems(limit=250))
def test_searches(pair: tuple[System, Exploration]) -> None:
    agreement.compare(*pair)


@pytest.mark.slow
@settings(RANDOM, max_examples=30)
@given(shared_systems.explored_systems(limit=250), ways())
def test_partial_order_reduction(pair: tuple[System, Exploration], way: Way) -> None:
    compare(*pair, way)


@pytest.mark.slow
@settings(RANDOM, max_examples=30)
@given(shared_systems.explored_systems(limit=80))
def test_dynamic_partial_order_reduction(pair: tuple[System, Exploration]) -> None:
    system, truth = pair
    limits: Any = {"search": "stateless", "max_states": 5_000, "max_depth": 30}
    verdict = check(system, reduce="dpor", keep_going=True, **limits)
    check_traces(system, verdict, truth, shortest=False)
    if verdict.bound is None:
        assert violated(verdict) == truth.violated
    else:
        assert violated(verdict) <= truth.violated


@pytest.mark.slow
@settings(RANDOM, max_examples=12)
@given(shared_systems.explored_systems(limit=250, symmetric=True), ways(), st.booleans())
def test_symmetry(pair: tuple[System, Exploration], way: Way, por: bool) -> None:
    system, truth = pair
    there = orbits(system, truth)
    assert there.closed
    if not there.impartial:
        with pytest.raises(ModelError, match="not symmetric"):
            run(system, way, "symmetry")
        return
    verdict = run(system, way, "por,symmetry" if por else "symmetry")
    assert violated(verdict) == truth.violated
    assert verdict.statistics.terminal_states == there.terminal
    assert verdict.statistics.states <= there.states if por else verdict.statistics.states == there.states
    check_traces(system, verdict, truth, shortest=False)


@pytest.mark.slow
@settings(RANDOM, max_examples=20)
@given(st.data())
def test_temporal_properties(data: st.DataObject) -> None:
    made = data.draw(shared_systems.drawn(limit=20))
    compare_runs(made, data.draw(formulas(made.atoms)), length=4)


@pytest.mark.slow
@settings(RANDOM, max_examples=12)
@given(shared_systems.specs())
def test_native_execution(spec: shared_systems.Spec) -> None:
    spec = shared_systems.without_spawns(spec)
    if explore(shared_systems.build(spec), limit=400).complete:
        natively.compare(lambda: shared_systems.build(spec), keep_going=True, explore=True)


@pytest.mark.slow
@settings(RANDOM, max_examples=8)
@given(shared_systems.explored_systems(limit=250))
def test_coverage_and_replay(pair: tuple[System, Exploration]) -> None:
    """The same with coverage, which runs everything in CPython; and every run can be replayed."""
    system, truth = pair
    verdict = check(system, coverage=True, keep_going=True, explore=True)
    assert violated(verdict) == truth.violated
    assert verdict.statistics.states == truth.states
    for result in verdict.properties:
        if result.trace is not None:
            assert len(list(replay(system, result.trace))) == len(result.trace)


# -- by hand ---------------------------------------------------------------------------------------------------------


class Store(Shared):
    value: int = 0
    other: int = 0


class Writer(Process):
    """Writes a value once, without a look at what was there."""

    store: Store
    mine: int
    done: bool = False

    @action(when=lambda self: not self.done)
    def write(self) -> None:
        self.store.value = self.mine
        self.done = True


@pytest.mark.parametrize("native", ["auto", "off"])
def test_a_write_counts_even_if_it_changes_nothing_where_it_is_first_met(native: Any) -> None:
    """The first writer meets its own value already there: its step must still overwrite what the other one wrote."""

    @reachable
    def the_first_wins(s: Any) -> bool:
        return bool(s[Store].value == 0 and all(w.done for w in s[Writer]))

    store = Store()
    system = System([Writer(store=store, mine=0), Writer(store=store, mine=1)], properties=[the_first_wins])
    assert check(system, native=native)
    assert check(system, native=native, reduce="por")


class Ticker(Process):
    """Counts in shared memory."""

    store: Store
    limit: int

    @action(when=lambda self: self.store.value < self.limit)
    def tick(self) -> None:
        self.store.value += 1


class Walker(Process):
    """Goes its way, and looks at nothing."""

    store: Store
    at: int = 0
    end: int = 0

    @action(when=lambda self: self.at < self.end)
    def walk(self) -> None:
        self.at += 1
        self.store.other = self.at


@pytest.mark.parametrize("native", ["off", "auto"])
def test_a_guard_that_raises_does_so_whatever_the_other_fields_are(native: Any) -> None:
    class Memory(Shared):
        a: int = 0
        b: int = 0

    class Reader(Process):
        memory: Memory
        ran: bool = False

        @action(when=lambda self: 1 // self.memory.a > 0)
        def run(self) -> None:
            self.ran = True

        @action(when=lambda self: self.memory.b > 3)
        def look(self) -> None: ...

    class Writer(Process):
        memory: Memory

        @action(when=lambda self: self.memory.b < 3)
        def write(self) -> None:
            self.memory.b += 1

    memory = Memory()
    ran = reachable(lambda s: s[Reader][0].ran, name="ran")
    system = System([Reader(memory=memory), Writer(memory=memory)], properties=[ran])
    verdict = check(system, keep_going=True, native=native)
    assert {p.name: p.status for p in verdict.properties} == {"ran": "violated", "no_exceptions": "violated"}
    assert verdict.statistics.states == 4


def test_a_step_is_tabulated_on_the_shared_fields_that_it_reads() -> None:
    def calls(ticks: int, steps: int) -> int:
        store = Store()
        system = System([Ticker(store=store, limit=ticks), Walker(store=store, end=steps)])
        verdict = check(system, native="off", explore=True, workers=1)
        assert verdict.statistics.states == (ticks + 1) * (steps + 1)
        return verdict.statistics.python_calls

    # The states are a product. The questions are not: the walker is not asked again for each value of the ticker.
    assert calls(30, 20) - calls(30, 10) == calls(3, 20) - calls(3, 10)


def test_published_counts_of_a_counter_under_a_lock() -> None:
    """Stateright's increment_lock: 2 to 5 threads, without and with exact symmetry."""
    for threads, states, orbits_ in ((2, 17, 9), (3, 61, 13), (4, 257, 17), (5, 1301, 21)):
        system = load(INCREMENT_LOCK, {"threads": threads}, parse=False)
        for native in ("auto", "off"):
            assert check(system, native=native).statistics.states == states  # type: ignore[arg-type]
        assert check(system, search="dfs", workers=1).statistics.states == states
        assert check(system, reduce="symmetry").statistics.states == orbits_


class Fragile(Process):
    store: Store
    kept: int = 0
    durable_: int = durable(0)

    @action(when=lambda self: self.kept == 0)
    def work(self) -> None:
        self.kept = self.durable_ = 1
        self.store.value = 1


def test_shared_fields_survive_crashes() -> None:
    @always
    def remembered(s: Any) -> bool:
        return all(p.durable_ == s[Store].value for p in s[Fragile])

    system = System([Fragile(store=Store())], faults=[crash_recovery(Fragile, budget=1)], properties=[remembered])
    assert check(system)
    assert explore(system).states == check(system).statistics.states


# -- traces ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def lost_update() -> Any:
    verdict = check(load(INCREMENT_LOCK, {"lock": False}, parse=False))
    assert verdict.trace is not None
    return verdict.trace


def test_a_trace_has_a_lane_for_shared_objects(lost_update: Any) -> None:
    assert [(lane.name, lane.shared) for lane in lost_update.lanes][-1] == ("Memory0", True)
    reads = [event for event in lost_update.events if event.label == "read"]
    assert all("Memory0.counter" in event.read for event in reads)
    writes = [event.changed["Memory0.counter"] for event in lost_update.events if "Memory0.counter" in event.changed]
    assert writes == [(0, 1)]  # the other one writes the same value again
    assert lost_update.events[-1].state.fields["Memory0"]["counter"] == 1
    assert any(read.lane == "Memory0" and read.field == "counter" for read in lost_update.why.reads)


def test_pictures_and_files_show_reads_and_writes(lost_update: Any, tmp_path: Any) -> None:
    text = str(lost_update)
    assert "◇ reads   ◆ writes" in text
    assert "Memory0.counter: 0 → 1" in text
    for suffix in ("svg", "html", "itf.json", "txt"):
        lost_update.save(tmp_path / f"run.{suffix}")
    assert 'class="access reads"' in (tmp_path / "run.svg").read_text()
    assert 'class="access writes"' in (tmp_path / "run.html").read_text()
    assert load_trace(tmp_path / "run.itf.json") == lost_update


# -- what it cannot be combined with --------------------------------------------------------------------------------


def test_what_shared_state_cannot_be_combined_with() -> None:
    with pytest.raises(ModelError, match="processes share Store0, and rounds change the order"):
        check_rounds(System([Writer(store=Store(), mine=1)], properties=[always(lambda s: True, name="all")]))


def test_asymmetry_in_shared_fields_is_found() -> None:
    class Owner(Shared):
        who: Pid | None = None
        count: int = 0

    class Peer(Process):
        owner: Owner

        @action(when=lambda self: self.owner.who == self.id)
        def give(self) -> None:
            self.owner.who = None

    def system(**fields: Any) -> System:
        owner = Owner(**fields)
        return System([Peer(owner=owner), Peer(owner=owner)], symmetric=[Peer])

    with pytest.raises(ModelError, match=r"the initial value of Owner0\.who treats them differently"):
        check(system(who=Peer.pid(1)), reduce="symmetry", explore=True)

    class Odd(Process):
        owner: Owner
        done: bool = False

        @action(when=lambda self: not self.done and (self.id.index == 0 or self.owner.count == 0))
        def act(self) -> None:
            self.done = True

    owner = Owner()
    with pytest.raises(ModelError, match=r"Odd0 and Odd1 are not symmetric: Odd\.act treats them differently"):
        check(System([Odd(owner=owner), Odd(owner=owner)], symmetric=[Odd]), reduce="symmetry", explore=True)


# -- every rule is needed ------------------------------------------------------------------------------------------------


class Door(Shared):
    closed: bool = False


class Porter(Process):
    """Closes the door."""

    door: Door
    gone: bool = False

    @action(when=lambda self: not self.gone)
    def close(self) -> None:
        self.door.closed = True
        self.gone = True


class Guest(Process):
    """Comes, and gets in while the door is open."""

    door: Door
    where: str = "outside"

    @action(when=lambda self: self.where == "outside")
    def come(self) -> None:
        self.where = "at the door"

    @action(when=lambda self: self.where == "at the door" and not self.door.closed)
    def enter(self) -> None:
        self.where = "inside"


def house() -> System:
    @final
    def locked_out(s: Any) -> bool:
        return bool(s[Guest][0].where != "inside")

    door = Door()
    return System([Porter(door=door), Guest(door=door)], properties=[locked_out])


def test_the_rule_for_partial_order_reduction_is_needed() -> None:
    """A guest who finds the door closed shows that the guest reads it, although entering is never enabled then."""
    for way in WAYS:
        assert violated(run(house(), way)) == {"locked_out"}
    assert violated(run(house(), Way(), without="cells")) == set()


def test_the_rule_for_dynamic_reduction_is_needed() -> None:
    limits: Any = {"search": "stateless", "reduce": "dpor", "max_depth": 50, "keep_going": True}
    assert violated(check(house(), **limits)) == {"locked_out"}
    with leaving_out("dpor-cells"):
        assert violated(check(house(), **limits)) == set()
