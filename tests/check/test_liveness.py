"""Temporal properties: against all lassos, and all sets of states that runs end up in; and by hand."""

from __future__ import annotations

import functools
import operator
import re
from itertools import combinations
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plait import (
    F,
    G,
    Message,
    ModelError,
    Process,
    System,
    U,
    UsageError,
    X,
    action,
    always,
    always_eventually,
    check,
    crash_stop,
    eventually,
    eventually_always,
    leads_to,
    ltl,
    on,
    predicate,
    stable,
    strong,
    weak,
)
from plait._native import Codec
from plait.check.live import search as liveness
from plait.kernel.pid import Pid
from plait.model.temporal import Atom, Formula
from tests.oracle.cyclic_systems import Drawn, drawn, formulas
from tests.oracle.independent_systems import explored_systems
from tests.oracle.lassos import Runs
from tests.support.configurations import leaving_out
from tests.support.liveness import Flip, Worker, compare, done, up, verdict


@pytest.mark.slow
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_formulas_on_all_short_lassos(data: st.DataObject) -> None:
    made = data.draw(drawn(limit=12))
    # The way home in a loop is a shortest one, or one that suits large graphs.
    with leaving_out(*data.draw(st.sampled_from([(), ("near",)]))):
        compare(made, data.draw(formulas(made.atoms)), length=5, history=data.draw(st.sampled_from(["none", "last"])))


def by_ends(made: Drawn, kind: str) -> tuple[Formula, bool]:
    """A formula of a simple kind, and whether it holds: by the sets of states that fair runs may end up in."""
    runs = Runs(made.system, made.truth, made.fairness)
    p, q = (Atom(a.name, a.predicate) for a in made.atoms)
    everywhere = set(runs.edges)
    yes, goal = runs.truth(p), runs.truth(q)
    match kind:
        case "eventually":
            without = runs.reach({*runs.starts}, everywhere - yes)
            return F(p), not any(runs.ends(without))
        case "always_eventually":
            return G(F(p)), not any(not end & yes for end in runs.ends(runs.reach({*runs.starts}, everywhere)))
        case "persists":
            return F(G(p)), not any(end - yes for end in runs.ends(runs.reach({*runs.starts}, everywhere)))
        case _:
            asked = runs.reach({*runs.starts}, everywhere) & yes - goal
            return G(p >> F(q)), not any(runs.ends(runs.reach(asked, everywhere - goal)))


@pytest.mark.slow
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(drawn(limit=10), st.sampled_from(["eventually", "always_eventually", "persists", "leads_to"]))
def test_simple_formulas_by_where_runs_end_up(made: Drawn, kind: str) -> None:
    formula, holds = by_ends(made, kind)
    for reduce in ("none", "decomposition"):
        try:
            result = verdict(made, formula, reduce=reduce)
        except UsageError:
            assert reduce == "decomposition"  # every field is relevant
            continue
        assert (result.status == "holds") == holds


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(explored_systems(limit=150))
def test_properties_of_states_are_seen_on_the_way(pair: Any) -> None:
    """With a temporal property there is one pass for both: it finds and counts what a search does."""
    system = pair[0]
    alone = check(system)
    system.properties = [*system.properties, ltl(G(F(True)), name="trivial")]
    both = check(system)
    assert {p.name: p.status for p in both.properties if p.name != "trivial"} == {
        p.name: p.status for p in alone.properties
    }
    assert len(both.trace or ()) == len(alone.trace or ())
    if alone.status == "holds":
        counts = ("states", "transitions", "terminal_states", "depth")
        assert all(getattr(both.statistics, name) == getattr(alone.statistics, name) for name in counts)
        for one, other in zip(alone.properties, both.properties, strict=False):
            assert len(one.trace or ()) == len(other.trace or ())  # examples of what can be reached


# -- by hand -----------------------------------------------------------------------------------------------------------


def status(processes: list[Process], *properties: Any, **options: Any) -> str:
    return check(System(processes, properties=list(properties), **options)).status


def test_a_cycle_can_starve_a_worker_unless_that_is_unfair() -> None:
    assert status([Flip(), Worker()], eventually(done)) == "violated"
    assert status([Flip(), Worker()], eventually(done), fairness=[weak(Worker)]) == "holds"
    assert status([Flip(), Worker()], eventually(done, fairness=[weak(Worker.work)])) == "holds"
    assert status([Flip(), Worker()], eventually(done), fairness=[weak(Flip)]) == "violated"


