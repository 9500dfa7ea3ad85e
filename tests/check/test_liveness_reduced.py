"""Temporal properties with partial-order reduction and symmetry: as without, on random systems, and by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plait import (
    F,
    G,
    Message,
    Process,
    System,
    UsageError,
    Verdict,
    X,
    action,
    always_eventually,
    check,
    eventually,
    ltl,
    on,
    predicate,
    strong,
    weak,
)
from plait.check.explain.replay import replay
from plait.check.live import search as liveness
from plait.check.reduce import plan
from plait.model.temporal import Atom, Formula, Next
from plait.report.wording import claim
from tests.oracle import independent_systems, symmetric_systems
from tests.oracle.cyclic_symmetric_systems import herds
from tests.oracle.cyclic_systems import Drawn, drawn, formulas
from tests.support.configurations import leaving_out
from tests.support.liveness import Flip, Worker, compare, done, up, verdict


def has_next(formula: Formula) -> bool:
    return isinstance(formula, Next) or any(has_next(part) for part in formula.parts)


def same(made: Drawn, formula: Formula, reduce: str) -> None:
    """The verdict without the reduction, and if it is a run, one of the system that violates the formula."""
    expected = verdict(made, formula).status
    try:
        found = verdict(made, formula, reduce=reduce)
    except UsageError:
        assert "decomposition" in reduce  # every field is relevant
        return
    assert found.status == expected
    if found.trace is not None:
        assert len(list(replay(made.system, found.trace))) == len(found.trace)


REDUCED = settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.slow
@REDUCED
@given(st.data())
def test_orders_that_are_left_out_decide_nothing(data: st.DataObject) -> None:
    made = data.draw(drawn(limit=60, counts=(2, 2, 3), fairness=()))
    formula = data.draw(formulas(made.atoms, following=False))
    same(made, formula, data.draw(st.sampled_from(("por", "por", "por", "por,decomposition"))))


@pytest.mark.slow
@settings(REDUCED, max_examples=100)
@given(st.data())
def test_reduced_runs_on_all_short_lassos(data: st.DataObject) -> None:
    made = data.draw(drawn(limit=12, counts=(2, 3), fairness=()))
    compare(made, data.draw(formulas(made.atoms, following=False)), length=5, reduce="por")


@REDUCED
@given(st.data())
def test_names_that_are_exchanged_decide_nothing(data: st.DataObject) -> None:
    made = data.draw(herds(limit=80))
    formula = data.draw(formulas(made.atoms))
    reduce = "por,symmetry" if not made.fairness and not has_next(formula) and data.draw(st.booleans()) else "symmetry"
    same(made, formula, reduce)


@pytest.mark.slow
@settings(REDUCED, max_examples=100)
@given(st.data())
def test_runs_of_orbits_on_all_short_lassos(data: st.DataObject) -> None:
    made = data.draw(herds(limit=12))
    compare(made, data.draw(formulas(made.atoms)), length=5, reduce="symmetry")


def temporal(system: System, data: st.DataObject, following: bool) -> None:
    """Give a system a temporal property over the predicates of those that it has, and no other."""
    atoms = [Atom(f"p{number}", prop.predicate) for number, prop in enumerate(system.properties)]
    system.properties = [ltl(data.draw(formulas(atoms, following)), name="it")]


def agree(system: System, reduce: str) -> None:
    expected = check(system, keep_going=True)
    found = check(system, keep_going=True, reduce=reduce)
    assert {p.name: p.status for p in found.properties} == {p.name: p.status for p in expected.properties}
    for result in found.properties:
        if result.trace is not None:
            assert len(list(replay(system, result.trace))) == len(result.trace)


@pytest.mark.slow
@settings(REDUCED, max_examples=120)
@given(independent_systems.explored_systems(limit=200), st.data())
def test_with_faults_monitors_quorums_and_spares(pair: Any, data: st.DataObject) -> None:
    """On the systems that partial-order reduction is tested with otherwise."""
    temporal(pair[0], data, following=False)
    agree(pair[0], "por")


@pytest.mark.slow
@settings(REDUCED, max_examples=100)
@given(symmetric_systems.explored_systems(limit=200), st.data())
def test_with_names_in_fields_and_messages(pair: Any, data: st.DataObject) -> None:
    """On the systems that symmetry is tested with otherwise."""
    both = data.draw(st.booleans())
    temporal(pair[0], data, following=not both)
    agree(pair[0], "por,symmetry" if both else "symmetry")


# -- what is left out -------------------------------------------------------------------------------------------------


def graph_states(monkeypatch: pytest.MonkeyPatch, system: System, reduce: str) -> tuple[Verdict, int]:
    """The verdict, and how many states the graph had."""
    found: list[liveness.Findings] = []
    search = liveness.search

    def noting(*arguments: Any, **options: Any) -> liveness.Findings:
        found.append(search(*arguments, **options))
        return found[-1]

    with monkeypatch.context() as patch:
        patch.setattr(liveness, "search", noting)
        result = check(system, reduce=reduce)
    return result, found[-1].report.counters.states


class Ladder(Process):
    """Goes up four rungs; then it looks out."""

    rung: int = 0
    out: bool = False

    @action(when=lambda self: self.rung < 4)
    def climb(self) -> None:
        self.rung += 1

    @action(when=lambda self: self.rung == 4 and not self.out)
    def look(self) -> None:
        self.out = True


class Other(Ladder):
    """Another ladder, whose rungs nobody asks for."""


@predicate
def out(s: Any) -> bool:
    return bool(s[Ladder][0].out)


def test_there_is_less_to_see(monkeypatch: pytest.MonkeyPatch) -> None:
    ladders = System([Ladder(), Other(), Other()], properties=[eventually(out)], symmetric=[Other])
    states = {how: graph_states(monkeypatch, ladders, how) for how in ("none", "por", "symmetry", "por,symmetry")}
    assert all(result.status == "holds" for result, _ in states.values())
    counts = {how: count for how, (_, count) in states.items()}
    assert counts["none"] == 6**3
    assert counts["symmetry"] == 6 * 21  # unordered pairs
    # Only the last step is seen. Until then one order is enough, and after it, too.
    assert counts["por"] <= 3 * 6 + 12
    assert counts["por,symmetry"] <= counts["por"]


# -- each rule is needed ----------------------------------------------------------------------------------------------


class Rounds(Process):
    """Goes round, or leaves and finishes."""

    x: int = 0
    finished: bool = False

    @action(when=lambda self: self.x == 0)
    def forth(self) -> None:
        self.x = 1

    @action(when=lambda self: self.x == 1)
    def back(self) -> None:
        self.x = 0

    @action(when=lambda self: self.x == 1)
    def leave(self) -> None:
        self.x = 2

    @action(when=lambda self: self.x == 2 and not self.finished)
    def finish(self) -> None:
        self.finished = True


@predicate
def finished(s: Any) -> bool:
    return bool(s[Rounds][0].finished)


class Second(Worker):
    """Another worker."""


first_done = predicate(lambda s: s[Worker][0].done)
second_done = predicate(lambda s: s[Second][0].done)

NEEDED = {
    # The second may come first.
    "visibility": ([Worker(), Second()], ltl(G(~second_done | first_done), name="order")),
    # The worker is not obliged to come first.
    "strict": ([Worker(), Flip()], eventually(done)),
    # Nor to wait for ever.
    "proviso": ([Flip(), Worker()], ltl(G(~done), name="never")),
    # It may also work while the other goes round: to be taken on the way out is not enough.
    "every-cycle": ([Rounds(), Worker()], ltl(F(finished) | G(~done), name="either")),
}


@pytest.mark.parametrize("rule", NEEDED)
def test_without_a_rule_of_the_reduction_runs_are_missed(rule: str) -> None:
    processes, wanted = NEEDED[rule]
    assert check(System(processes, properties=[wanted])).status == "violated"
    assert check(System(processes, properties=[wanted]), reduce="por").status == "violated"
    with leaving_out(rule):
        assert check(System(processes, properties=[wanted]), reduce="por").status == "holds"


class Call(Message):
    """Come here."""


class Sheep(Process):
    """Answers, or lies down for good."""

    lies: bool = False

    @action(when=lambda self: not self.lies)
    def lie_down(self) -> None:
        self.lies = True

    @on(Call, where=lambda self, m: not self.lies)
    def answer(self, m: Call) -> None:
        self.send(self.ids(Shepherd), Call())


class Shepherd(Process):
    """Calls one of them at a time."""

    waits: bool = False

    @action(when=lambda self: not self.waits)
    def call(self) -> None:
        self.waits = True
        self.send(self.choose(self.ids(Sheep)), Call())

    @on(Call)
    def hear(self, m: Call) -> None:
        self.waits = False


def test_fairness_of_each_is_lost_in_orbits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each may answer again and again, and none need lie down. In orbits it seems to be the same one that answers, so that
    the other has to do something."""
    wanted = eventually(lambda s: any(sheep.lies for sheep in s[Sheep]), name="rest")

    def flock() -> System:
        return System([Sheep(), Sheep(), Shepherd()], properties=[wanted], fairness=[strong(Sheep)], symmetric=[Sheep])

    found = check(flock())
    assert found.status == "violated"
    assert found.trace is not None
    assert {event.lane for event in found.trace.events if event.label == "answer"} == {"Sheep0", "Sheep1"}
    with pytest.raises(
        UsageError, match=r"rest assumes strong\(Sheep\) for each Sheep, and the reduction exchanges them"
    ):
        check(flock(), reduce="symmetry")
    monkeypatch.setattr(plan, "_keeps_names_apart", lambda *_: None)
    assert check(flock(), reduce="symmetry").status == "holds"  # which it does not


