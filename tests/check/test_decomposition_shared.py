"""Decomposition with shared state: values are followed into shared objects and back, and the audit covers shared fields."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import pytest

from plait import Message, Pid, Process, Shared, System, action, always, aux, check, field, final, on
from plait.check.explain.replay import replay
from plait.check.reduce import plan, relevance
from plait.check.reduce.decomposition import Decomposition, decompose
from plait.check.source.dataflow import Flow, Graph, Value
from plait.check.source.expressions import Expressions
from plait.check.source.statements import Body
from plait.kernel.errors import ModelError
from plait.model.temporal import eventually
from tests.oracle.explorer import Exploration, explore
from tests.support.agreement import compare_projections
from tests.support.flows import flow_source
from tests.support.selections import ALL
from tests.support.sharing import sharing
from tests.support.sourced import compiled, random_source, system_of

FIELDS = ("u", "v", "w", "x", "y", "z", "log", "seen")
TARGETS = ("seen", "j", "tags", "box", "table", "any")


def drawn(seed: int) -> System:
    """A random system with some of its fields in a shared object."""
    rng = random.Random(seed)
    names = rng.sample(FIELDS, rng.randint(1, 5))
    return system_of(sharing(random_source(rng), "Node", names, rng, spare=0.04))


def agrees(seed: int) -> bool:
    """Compare with the oracle. Whether decomposition leaves a shared field out."""
    system = drawn(seed)
    found, truth = decompose(system, "auto"), explore(system, limit=200)
    if not found or not truth.complete:
        return False
    verdict = compare_projections(system, truth, found, search=("bfs", "dfs")[seed % 2], workers=1 + seed % 3 % 2)
    reduced = check(system, reduce="decomposition,por", keep_going=True)
    assert {p.name for p in reduced.properties if p.status == "violated"} == truth.violated
    assert reduced.statistics.states <= verdict.statistics.states
    return any(issubclass(f.cls, Shared) and f.auxiliary for f in found.fields)


@pytest.mark.slow
def test_random_systems() -> None:
    assert sum(map(agrees, range(16))) > 8


# -- mutants -----------------------------------------------------------------------------------------------------------


def without_reads(patch: pytest.MonkeyPatch) -> None:
    """Reads of shared fields are not seen."""
    patch.setattr(Expressions, "_attribute", lambda self, node, old=Expressions._attribute: _hidden(old(self, node)))


def _hidden(value: Value) -> Value:
    return Value(frozenset(n for n in value.deps if n[0] != "field" or not issubclass(n[1], Shared)), value.alias)


def without_writes(patch: pytest.MonkeyPatch) -> None:
    """Values that are written to shared fields are not followed."""
    patch.setattr(Body, "_share", lambda self, *_: None)


def without_branches(patch: pytest.MonkeyPatch) -> None:
    """What decides whether a shared field is written is not followed."""

    def store(self: Any, target: Any, value: Value, context: Any, old: Any = Flow.store) -> None:
        own = target[0] == "field" and issubclass(target[1], Shared)
        old(self, target, value, frozenset() if own else context)

    patch.setattr(Flow, "store", store)


def without_aliases(patch: pytest.MonkeyPatch) -> None:
    """Changes of a shared list or dict in place are not seen."""

    def attribute(self: Any, node: Any, old: Any = Expressions._attribute) -> Value:
        value = old(self, node)
        return Value(value.deps, frozenset(n for n in value.alias if n[0] != "field" or not issubclass(n[1], Shared)))

    patch.setattr(Expressions, "_attribute", attribute)


def without_properties(patch: pytest.MonkeyPatch) -> None:
    """Shared fields that a property reads are not relevant."""

    def sink(self: Any, sources: Any, label: str, old: Any = Graph.sink, **options: Any) -> None:
        own = [n for n in sources if not (label.startswith("property") and issubclass(n[1], Shared))]
        old(self, own, label, **options)

    patch.setattr(Graph, "sink", sink)


def with_forgotten_reads(patch: pytest.MonkeyPatch) -> None:
    """The engine is not told which shared fields an answer depends on, if the answer is known."""
    ask = relevance.Relevance._ask

    def forgetful(self: Any, *arguments: Any) -> Any:
        answer = ask(self, *arguments)
        self.cells_read = 0
        return answer

    patch.setattr(relevance.Relevance, "_ask", forgetful)


CAUGHT = [(without_reads, 75), (without_writes, 23), (with_forgotten_reads, 6)]
"""Random systems that show a mistake."""

MUTANTS = {
    without_reads: (("k",), "self.seen.append(self.k)"),
    without_writes: (TARGETS, "self.j = self.k"),
    without_branches: (TARGETS, "if self.k:\n    self.j = 1"),
    without_aliases: (TARGETS, "self.seen.append(self.k)"),
    without_properties: (TARGETS, "self.j = self.k"),
}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_wrong_analysis_would_be_noticed(mutant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each rule is needed: without it, and without the audit, the verdict is wrong or an error."""
    monkeypatch.setattr(relevance, "SAMPLED", 0)
    names, body = MUTANTS[mutant]
    assert checked(body, names) == "violated"
    mutant(monkeypatch)
    assert checked(body, names) != "violated"