def test_fairness_is_by_process() -> None:
    assert status([Worker(), Worker(), Flip()], eventually(done), fairness=[weak(Worker)]) == "holds"
    assert status([Flip(), Flip()], always_eventually(lambda s: s[Flip][1].up)) == "violated"
    assert status([Flip(), Flip()], always_eventually(lambda s: s[Flip][1].up), fairness=[weak(Flip)]) == "holds"


class Passer(Process):
    """May pass only while the light is on."""

    passed: bool = False
    light: bool = False

    @action
    def switch(self) -> None:
        self.light = not self.light

    @action(when=lambda self: self.light and not self.passed)
    def go(self) -> None:
        self.passed = True


def test_what_is_enabled_now_and_then_needs_strong_fairness() -> None:
    passed = eventually(lambda s: s[Passer][0].passed)
    assert status([Passer()], passed, fairness=[weak(Passer)]) == "violated"
    assert status([Passer()], passed, fairness=[weak(Passer.go)]) == "violated"
    assert status([Passer()], passed, fairness=[strong(Passer.go)]) == "holds"


class Ball(Message):
    """Comes back."""


class Player(Process):
    """Plays with itself; a letter may lie around meanwhile."""

    read: bool = False
    hits: bool = False

    @action(when=lambda self: not self.read)
    def never_mind(self) -> None:
        self.hits = not self.hits

    @on(Ball)
    def open(self, m: Ball) -> None:
        self.read = True


class Sender(Process):
    """Sends one letter."""

    sent: bool = False

    @action(when=lambda self: not self.sent)
    def post(self) -> None:
        self.sent = True
        self.send(Player.pid(0), Ball())


def test_a_message_that_stays_deliverable_is_delivered() -> None:
    read = eventually(lambda s: s[Player][0].read)
    fair = [weak(Sender)]
    assert status([Player(), Sender()], read, fairness=fair) == "violated"
    assert status([Player(), Sender()], read, fairness=[*fair, weak(Player)]) == "violated"
    assert status([Player(), Sender()], read, fairness=[*fair, weak(Message)]) == "holds"
    assert status([Player(), Sender()], read, fairness=[*fair, weak(Ball)]) == "holds"


class Note(Ball):
    """A ball, too."""


class NoteSender(Sender):
    def post(self) -> None:
        self.sent = True
        self.send(Player.pid(0), Note())


def test_a_message_is_covered_whichever_handler_takes_it() -> None:
    read = eventually(lambda s: s[Player][0].read)
    fair = [weak(Sender)]
    assert status([Player(), NoteSender()], read, fairness=[*fair, weak(Note)]) == "holds"
    assert status([Player(), NoteSender()], read, fairness=[*fair, weak(Ball)]) == "holds"
    # The handler of balls is not meant, only a note would be.
    assert status([Player(), Sender()], read, fairness=[*fair, weak(Note)]) == "violated"


class Slow(Worker):
    """Takes its time."""

    tried: bool = False

    def work(self) -> None:
        self.done, self.tried = self.tried, True


class Idler(Worker):
    @action(when=lambda self: False)
    def work(self) -> None:
        """Never."""


def test_a_handler_is_covered_where_it_is_overridden() -> None:
    for fair in (weak(Worker.work), weak(Slow.work)):
        assert status([Flip(), Slow()], eventually(done), fairness=[fair]) == "holds"
    assert status([Flip(), Slow(), Worker()], eventually(done), fairness=[weak(Slow.work)]) == "violated"
    assert status([Flip(), Slow(), Worker()], eventually(done), fairness=[weak(Worker.work)]) == "holds"
    assert status([Flip(), Idler()], eventually(done), fairness=[weak(Worker.work)]) == "violated"
    with pytest.raises(ModelError, match="no process of the System has such steps"):
        status([Flip(), Worker()], eventually(done), fairness=[weak(Slow.work)])


def test_the_head_of_a_class_begins_the_content_of_its_messages() -> None:
    """The engine tells the classes of messages apart by the first bytes of their canonical content."""
    codec = Codec(Pid)
    long = type("L" * 200, (Ball,), {"__module__": __name__})
    for cls in (Ball, Note, long):
        heads = [other for other in (Ball, Note, long) if codec.encode(cls()).startswith(liveness._head(other))]
        assert heads == [cls]


class Fork(Process):
    """Two ways to the same end; one of them is marked."""

    at: str = "start"

    @action(when=lambda self: self.at == "start")
    def left(self) -> None:
        self.at = "marked"

    @action(when=lambda self: self.at == "start")
    def right(self) -> None:
        self.at = "plain"

    @action(when=lambda self: self.at in ("marked", "plain"))
    def finish(self) -> None:
        self.at = "end"