# -- by hand ----------------------------------------------------------------------------------------------------------


class Turn(Message):
    """Whose turn it is."""


class Dancer(Process):
    """Dances when it is called, and calls another."""

    dances: bool = False

    @on(Turn)
    def dance(self, m: Turn) -> None:
        self.dances = True

    @action(when=lambda self: self.dances)
    def call(self) -> None:
        self.dances = False
        self.send(self.choose([pid for pid in self.ids(Dancer) if pid != self.id]), Turn())


class Band(Process):
    """Begins with anybody, and then tunes for ever."""

    begun: bool = False
    tuned: bool = False

    @action(when=lambda self: not self.begun)
    def begin(self) -> None:
        self.begun = True
        self.send(self.choose(self.ids(Dancer)), Turn())

    @action(when=lambda self: self.begun)
    def tune(self) -> None:
        self.tuned = not self.tuned


def dance(*properties: Any, dancers: int = 3, **options: Any) -> System:
    return System(
        [*(Dancer() for _ in range(dancers)), Band()], properties=list(properties), symmetric=[Dancer], **options
    )


@predicate
def somebody_dances(s: Any) -> bool:
    return any(d.dances for d in s[Dancer])


@predicate
def tuned(s: Any) -> bool:
    return bool(s[Band][0].tuned)