def checked(body: str, names: tuple[str, ...]) -> str:
    try:
        return check(shared_flow(body, names), workers=1, reduce="decomposition").status
    except (ModelError, RuntimeError) as error:
        return str(error)


@pytest.mark.slow
@pytest.mark.parametrize(("mutant", "seed"), CAUGHT)
def test_the_oracle_catches_mutants(mutant: Any, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relevance, "SAMPLED", 0)
    agrees(seed)
    mutant(monkeypatch)
    with pytest.raises((AssertionError, ModelError, RuntimeError)):
        agrees(seed)


# -- flows -------------------------------------------------------------------------------------------------------------


def shared_flow(name: str, names: tuple[str, ...]) -> System:
    """A flow by its name, or by its body, with these fields in a shared object."""
    source = flow_source(**ALL.get(name, {"body": name}))
    return compiled(sharing(source, "P", names, random.Random(name))).system  # type: ignore[no-any-return]


PATTERNS = ("a value in a pattern of a list", "a value in an or pattern")
"""A path of references is no pattern."""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("part", range(3))
def test_a_field_that_flows_through_shared_objects_is_relevant(part: int) -> None:
    """The field, what it flows into, or both are shared."""
    names = (("k",), TARGETS, ("k", *TARGETS))[part]
    for name in [n for n in ALL if not n.endswith(PATTERNS)][part::14]:
        (k,) = (f for f in decompose(shared_flow(name, names), "auto").fields if f.name == "k")
        assert k.reason, name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["map of a bound method", "selection by a conditional", "selection by match"])