def test_ways_that_meet_again_are_told_apart() -> None:
    # A search that visits each state once, and marks on the way what was seen, takes the end for good after the left way.
    found = check(System([Fork()], properties=[eventually(lambda s: s[Fork][0].at == "marked")]))
    assert found.status == "violated"
    assert found.trace is not None
    assert [event.label for event in found.trace.events] == ["right", "finish"]
    assert found.trace.loop is None
    assert status([Fork()], eventually(lambda s: s[Fork][0].at == "end")) == "holds"


def test_faults_need_not_happen() -> None:
    down = eventually(lambda s: s[Worker][0].crashed, name="down")
    assert status([Worker()], down, faults=[crash_stop(budget=1)]) == "violated"
    assert status([Worker()], eventually(done), faults=[crash_stop(budget=1)]) == "violated"
    assert status([Worker()], eventually(done)) == "holds"


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (stable(done), "holds"),
        (stable(up), "violated"),
        (leads_to(up, ~up), "holds"),
        (ltl(G(F(up)) | F(done)), "holds"),
        (ltl(X(up) | X(done)), "holds"),
        (ltl(U(~done, done)), "violated"),
        (ltl("G(up -> F !up)", up=up), "holds"),
        (ltl("(!done) W done", done=done), "holds"),
        (ltl("G F up | F G done", up=up, done=done), "holds"),
        (ltl("done R !up", done=done, up=up), "violated"),
        (ltl("[](up => <>~up)", up=up), "holds"),
        (ltl("[]<>up <-> []<>!up", up=up), "holds"),
        (ltl("<>[]up <=> []<>up", up=up), "violated"),
        (ltl("up => done <-> !up || done", up=up, done=done), "holds"),
        (eventually_always(up), "violated"),
        (eventually_always(done | ~done), "holds"),
    ],
    ids=lambda given: str(getattr(given, "name", given)),
)
def test_formulas(formula: Any, expected: str) -> None:
    assert status([Flip(), Worker()], formula) == expected


@pytest.mark.parametrize(("text", "expected"), [("G true", "holds"), ("F false", "violated"), ("true", "holds")])
def test_a_formula_without_predicates_is_a_property(text: str, expected: str) -> None:
    found = check(System([Flip()], properties=[ltl(text)]))
    assert (found.status, found.warnings) == (expected, [])
    assert "no properties" in str(check(System([Flip()])).warnings)


def test_properties_without_a_name_do_not_clash() -> None:
    unnamed = [
        eventually(lambda s: s[Worker][0].done),
        eventually(lambda s: not s[Worker][0].done),
        always(lambda s: s[Flip][0].up in (True, False)),
        always(lambda s: not s[Flip][0].up),
        ltl(F(up)),
        ltl(F(up)),
        always(lambda s: True, name="always 2"),
    ]
    found = check(System([Flip(), Worker()], properties=unnamed), keep_going=True)
    assert {p.name: p.status for p in found.properties} == {
        "eventually": "violated",
        "eventually 2": "holds",
        "always": "holds",
        "always 3": "violated",
        "always 2": "holds",
        "F up": "holds",
        "F up 2": "holds",
    }
    assert [p.status for p in check(System([Flip(), Worker()], properties=unnamed), properties=["always 3"]).properties]
    with pytest.raises(ModelError, match="done"):
        System([Worker()], properties=[eventually(done), eventually(done)])


def test_a_lasso_says_what_repeats() -> None:
    found = check(System([Flip(), Worker()], properties=[eventually(done)]))
    assert found.trace is not None
    assert (found.property, found.trace.loop, len(found.trace)) == ("done", 0, 2)
    assert found.trace.explanation == "steps 1 to 2 repeat for ever, and F done is false on this run"
    assert "no fairness assumed" in str(found)
    assert "; the last 2 repeat for ever" in str(found)


@predicate
def down(s: Any) -> bool:
    return not s[Flip][0].up


@pytest.mark.parametrize("formula", [F(G(up)), F(G(down)), ~F(done & F(down)), ~F(done & up & F(down))])
def test_a_lasso_says_after_which_steps_predicates_are_true(formula: Formula) -> None:
    """After each step that is shown: the last of a loop leads to where the loop began, and counts as well."""
    trace = check(System([Flip(), Worker()], properties=[ltl(~G(F(up)) | formula, name="it")])).trace
    assert trace is not None
    assert trace.why is not None
    states = [trace.initial.fields, *(event.state.fields for event in trace.events)]
    truths = {
        "up": [i for i, s in enumerate(states) if s["Flip0"]["up"]],
        "down": [i for i, s in enumerate(states) if not s["Flip0"]["up"]],
        "done": [i for i, s in enumerate(states) if s["Worker0"]["done"]],
    }
    for clause in trace.why.clauses:
        true = {"never true": [], "always true": [*range(len(states))]}.get(clause.value)
        if true is None:
            spans = re.findall(r"(\d+)(?: to (\d+))?[, ]", clause.value.split("(")[0])
            true = [i for a, b in spans for i in range(int(a), int(b or a) + 1)]
        assert true == truths[clause.text]


