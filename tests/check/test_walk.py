"""Walking through states: runs by keys, expressions, progression, the collapsed graph, the number of ways."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plait.check.explain.graph import state_graph
from plait.check.explain.replay import replay
from plait.check.explain.why import view_of
from plait.check.live.search import evaluated, flattened
from plait.check.options import Options
from plait.check.runner import Runner
from plait.check.walk.expression import Expression, ExpressionError
from plait.check.walk.progression import progressed
from plait.check.walk.projection import Chosen
from plait.check.walk.run import Run, Runs, keyed, run_of
from plait.check.walk.search import can, checked, find, graph, ways
from plait.kernel.graph import StateGraph
from plait.kernel.values import to_data
from plait.model.loading.loader import load
from plait.model.system import System
from plait.model.temporal import And, Atom, Constant, Formula, Implies, Next, Not, Or
from plait.model.temporal import F as Finally
from plait.model.temporal import G as Globally
from plait.model.temporal import R as Release
from plait.model.temporal import U as Until
from plait.model.temporal import W as WeakUntil
from tests.oracle.explorer import Exploration
from tests.oracle.random_systems import explored_systems, systems

OPTIONS = Options(workers=1)
FEW = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def walked(runs: Runs, seed: int, most: int = 12) -> Run:
    """A random run."""
    choose, keys = random.Random(seed), list[str]()
    while len(keys) < most:
        stop, missing = runs.at(Run(0, tuple(keys)))
        assert missing is None
        possible = [] if stop.failed else sorted(keyed(runs.runner, stop.state))
        if not possible:
            break
        keys.append(choose.choice(possible))
    return Run(0, tuple(keys))


def first_keys(runs: Runs, run: Run) -> Run:
    """The same run by the first of equal keys.

    Steps that differ have keys that differ (`test_steps_that_differ_have_different_keys`). But two options of a choice may
    be equal: then the model has two transitions with the same effects, and a saved run cannot say which one it took.
    Both lead to the same state.
    """
    found = Run(run.initial)
    for key in run.steps:
        stop, _ = runs.at(found)
        possible = keyed(runs.runner, stop.state)
        same = [
            other
            for other, transition in possible.items()
            if other.partition("~")[0] == key.partition("~")[0]
            and transition.fingerprint == possible[key].fingerprint
            and (transition.failure is None) == (possible[key].failure is None)
        ]
        found = Run(run.initial, (*found.steps, same[0]))
    return found


@FEW
@given(systems(), st.integers(0, 9))
def test_a_run_by_keys_is_a_run_of_the_model(system: System, seed: int) -> None:
    """Its trace replays, has the same keys in another engine, and is the same if it is executed in one go."""
    runs = Runs(Runner(flattened(system, system.properties)))
    run = walked(runs, seed)
    trace = runs.trace(runs.at(run)[0])
    if not any(event.note for event in trace.events):
        assert len(list(replay(system, trace))) == len(run.steps)
    others = Runs(Runner(flattened(system, system.properties)))
    again = run_of(others, trace)
    assert again == first_keys(others, run)
    assert others.trace(others.at(again)[0]) == others.trace(others.at(run)[0]) == trace
    half = Run(0, run.steps[: len(run.steps) // 2])
    assert runs.trace(runs.at(half)[0]).events == trace.events[: len(half.steps)], "undo"


@FEW
@given(systems(), st.integers(0, 9))
def test_steps_that_differ_have_different_keys(system: System, seed: int) -> None:
    runs = Runs(Runner(system))
    stop, _ = runs.at(walked(runs, seed))
    if not stop.failed:
        assert len(keyed(runs.runner, stop.state)) == len(runs.runner.engine.successors(stop.state))


@FEW
@given(explored_systems(500), st.data())
def test_nodes_of_a_collapsed_graph_have_all_states(pair: tuple[System, Exploration], data: Any) -> None:
    system, truth = pair
    cls = system.classes[0]
    fields = data.draw(st.lists(st.sampled_from(cls.__plait_fields__ or ("",)), unique=True, max_size=2))
    chosen = Chosen(fields=[f"{cls.__name__}.{name}" for name in fields if name])
    found = graph(system, None, chosen, 2_000, OPTIONS)
    assert found.states == sum(node.count for node in found.nodes) == truth.states
    assert sum(node.terminal for node in found.nodes) == truth.terminal
    broken = truth.violated - {"no_exceptions"} & {p.name for p in system.properties if p.kind != "reachable"}
    assert not broken or any(node.violating for node in found.nodes)
    runs = Runs(Runner(flattened(system, system.properties)))
    assert all(runs.at(node.run)[1] is None for node in found.nodes)


def counted(found: StateGraph, target: int) -> tuple[int, int]:
    """The length and the number of the shortest runs to a state of the state graph, by the definition."""
    layer, length = {state.number: 1 for state in found.states if state.depth == 0}, 0
    while target not in layer:
        after: dict[int, int] = {}
        for edge in found.edges:
            if edge.source in layer and edge.target is not None:
                after[edge.target] = after.get(edge.target, 0) + layer[edge.source]
        layer, length = after, length + 1
    return length, layer[target]


@pytest.mark.parametrize("seed", range(4))
def test_shortest_ways_by_the_definition(seed: int) -> None:
    """Of Paxos with two proposers, in which states are determined by their fields and their depth."""
    system = load("paxos", {"acceptors": "2"})
    runs = Runs(Runner(system))
    run = walked(runs, seed, most=5)
    found = ways(system, run, OPTIONS, None)
    parts = re.fullmatch(r"(\S+) runs? leads? here; (\S+) runs? with the least number of steps, (\d+)", found.text)
    assert parts, found.text
    whole = state_graph(system, max_states=20_000)
    last = runs.trace(runs.at(run)[0])
    state = last.events[-1].state
    pending = {lane: len(ids) for lane, ids in state.pending.items()}
    same = [
        other.number
        for other in whole.states
        if other.snapshot.fields == state.fields and {k: len(v) for k, v in other.snapshot.pending.items()} == pending
    ]
    assert (int(parts[3]), int(parts[2])) in [counted(whole, number) for number in same]


TEXTS = ["len(s.messages)", "[a.promised for a in s[Acceptor]]", "{p.id: p.phase for p in s[Proposer]}"]
TEXTS += ["s[Learner][0].learned", "sorted(str(a.id) for a in s[Acceptor])", "max(a.promised for a in s[Acceptor]) > 0"]
TEXTS += ["[m.sender for p in s[Acceptor] for m in p.inbox]", "any(p.phase is Phase.DONE for p in s[Proposer])"]


@pytest.mark.parametrize("text", TEXTS)
def test_an_expression_has_the_value_that_cpython_gives_it(text: str) -> None:
    system = load("paxos", {})
    runs = Runs(Runner(system))
    expression = Expression(system, runs.runner.tabulation, text)
    for seed in range(8):
        stop, _ = runs.at(walked(runs, seed))
        expected = to_data(expression.function(view_of(runs.runner, stop.state)))
        assert expression.value(runs.runner, stop.state) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("open('x')", "cannot run open"),
        ("print(1)", "cannot run print"),
        ("(yield 1)", "cannot run"),
        ("await s", "is not an expression"),
        ("x = 1", "is not an expression"),
        ("1; 2", "is not an expression"),
        ("", "is not an expression"),
        ("a" * 3_000, "3000 characters"),
        ("(" * 500, "is not an expression"),
        ("unknown", "cannot run"),
    ],
)
def test_what_is_refused(text: str, reason: str) -> None:
    system = load("paxos", {})
    with pytest.raises(ExpressionError) as error:
        Expression(system, Runner(system).tabulation, text)
    assert reason in error.value.message
    assert error.value.hint


def test_a_search_never_runs_an_expression_in_cpython(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it did, this function of the model would be called."""
    import plait.protocols.paxos as module

    called = []
    monkeypatch.setattr(module, "spy", lambda value: called.append(value) or True, raising=False)
    system = load("paxos", {})
    with pytest.raises(ExpressionError):  # a function that changes a list of CPython cannot be lowered
        find(system, None, "spy(1)", OPTIONS, None)
    assert find(system, None, "len(s.messages) > 5", OPTIONS, None).status == "found"
    assert called == []