@pytest.mark.parametrize("names", [("k",), ("k", *TARGETS)], ids=["field", "both"])
def test_the_audit_alone_ends_a_check_that_would_be_wrong(
    name: str, names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    system = shared_flow(name, names)
    assert check(system, workers=1).status == "violated"

    def wrong(system: System, inference: Any) -> Decomposition:
        found = decompose(system, inference)
        fields = [dataclasses.replace(f, auxiliary=f.name == "k", reason=()) for f in found.fields]
        return dataclasses.replace(found, fields=tuple(fields))

    monkeypatch.setattr(plan, "decompose", wrong)
    with pytest.raises(RuntimeError, match=r"took Store\.k for auxiliary") as caught:
        check(system, workers=1, reduce="decomposition")
    assert "Store0.k = 0" in str(caught.value)
    assert "Store0.k = 1" in str(caught.value)
    monkeypatch.setattr(relevance, "SAMPLED", 0)
    assert check(shared_flow(name, names), workers=1, reduce="decomposition").status == "holds"


# -- by hand -----------------------------------------------------------------------------------------------------------


class Log(Shared):
    lines: list[int] = field(default_factory=list)
    count: int = 0
    last: Pid | None = None

    def note(self, line: int) -> None:
        self.lines.append(line)
        self.count += 1


class Table(Shared):
    value: int = 0
    log: Log

    @property
    def odd(self) -> bool:
        return self.value % 2 == 1


class Hint(Message):
    log: Log


class Worker(Process):
    table: Table
    log: Log
    turns: int = 0
    seen: list[int] = field(default_factory=list)

    @action(when=lambda self: self.turns < 2)
    def work(self) -> None:
        self.turns += 1
        self.table.value = (self.table.value + 1) % 3
        self.log.note(self.table.value)
        self.table.log.last = self.id
        self.seen.append(len(self.log.lines))
        self.send(self.id, Hint(self.log))

    @on(Hint)
    def hear(self, m: Hint) -> None:
        m.log.lines.append(0)


def workers(*properties: Any) -> tuple[System, Exploration]:
    log = Log()
    table = Table(log=log)
    system = System([Worker(table=table, log=log) for _ in range(2)], properties=list(properties), symmetric=[Worker])
    return system, explore(system, limit=5_000)


@always
def even(s: Any) -> bool:
    return not s[Table].odd or s[Table].value < 3


@always
def never_two(s: Any) -> bool:
    return bool(s[Table].value != 2)


@always
def short(s: Any) -> bool:
    return len(s[Log].lines) < 9


def auxiliary(system: System) -> set[str]:
    return {f.label for f in decompose(system, "auto").fields if f.auxiliary}


def test_a_shared_log_is_left_out() -> None:
    system, truth = workers(even)
    assert auxiliary(system) == {"Worker.seen", "Log.lines", "Log.count", "Log.last", "Table.log"}
    verdict = compare_projections(system, truth, decompose(system, "auto"))
    assert verdict.statistics.states * 5 < truth.states
    both = check(workers(even)[0], reduce="decomposition,symmetry,por", keep_going=True)
    assert both.status == "holds"
    assert both.statistics.states < verdict.statistics.states


def test_what_a_property_reads_of_a_shared_object_is_relevant() -> None:
    system, _ = workers(short)
    assert auxiliary(system) == {"Worker.seen", "Log.count", "Log.last", "Table.log"}


def test_a_counterexample_shows_every_shared_field_and_replays() -> None:
    system, truth = workers(never_two)
    verdict = check(system, reduce="decomposition")
    assert verdict.status == "violated"
    assert verdict.trace is not None
    assert len(verdict.trace) == truth.properties["never_two"].length
    assert len(list(replay(system, verdict.trace))) == len(verdict.trace)
    assert "Log0.lines: [1] → [1, 2]" in str(verdict.trace)


def test_code_that_is_not_understood_makes_all_shared_fields_relevant() -> None:
    class Reflecting(Process):
        log: Log

        @action
        def act(self) -> None:
            vars(self)

    log = Log()
    table = Table(log=log)
    system = System([Reflecting(log=log), Worker(table=table, log=log)])
    assert auxiliary(system) == {"Worker.seen"}


def test_an_idle_step_and_final_properties() -> None:
    """Without the counter, the state would look terminal."""

    class Endless(Shared):
        count: int = 0

    class Counting(Process):
        endless: Endless

        @action
        def count(self) -> None:
            self.endless.count = (self.endless.count + 1) % 3

    @final
    def never(s: Any) -> bool:
        return False

    endless = Endless()
    system = System([Counting(endless=endless)], properties=[never])
    assert auxiliary(system) == set()
    assert auxiliary(System([Counting(endless=Endless())])) == {"Endless.count", "Counting.endless"}


def test_a_temporal_property() -> None:
    system, _ = workers(eventually(lambda s: all(w.turns == 2 for w in s[Worker]), name="done"))
    plain = check(system)
    reduced = check(workers(*system.properties)[0], reduce="decomposition")
    assert plain.status == reduced.status
    assert reduced.statistics.states < plain.statistics.states


def test_a_declared_field_of_a_process_is_audited() -> None:
    """Its value decides what is written to a shared field."""

    class Leaking(Process):
        table: Table
        turn: int = 0
        secret: int = aux(0)

        @action(when=lambda self: self.turn == 0)
        def pick(self) -> None:
            self.secret = self.choose([0, 1])
            self.turn = 1

        @action(when=lambda self: self.turn == 1)
        def leak(self) -> None:
            self.table.value = self.secret
            self.turn = 2

    system = System([Leaking(table=Table(log=Log()))], properties=[never_two])
    with pytest.raises(ModelError, match=r"Leaking\.secret is declared aux(.|\n)*Table0\.value becomes"):
        check(system, reduce="decomposition")


def test_a_property_that_hides_what_it_reads() -> None:
    """The search notices it."""
    system, _ = workers(always(lambda s: getattr(s[Log], "li" + "nes") != 1, name="hiding"))
    assert "Log.lines" not in auxiliary(system)
