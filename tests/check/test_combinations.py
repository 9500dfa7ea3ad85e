"""Every combination of reductions against the oracle: verdicts, real counterexamples, terminal states."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plait import Message, Process, action, deadlock_free, duplicating, eventually, init, leads_to, on, predicate
from plait.check.api import check
from plait.check.explain.graph import state_graph
from plait.check.options import Options
from plait.check.reduce.decomposition import decompose
from plait.check.reduce.plan import plan
from plait.kernel.errors import UsageError
from plait.model.system import System
from plait.protocols.two_phase_commit import two_phase_commit
from tests.oracle.explorer import Exploration, explore
from tests.support.agreement import ZOO, check_traces, projected
from tests.support.configurations import Way, run, ways
from tests.support.sourced import random_source, system_of

NAMES = ("decomposition", "por", "symmetry")
COMBINATIONS = [",".join(c) for size in (1, 2, 3) for c in itertools.combinations(NAMES, size)]


def applies(system: System, combination: str) -> bool:
    """Whether everything in a combination can be applied to a system."""
    try:
        plan(system, Options(reduce=combination))
    except UsageError:
        return False
    return True


def compare(system: System, truth: Exploration, combination: str, way: Way) -> None:
    verdict = run(system, way, combination)
    assert {p.name for p in verdict.properties if p.status == "violated"} == truth.violated
    assert verdict.statistics.states <= truth.states
    check_traces(system, verdict, truth, shortest=False)


@pytest.mark.slow
@pytest.mark.parametrize("combination", COMBINATIONS)
@pytest.mark.parametrize("name", ZOO)
def test_the_zoo(name: str, combination: str) -> None:
    system = ZOO[name]()
    if not applies(system, combination):
        verdict = check(system, reduce="auto", keep_going=True)
        assert any(not r.applied and r.name in combination for r in verdict.statistics.reductions)
        return
    truth = explore(system)
    for way in (Way(), Way(search="dfs", workers=2)):
        compare(system, truth, combination, way)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), ways())
def test_decomposition_with_partial_order_reduction(rng: random.Random, way: Way) -> None:
    """On systems with real source, in which fields are found to be auxiliary."""
    system = system_of(random_source(rng))
    truth = explore(system, limit=200)
    facts = decompose(system, "auto")
    if not truth.complete or not facts:
        return
    for combination in ("por", "decomposition,por"):
        compare(system, truth, combination, way)
    if any(p.kind == "final" for p in system.properties):
        both = run(system, way, "decomposition,por")
        assert both.statistics.terminal_states == len({projected(system, facts, s) for s in truth.ends})


def test_auto_says_what_and_why() -> None:
    notes = {r.name: r for r in check(ZOO["two_phase_commit"](), reduce="auto").statistics.reductions}
    assert notes["symmetry"].applied
    assert notes["por"].applied
    assert not notes["decomposition"].applied
    assert "every field is relevant" in notes["decomposition"].reason
    stateless = check(ZOO["paxos"](), reduce="auto", search="stateless").statistics.reductions
    assert [r.name for r in stateless if r.applied] == ["dpor"]
    assert all("visited set" in r.reason for r in stateless if not r.applied)


@pytest.mark.slow
@pytest.mark.parametrize("search", ["bfs", "dfs"])
def test_partial_order_reduction_that_gains_nothing_is_given_up(search: Any) -> None:
    """In two-phase commit the property reads the states of all: nearly every step is visible."""
    verdict = check(two_phase_commit(7), reduce="por", search=search)
    (por,) = verdict.statistics.reductions
    assert not por.applied
    assert "removed almost no states" in por.reason
    assert verdict.status == "holds"
    assert verdict.statistics.states == check(two_phase_commit(7)).statistics.states


@pytest.mark.parametrize(
    ("reduce", "search"),
    [("por", "random"), ("por", "stateless"), ("symmetry", "stateless"), ("decomposition", "random"), ("dpor", "bfs")],
)
def test_what_does_not_fit_is_refused_with_the_reason(reduce: str, search: str) -> None:
    with pytest.raises(UsageError, match=f"reduce='{reduce}': cannot be used with the {search} search: "):
        check(ZOO["paxos"](), reduce=reduce, search=search)  # type: ignore[arg-type]


class Item(Message):
    number: int


class Sender(Process):
    @init
    def begin(self) -> None:
        self.broadcast(Taker, Item(1))
        self.broadcast(Taker, Item(2))


class Taker(Process):
    most: int = 0

    @on(Item)
    def take(self, m: Item) -> None:
        self.most = max(self.most, m.number)


@pytest.mark.parametrize("reduce", ["none", "por", "decomposition", "auto"])
@pytest.mark.parametrize("search", ["bfs", "dfs"])
def test_a_step_that_changes_the_history_only_leads_nowhere(reduce: str, search: Any) -> None:
    """In a network that keeps messages, what was taken may be taken again: a terminal state stays one."""
    system = System([Sender(), Taker()], network=duplicating(), properties=[deadlock_free()])
    assert check(system, search=search).status == "violated"
    assert check(system, reduce=reduce, search=search, history="last").status == "violated"


class Poller(Process):
    """Takes each item again and again; nothing comes of it."""

    @on(Item)
    def poll(self, m: Item) -> None:
        """Nothing."""


class Worker(Process):
    done: bool = False

    @init
    def begin(self) -> None:
        self.send(Poller.pid(0), Item(number=1))
        self.send(Poller.pid(0), Item(number=2))

    @action(when=lambda self: not self.done)
    def work(self) -> None:
        self.done = True


def worked(s: Any) -> bool:
    return bool(s[Worker][0].done)


def polling(*properties: Any) -> System:
    return System([Poller(), Worker()], network=duplicating(), properties=list(properties))


@pytest.mark.parametrize("reduce", ["none", "por", "decomposition", "auto"])
@pytest.mark.parametrize("search", ["bfs", "dfs"])
def test_a_loop_of_history_alone_is_no_run(reduce: str, search: Any) -> None:
    """Polling two messages in turn changes what was consumed last, for ever, and nothing else."""
    with_history = check(polling(eventually(worked)), reduce=reduce, search=search, history="last")
    assert with_history.status == check(polling(eventually(worked)), search=search).status == "holds"
    assert check(polling(eventually(lambda s: not worked(s) and False, name="never")), history="last").trace is not None


def test_what_history_adds_is_in_the_states_and_not_in_the_runs() -> None:
    verdict = check(polling(eventually(worked)), history="last")
    assert (verdict.statistics.states, verdict.statistics.graph_states) == (6, 2), "3 histories each"
    follows = leads_to(predicate(worked), predicate(worked), name="follows")
    assert check(polling(follows), history="last", coverage=True).warnings == [], "the predicate was true"


@pytest.mark.slow
def test_a_drawing_with_history_has_the_same_terminal_states() -> None:
    graph = state_graph(polling(deadlock_free(), eventually(worked)), history="last")
    assert [state.terminal for state in graph.states] == [state.violated == ["deadlock_free"] for state in graph.states]
    assert sum(state.terminal for state in graph.states) == 3
    tidy = check(polling(deadlock_free()), search="dfs", history="last").trace
    assert tidy is not None
    assert [event.label for event in tidy.events] == ["work"], "steps that lead nowhere are left out"


class Ticker(Process):
    tick: bool = False

    @action(when=lambda self: not self.tick)
    def go(self) -> None:
        self.tick = True


def test_more_classes_than_can_be_related() -> None:
    verdict = check(System([Ticker() for _ in range(300)]), reduce="por", max_states=1000)
    (por,) = verdict.statistics.reductions
    assert not por.applied
    assert "300 classes of transitions" in por.reason


@pytest.mark.parametrize("reduce", [42, None, b"por", ["por", 1], "", "auto,por", ["none", "por"], "POR", "frob"])
def test_bad_names(reduce: Any) -> None:
    with pytest.raises(UsageError):
        check(ZOO["paxos"](), reduce=reduce)