# -- progression --------------------------------------------------------------------------------------------------------

P, Q = (Atom(name, lambda view: True) for name in "pq")
FORMULAS: st.SearchStrategy[Formula] = st.recursive(
    st.sampled_from([P, Q, Constant(True), Constant(False)]),
    lambda inner: (
        st.builds(Not, inner)
        | st.builds(Next, inner)
        | st.builds(Finally, inner)
        | st.builds(Globally, inner)
        | st.builds(And, inner, inner)
        | st.builds(Or, inner, inner)
        | st.builds(Implies, inner, inner)
        | st.builds(Until, inner, inner)
        | st.builds(Release, inner, inner)
        | st.builds(WeakUntil, inner, inner)
    ),
    max_leaves=5,
)


@settings(max_examples=80, deadline=None)
@given(FORMULAS, st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=6), st.data())
def test_what_is_left_of_a_formula_decides_it(formula: Formula, word: list[tuple[bool, bool]], data: Any) -> None:
    """On a lasso: the formula is true at the start if and only if what is left after a prefix is true after it."""
    loop = data.draw(st.integers(0, len(word) - 1))
    prefix = data.draw(st.integers(0, len(word) - 1))
    values = {P: [p for p, _ in word], Q: [q for _, q in word]}
    after = [*range(1, len(word)), loop]
    left, place = formula, 0
    for _ in range(prefix):
        left = progressed(left, lambda atom, place=place: values[atom][place])  # type: ignore[misc]
        place = after[place]
    assert evaluated(left, values, after)[place] == evaluated(formula, values, after)[0]


def test_searches_from_a_state_stay_behind_it() -> None:
    system = load("paxos", {"faulty": "acceptor"})
    start = Run(0, ("start@Proposer1",))
    for found in (
        checked(system, start, OPTIONS, None),
        find(system, start, "any(l.learned for l in s[Learner])", OPTIONS, None),
        can(system, start, "Learner0", None, OPTIONS, None),
    ):
        assert found.status in ("violated", "found")
        assert found.run is not None
        assert found.run.steps[:1] == start.steps
        runs = Runs(Runner(flattened(system, system.properties)))
        assert runs.at(found.run)[1] is None