def test_safety_comes_first_and_both_are_reported() -> None:
    @always
    def never_up(s: Any) -> bool:
        return not s[Flip][0].up

    system = System([Flip(), Worker()], properties=[never_up, eventually(done)])
    assert {p.name: p.status for p in check(system).properties} == {"never_up": "violated", "done": "inconclusive"}
    both = {p.name: p.status for p in check(system, keep_going=True).properties}
    assert both == {"never_up": "violated", "done": "violated"}


def test_a_limit_makes_it_inconclusive() -> None:
    class Count(Process):
        n: int = 0

        @action
        def up(self) -> None:
            self.n += 1

    result = check(System([Count()], properties=[always_eventually(lambda s: s[Count][0].n < 0)]), max_states=100)
    assert (result.status, result.bound) == ("inconclusive", "max-states")


class Restless(Process):
    """Counts what nobody asks for, for ever; or stops."""

    beats: int = 0
    stopped: bool = False

    @action(when=lambda self: not self.stopped)
    def beat(self) -> None:
        self.beats = (self.beats + 1) % 2

    @action(when=lambda self: not self.stopped)
    def stop(self) -> None:
        self.stopped = True


@pytest.mark.slow
def test_decomposition_does_not_hide_what_goes_on_for_ever() -> None:
    stopped = eventually(lambda s: s[Restless][0].stopped)
    for reduce in ("none", "decomposition"):
        found = check(System([Restless()], properties=[stopped]), reduce=reduce)
        assert found.status == "violated"
        assert found.trace is not None
        assert {event.label for event in found.trace.events} == {"beat"}
        assert (
            check(System([Restless()], properties=[stopped], fairness=[weak(Restless.stop)]), reduce=reduce).status
            == "holds"
        )


@pytest.mark.parametrize(("rule", "fair"), [("weak-fairness", weak(Worker)), ("strong-fairness", strong(Passer.go))])
def test_without_a_rule_of_fairness_unfair_runs_are_reported(rule: str, fair: Any) -> None:
    wanted = eventually(lambda s: all(w.done for w in s.get(Worker)) and all(p.passed for p in s.get(Passer)))
    processes = [Flip(), Worker()] if fair.of is Worker else [Passer()]
    assert status(processes, wanted, fairness=[fair]) == "holds"
    with leaving_out(rule):
        assert status(processes, wanted, fairness=[fair]) == "violated"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"search": "random"}, "temporal property"),
        ({"search": "stateless"}, "temporal property"),
    ],
)
def test_what_is_unsound_is_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        check(System([Flip(), Flip()], properties=[eventually(up)], symmetric=[Flip]), **options)


@pytest.mark.slow
def test_formulas_that_demand_many_things_are_refused_and_not_misread() -> None:
    def demanding(number: int) -> Any:
        pairs = list(combinations([predicate(lambda s, i=i: s[Flip][0].up == (i % 2 == 0)) for i in range(12)], 2))
        return ltl(functools.reduce(operator.and_, (G(F(a | b)) for a, b in pairs[:number])), name="demanding")

    assert status([Flip()], demanding(63)) == "holds"
    for number in (64, 65):
        with pytest.raises(ModelError, match=f"demanding is too large: .* {number} acceptance sets, more than 63"):
            status([Flip()], demanding(number))


def test_bad_input() -> None:
    with pytest.raises(ModelError, match="expected a Process class, a handler, a Message class"):
        weak(3)
    with pytest.raises(ModelError, match="is not an assumption"):
        System([Flip()], fairness=["weak"])  # type: ignore[list-item]
    with pytest.raises(ModelError, match="is not a list"):
        eventually(up, fairness=3)
    with pytest.raises(ModelError, match="no process of the System has such steps"):
        check(System([Flip()], properties=[eventually(up)], fairness=[weak(Worker)]))
    with pytest.raises(ModelError, match="has no truth value"):
        bool(F(up) and G(up))
    with pytest.raises(ModelError, match=r"column 7: expected a predicate, G, F, X, ! or '\(', found 'down'"):
        ltl("G(up->down)", up=up)
    with pytest.raises(ModelError, match="the text ends"):
        ltl("G (up", up=up)
    with pytest.raises(ModelError, match="is not a formula"):
        ltl(3)