def test_a_loop_of_orbits_is_followed_until_it_closes() -> None:
    """The turn goes from one to another; the state comes back when it has come back to the same dancer."""
    system = dance(ltl(F(G(~somebody_dances)), name="rest"))
    found = check(system, reduce="symmetry")
    assert found.status == "violated"
    assert found.trace is not None
    assert found.trace.loop is not None
    states = [found.trace.initial, *(event.state for event in found.trace.events)]
    assert states[-1].fields == states[found.trace.loop].fields
    dancers = {event.lane for event in found.trace.events[found.trace.loop :] if event.label == "dance"}
    assert len(dancers) >= 2  # nobody calls itself
    assert len(list(replay(system, found.trace))) == len(found.trace)


def test_fairness_of_who_is_alone_is_symmetric() -> None:
    wanted = always_eventually(tuned)
    for options in ({}, {"reduce": "symmetry"}):
        assert check(dance(wanted), **options).status == "violated"
        assert check(dance(wanted, fairness=[weak(Band)]), **options).status == "holds"
        assert check(dance(wanted, fairness=[weak(Band.tune)]), **options).status == "holds"  # it stays enabled
        assert check(dance(wanted, fairness=[weak(Band.begin)]), **options).status == "violated"


REFUSED = [
    (
        "por",
        [ltl(G(~up | X(~up)), name="down")],
        [],
        r"down uses X \(next\), and the reduction changes which step is next",
    ),
    (
        "por",
        [eventually(up)],
        [weak(Flip)],
        r"up assumes weak\(Flip\), but no fairness of Worker0, and the reduction may leave out the fair run",
    ),
    ("por", [eventually(up, fairness=[strong(Flip.flip)])], [], r"up assumes strong\(Flip.flip\)"),
    (
        "symmetry",
        [eventually(done)],
        [weak(Worker)],
        r"done assumes weak\(Worker\) for each Worker, and the reduction exchanges them",
    ),
    (
        "symmetry",
        [eventually(done)],
        [weak(Process)],
        r"done assumes weak\(Process\) for each Worker, and the reduction exchanges them",
    ),
]


