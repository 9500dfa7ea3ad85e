"""Native execution against CPython: a check says the same with `native="auto"` and with `native="off"`.

The same verdict, states, transitions, terminal states, depth, runs (with one worker), warnings and errors, and the same set
of fingerprints. `tests/support/natively.py` compares. The virtual machine itself is compared with CPython in `tests/ir/`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plait import (
    Message,
    Monitor,
    Pid,
    Process,
    System,
    action,
    always,
    check,
    crash_recovery,
    crash_stop,
    durable,
    eventually,
    field,
    fifo,
    final,
    on,
    reachable,
    recovery,
    unordered,
    weak,
)
from plait.model.loading.loader import load
from plait.model.network import Network, duplicating
from tests.oracle.explorer import Exploration
from tests.oracle.random_systems import explored_systems
from tests.support.agreement import ZOO
from tests.support.examples import CASES, FOLDER, name_of
from tests.support.instances import INSTANCES
from tests.support.natively import checked, compare, share
from tests.support.programs import random_program
from tests.support.sourced import random_source, system_of
from tests.support.twins import TWINS, Twin

MAKERS: dict[str, Callable[[], System]] = {**ZOO, **INSTANCES}
WAYS: dict[str, dict[str, Any]] = {
    "bfs": {},
    "dfs": {"search": "dfs", "raw": True},
    "keep_going": {"search": "dfs", "keep_going": True},
    "por": {"reduce": "por"},
    "por, dfs": {"reduce": "por", "search": "dfs", "keep_going": True},
    "symmetry": {"reduce": "symmetry", "keep_going": True},
    "decomposition": {"reduce": "decomposition"},
    "auto": {"reduce": "auto"},
    "history": {"history": "last", "keep_going": True},
    "random": {"search": "random", "walks": 30, "max_depth": 30},
    "stateless": {"search": "stateless", "max_depth": 10},
    "dpor": {"search": "stateless", "reduce": "dpor", "max_depth": 30, "keep_going": True, "counts": False},
}
"""Options, some of which do not suit every model: then the errors are compared."""
FEW = ("abd", "paxos, one by one", "ping_pong", "raft, faulty", "zab, divided", "conveyor_belt, crashes")
"""With monitors, crashes, temporal properties, symmetry, losses."""


# -- the zoo and the examples ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MAKERS)
def test_the_zoo(name: str) -> None:
    found = compare(MAKERS[name], keep_going=True, max_states=2_000)
    native, functions = share(found)
    assert native == functions > 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FEW)
def test_searches_and_reductions(name: str, way: str) -> None:
    compare(MAKERS[name], **{"max_states": 500, **WAYS[way]})


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", [name for name in MAKERS if name not in FEW])
def test_searches_and_reductions_of_the_others(name: str, way: str) -> None:
    compare(MAKERS[name], **{"max_states": 3_000, **WAYS[way]})


@pytest.mark.slow
@pytest.mark.parametrize("twin", [twin for twin in TWINS if twin.shallow], ids=str)
def test_faulty_twins(twin: Twin) -> None:
    found = compare(twin.system)
    assert found.verdict is not None
    assert found.verdict.property == twin.violated


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_the_examples(case: tuple[str, dict[str, Any], str | None]) -> None:
    name, parameters, _ = case
    compare(lambda: load(str(FOLDER / f"{name}.py"), parameters, parse=False), keep_going=True, max_states=2_000)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_searches_and_reductions_of_the_examples(case: tuple[str, dict[str, Any], str | None], way: str) -> None:
    name, parameters, _ = case
    options = {"max_states": 3_000, **WAYS[way]}
    compare(lambda: load(str(FOLDER / f"{name}.py"), parameters, parse=False), **options)


# -- random systems ----------------------------------------------------------------------------------------------------

RANDOM_WAYS: tuple[dict[str, Any], ...] = (
    {},
    {"search": "dfs"},
    {"history": "last"},
    {"search": "stateless"},
    {"reduce": "por", "counts": False},
)


def compare_source(source: str, way: int) -> None:
    system = system_of(source)
    compare(lambda: system, keep_going=True, max_states=1_000, **RANDOM_WAYS[way % len(RANDOM_WAYS)])


@pytest.mark.parametrize("seed", range(60))
def test_random_sources(seed: int) -> None:
    compare_source(random_source(random.Random(seed)), seed)


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed: int) -> None:
    """With callables as values, aliases, reflection: many functions of these are left to CPython."""
    compare_source(random_program(random.Random(seed)), seed)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(1_000), st.sampled_from((random_source, random_program)), st.integers(0, len(RANDOM_WAYS) - 1))
def test_more_random_sources(seed: int, made: Callable[[random.Random], str], way: int) -> None:
    compare_source(made(random.Random(seed)), way)


@pytest.mark.slow
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(explored_systems(limit=300), st.sampled_from(({}, {"search": "dfs"}, {"history": "last"})))
def test_random_systems(pair: tuple[System, Exploration], way: dict[str, Any]) -> None:
    """All networks and faults, quorums, monitors, spawned processes, exceptions."""
    compare(lambda: pair[0], keep_going=True, **way)


# -- a model with everything -------------------------------------------------------------------------------------------


class Job(Message):
    number: int


class Done(Message):
    number: int


class Rare(Message):
    pass


class Worker(Process):
    """Is spawned for a job, and reports."""

    number: int = 0

    @action(when=lambda self: self.number > 0)
    def finish(self) -> None:
        self.announce(("done", self.number))
        self.send(Boss.pid(0), Done(self.number))
        self.number = 0


class Boss(Process):
    jobs: int = durable(2)
    given: int = durable(0)
    finished: set[int] = field(default_factory=set)
    wakings: int = durable(0)

    @action(when=lambda self: self.given < self.jobs)
    def give(self) -> None:
        self.given += 1
        self.announce(("given", self.given))
        self.spawn(Worker, number=self.given)

    @on(Done, where=lambda self, m: m.number not in self.finished)
    def note(self, m: Done) -> None:
        assert len(self.finished) < 3
        self.finished.add(m.number)

    @recovery
    def wake(self) -> None:
        self.wakings += 1
        self.finished = {self.choose([1, 2])}


class Balance(Monitor):
    open: dict[Pid, int] = field(default_factory=dict)
    most: int = 0

    def observe(self, process: Pid, event: Any) -> None:
        match event:
            case ("given", int(number)):
                self.open[process] = number
            case (_, number) if number > 0:
                self.open[process] = -number
        self.most = max(self.most, sum(1 for n in self.open.values() if n > 0))


@always
def few(s: Any) -> bool:
    return bool(s[Balance].most <= 1)


@reachable
def forgotten(s: Any) -> bool:
    return any(boss.wakings > 0 and not boss.crashed for boss in s[Boss])


@final
def all_done(s: Any) -> bool:
    return all(len(boss.finished) == boss.jobs for boss in s[Boss] if boss.status == "up")


PROPERTIES = (few, forgotten, all_done)
NETWORKS: dict[str, Network] = {
    "unordered": unordered(),
    "lossy": unordered(losses=1),
    "fifo": fifo(),
    "duplicating": duplicating(),
    "copies": duplicating(duplications=1),
}


@pytest.mark.parametrize("faults", ["none", "stop", "recovery"])
@pytest.mark.parametrize("network", NETWORKS)
def test_networks_and_faults(network: str, faults: str) -> None:
    crashes = {"none": [], "stop": [crash_stop(Boss, Worker, budget=1)], "recovery": [crash_recovery(Boss, budget=1)]}

    def system() -> System:
        return System(
            [Boss()],
            spare={Worker: 2},
            network=NETWORKS[network],
            faults=crashes[faults],
            monitors=[Balance()],
            properties=PROPERTIES,
        )

    for options in ({}, {"search": "dfs"}, {"history": "last"}):
        found = compare(system, keep_going=True, max_states=2_000, **options)
        native, functions = share(found)
        assert native == functions > 0


@pytest.mark.parametrize(
    "fairness", [(), (weak(Boss.give), weak(Boss.note), weak(Worker.finish))], ids=["unfair", "fair"]
)
@pytest.mark.parametrize("reduce", ["none", "por", "auto"])
def test_temporal_properties(fairness: tuple[Any, ...], reduce: str) -> None:
    def all_finished(s: Any) -> bool:
        return all(len(boss.finished) == boss.jobs for boss in s[Boss])

    for wanted in (eventually(all_finished, name="finished"), eventually(lambda s: False, name="never")):
        compare(
            lambda wanted=wanted: System(  # type: ignore[misc]
                [Boss()],
                spare={Worker: 2},
                monitors=[Balance()],
                properties=[few, wanted],
                fairness=fairness,
            ),
            reduce=reduce,
            keep_going=True,
        )


# -- what is noted on the way ------------------------------------------------------------------------------------------


class Clock(Process):
    """Sends a rare message late: when most of its steps run natively only."""

    time: int = 0

    @action(when=lambda self: self.time < 100)
    def tick(self) -> None:
        self.time += 1
        if self.time == 60:
            self.send(Deaf.pid(0), Rare())

    @action(when=lambda self: self.time > 100)
    def never(self) -> None:
        self.time = 0


class Deaf(Process):
    @on(Rare, where=lambda self, m: False)
    def hear(self, m: Rare) -> None:
        pass

    @on(Done)
    def done(self, m: Done) -> None:
        pass


def clocks() -> System:
    return System([Clock(), Deaf()], properties=[final(lambda s: s[Clock][0].time == 100, name="ends")])


def test_warnings_know_what_was_sent_natively() -> None:
    found = compare(clocks)
    assert found.verdict is not None
    assert found.verdict.warnings == [
        "Clock.never never ran: its guard was never true",
        "Deaf.hear never ran: its guard was never true",
        "Deaf.done never ran: no process sends Done",
    ]


def test_python_calls_count_cpython_only() -> None:
    calls = {how: check(clocks(), native=how).statistics.python_calls for how in ("auto", "off")}  # type: ignore[arg-type]
    assert 0 < calls["auto"] < calls["off"] / 2
    runner = checked(clocks(), "auto").runner
    assert runner is not None
    assert runner.engine.native_answers > 200


# -- parts of properties -----------------------------------------------------------------------------------------------


class Entry(Process):
    n: int = 0
    bad: bool = False

    @action(when=lambda self: self.n < 2)
    def up(self) -> None:
        self.n += 1


@always
def all_good(s: Any) -> bool:
    return all({0: True, 1: not e.bad}[e.n] for e in s[Entry])


@reachable
def some_bad(s: Any) -> bool:
    return any({0: False, 1: e.bad}[e.n] for e in s[Entry])


@pytest.mark.parametrize("keep_going", [False, True])
@pytest.mark.parametrize("search", ["bfs", "dfs"])
@pytest.mark.parametrize("start", [0, 2])
def test_a_part_decides_only_if_none_before_it_raises(start: int, search: str, keep_going: bool) -> None:
    """For the second process the property is false, but for the first one it raises before."""
    found = compare(
        lambda: System([Entry(n=start), Entry(bad=True)], properties=[all_good, some_bad]),
        search=search,
        keep_going=keep_going,
    )
    assert found.verdict is not None
    if start == 2:
        assert found.verdict.property == "no_exceptions"
        assert {p.name: p.status for p in found.verdict.properties}["all_good"] == "inconclusive"