@pytest.mark.parametrize(("reduce", "properties", "fairness", "reason"), REFUSED, ids=lambda given: str(given)[:30])
def test_what_is_unsound_is_refused_with_the_reason(reduce: str, properties: Any, fairness: Any, reason: str) -> None:
    system = System([Worker(), Worker(), Flip()], properties=properties, fairness=fairness, symmetric=[Worker])
    with pytest.raises(UsageError, match=reason):
        check(system, reduce=reduce)
    automatic = check(system, reduce="auto")
    assert automatic.status == check(system).status
    assert {r.name: r.applied for r in automatic.statistics.reductions}[reduce] is False


def test_messages_are_told_apart_by_fairness_and_not_by_symmetry() -> None:
    with pytest.raises(
        UsageError, match=r"assumes weak\(Message\) for each message, and the reduction exchanges messages"
    ):
        check(dance(always_eventually(somebody_dances), fairness=[weak(Message)]), reduce="symmetry")


def test_a_predicate_that_names_one_is_refused() -> None:
    first = eventually(lambda s: s[Dancer][0].dances, name="first")
    with pytest.raises(Exception, match="treats them differently"):
        check(dance(first), reduce="symmetry")


def test_unreduced_and_reduced_together() -> None:
    """What is refused for one property is refused for the check; without that property it is not."""
    system = System([Worker(), Flip()], properties=[eventually(done), ltl(X(up), name="next")])
    with pytest.raises(UsageError, match=r"next uses X \(next\)"):
        check(system, reduce="por")
    assert check(system, reduce="por", properties=["done"]).status == "violated"


def test_the_graph_of_runs_is_counted_by_itself() -> None:
    """Reduced by rules of its own, it is not the space that the search for violations in states saw."""

    class Finite(Process):
        y: int = 0

        @action(when=lambda self: self.y < 3)
        def go(self) -> None:
            self.y += 1

    def statistics(**options: Any) -> Any:
        system = System([Flip(), Finite(), Finite()], properties=[eventually(up)])
        found = check(system, **options)
        return found.statistics, claim(found)

    whole, said = statistics()
    assert whole.states == whole.graph_states == 2 * 4 * 4
    assert "graph" not in said
    reduced, said = statistics(reduce="por")
    assert reduced.graph_states < whole.states
    assert reduced.graph_states != reduced.states
    assert f"The graph of runs has {reduced.graph_states} states." in said
    safe = check(System([Flip()]))
    assert safe.statistics.graph_states == 0
