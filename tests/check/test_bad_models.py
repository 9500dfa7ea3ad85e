"""What a bad model gets: an error that names the place (class, handler, field, line) and the next act."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable
from typing import Any

import pytest

from plait import (
    Message,
    ModelError,
    Monitor,
    Pid,
    Process,
    System,
    always,
    check,
    deadlock_free,
    everyone,
    field,
    final,
    init,
    majority,
    on,
    reachable,
    some,
)
from plait.check.tabulate import tabulation
from tests.support.bad_models import (
    GUARDS,
    HANDLERS,
    PROPERTIES,
    TICKS,
    Child,
    Note,
    Other,
    Sink,
    Watch,
    explained,
    node,
    run,
    sends_to_nobody,
    sets_an_object,
    step,
    talk,
)

# -- what a handler does ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("act", HANDLERS, ids=lambda act: act.__name__)
def test_what_a_handler_must_not_do(act: Callable[[Any], None], workers: int) -> None:
    explained(lambda: run(act, workers=workers), "Node.act", *HANDLERS[act])


def test_the_hint_of_an_unknown_receiver_lists_the_processes() -> None:
    assert explained(lambda: run(sends_to_nobody)).hint == "send to one of: Node0, Sink0"


@pytest.mark.parametrize("search", ["dfs", "random", "stateless"])
def test_every_search_reports_model_errors(search: Any) -> None:
    system = System([node(sets_an_object)(), Sink()])
    explained(lambda: check(system, search=search, workers=1), "Node.act", "field b")


@pytest.mark.parametrize("workers", [1, 2])
def test_all_spare_slots_are_taken(workers: int) -> None:
    def act(self: Any) -> None:
        self.n += 1
        self.spawn(Child, age=self.n)

    error = explained(lambda: run(act, workers=workers, spare={Child: 2}), "Node.act spawns Child", "all 2 spare slots")
    assert "more spare slots" in str(error.hint)
    assert run(act, workers=workers, spare={Child: 3}).statistics.states == 4


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_after_a_spawn_keeps_its_hint(workers: int) -> None:
    def act(self: Any) -> None:
        self.n += 1
        self.spawn(Child)
        self.send(Pid("Ghost", 0), Note())

    error = explained(lambda: run(act, workers=workers, spare={Child: 1}), "Node.act sends to Ghost0")
    assert "Node0, Sink0, Child0" in str(error.hint)


def test_spawning_with_unknown_fields() -> None:
    def act(self: Any) -> None:
        self.spawn(Child, weight=3)

    assert (
        explained(lambda: run(act, spare={Child: 1}), "Node.act spawns Child", "weight").hint == "its fields are: age"
    )


def test_a_handler_that_would_never_run() -> None:
    def act(self: Any) -> Any:
        yield self.n

    explained(lambda: node(act), "act", "generator")


# -- guards, quorums, the beginning ----------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", GUARDS)
def test_what_a_guard_must_not_do(name: str, workers: int) -> None:
    guard, words = GUARDS[name]
    explained(lambda: run(step, guard, workers), "the guard of Node.act", *words)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_guard_on_messages_must_not_change_state(workers: int) -> None:
    class Keeper(Process):
        seen: list[int] = field(default_factory=list)

        @on(Note, where=lambda self, m: self.seen.append(1) is None)
        def keep(self, m: Note) -> None:
            pass

    def act(self: Any) -> None:
        self.n += 1
        self.send(Keeper.pid(0), Note())

    system = System([node(act)(), Keeper()])
    explained(lambda: check(system, workers=workers), "the guard of Keeper.keep changes the state of Keeper0")


def test_quorums_that_can_never_be() -> None:
    class Larger(Process):
        @on(Note, quorum=3)
        def gather(self, ms: Any) -> None:
            pass

    class More(Process):
        @on(Note, quorum=some(2, Sink))
        def gather(self, ms: Any) -> None:
            pass

    class Nobody(Process):
        @on(Note, quorum=everyone(Child))
        def gather(self, ms: Any) -> None:
            pass

    class Odd(Process):
        @on(Note, quorum=lambda self: 7)
        def gather(self, ms: Any) -> None:
            pass

    explained(lambda: System([Larger(), Sink()]), "Larger.gather", "a quorum of 3 senders", "2 processes")
    explained(lambda: System([More(), Sink()]), "More.gather", "a quorum of 2 Sink", "has 1")
    explained(lambda: System([Nobody(), Sink()]), "Nobody.gather", "a quorum of 0 Child")
    explained(lambda: check(System([Odd(), Sink()])), "the quorum of Odd.gather is 7")
    with pytest.raises(ModelError, match="quorum=0"):
        on(Note, quorum=0)
    with pytest.raises(ModelError, match="no field 'colour'"):
        on(Note, quorum=majority(Sink), same="colour")


def test_beginnings() -> None:
    def spawns(self: Any) -> None:
        self.spawn(Child)

    def fails(self: Any) -> None:
        raise AssertionError("never")

    def raises(self: Any) -> None:
        self.age = 1 // 0

    for start in (spawns, fails, raises):
        cls = types.new_class("Early", (Child,), {}, lambda body, start=start: body.update(start=init(start)))
        explained(lambda cls=cls: check(System([cls()], spare={Child: 1})), "Early.start")


# -- the System ------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Box:
    inner: list[int]


def test_mutable_values_that_processes_would_share() -> None:
    class Holder(Process):
        value: Any

    for value, kind in (([1], "list"), ({1}, "set"), ({1: 2}, "dict"), (([1],), "list"), (Box([1]), "Box")):
        with pytest.raises(ModelError, match=rf"Holder0.value and Holder1.value hold the same {kind} object") as caught:
            System([Holder(value=value), Holder(value=value)])
        assert "give each its own copy" in str(caught.value.hint)
    assert check(System([Holder(value=[1]), Holder(value=[1])])).statistics.states == 1
    assert check(System([Holder(value=(1, "a")), Holder(value=(1, "a"))])).statistics.states == 1


def test_mutable_defaults() -> None:
    for base, kind in ((Process, "process"), (Monitor, "monitor"), (Message, "message")):
        body = {"__annotations__": {"items": list}, "items": []}
        explained(
            lambda base=base, body=body: types.new_class("Careless", (base,), {}, lambda space: space.update(body)),
            f"{kind} Careless",
            "items",
        )


def test_one_list_in_two_fields_at_the_start() -> None:
    class Twin(Process):
        left: list[int]
        right: list[int]

    both = [1]
    explained(lambda: check(System([Twin(left=both, right=both)])), "Twin0.left and Twin0.right", "the same list")
    own: list[Any] = []
    own.append(own)
    explained(lambda: check(System([Twin(left=own, right=[])])), "Twin0: field left")
    explained(lambda: check(System([Twin(left=object(), right=[])])), "Twin0: field left", "object")  # type: ignore[arg-type]


def test_acting_outside_of_a_handler() -> None:
    for act in (
        lambda p: p.send(p.id, Note()),
        lambda p: p.broadcast(Sink, Note()),
        lambda p: p.announce(1),
        lambda p: p.choose([1]),
        lambda p: p.spawn(Child),
    ):
        sink = Sink()
        System([sink])
        explained(lambda act=act, sink=sink: act(sink), "Sink.", "outside of a handler")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"workers": 0}, "workers=0"),
        ({"search": "best"}, "search='best'"),
        ({"max_states": -1}, "max_states=-1"),
        ({"max_states": 1.5}, "max_states=1.5"),
        ({"max_depth": "3"}, "max_depth='3'"),
        ({"timeout": float("nan")}, "timeout=nan"),
        ({"timeout": float("inf")}, "timeout=inf"),
        ({"memory": True}, "memory=True"),
        ({"seed": 2**64}, f"seed={2**64}"),
        ({"properties": ["ghost"]}, "no property 'ghost'"),
    ],
)
def test_wrong_arguments_of_check(arguments: dict[str, Any], named: str) -> None:
    explained(lambda: check(System([Sink()]), **arguments), named)


def test_checking_something_else() -> None:
    explained(lambda: check(Sink), "not a System")  # type: ignore[arg-type]
    explained(lambda: System([Sink]), "is not a Process")  # type: ignore[list-item]
    explained(lambda: System([]), "at least one process")
    explained(lambda: System([Sink()], properties=[lambda s: True]), "is not a Property")  # type: ignore[list-item]


# -- properties ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("kind", [always, reachable, final])
@pytest.mark.parametrize("name", PROPERTIES)
def test_what_a_property_must_not_do(name: str, kind: Any, workers: int) -> None:
    predicate, words = PROPERTIES[name]
    # The receiver does nothing, so that a message is pending in the last state too.
    quiet = types.new_class("Sink", (Process,))
    loud = node(talk, lambda self: self.n < 2)
    system = System([loud(), quiet()], properties=[kind(predicate, name="careful")], monitors=[Watch()])
    if name == "changes a message" and kind is always:
        system.properties = [always(lambda s: s.processes[0].n == 0 or predicate(s), name="careful")]
    explained(lambda: check(system, workers=workers), "property careful", *words)


def test_a_failed_assertion_in_a_property_is_a_violation() -> None:
    def positive(s: Any) -> bool:
        assert s.processes[0].n < 2
        return True

    verdict = run(step, properties=[always(positive)])
    assert (verdict.status, verdict.property, len(verdict.trace or [])) == ("violated", "positive", 2)


@pytest.mark.parametrize("workers", [1, 2])
def test_vacuous_properties(workers: int) -> None:
    verdict = run(step, workers=workers, properties=[reachable(lambda s: s.processes[0].n == 9, name="nine")])
    assert (verdict.status, verdict.property) == ("violated", "nine")
    assert verdict.message == "nine is violated: no example: false in all 4 reachable states"

    def turn(self: Any) -> None:
        self.n = (self.n + 1) % 3

    verdict = run(turn, workers=workers, properties=[final(lambda s: False, name="end")])
    assert verdict.status == "holds"
    assert any("end was never evaluated: no state is terminal" in warning for warning in verdict.warnings)
    assert [p.note for p in verdict.properties] == ["vacuously: no state is terminal"]
    assert any("no properties" in warning for warning in run(step, workers=workers).warnings)


@pytest.mark.parametrize("workers", [1, 2])
def test_handlers_that_never_run(workers: int) -> None:
    class Hopeful(Process):
        @on(Other)
        def wait(self, m: Other) -> None:
            pass

        @on(Note, where=lambda self, m: m.content == "never")
        def refuse(self, m: Note) -> None:
            pass

    def act(self: Any) -> None:
        self.n += 1
        self.broadcast(Hopeful, Note(self.n))

    verdict = check(System([node(act)(), Hopeful()], properties=[always(lambda s: True)]), workers=workers)
    assert "Hopeful.wait never ran: no process sends Other" in verdict.warnings
    assert "Hopeful.refuse never ran: its guard was never true" in verdict.warnings
    assert not any("Node" in warning for warning in verdict.warnings)
    # A search that did not see everything does not say so.
    stopped = check(System([node(act)(), Hopeful()], properties=[always(lambda s: True)]), max_states=2)
    assert not any("never ran" in warning for warning in stopped.warnings)


# -- user code that does not play along ------------------------------------------------------------------------------


def never_returns(self: Any) -> None:
    while True:
        self.n = 0


def chooses_too_much(self: Any) -> None:
    for _ in range(40):
        self.choose([0, 1])


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_handler_that_never_returns_is_named_when_the_time_is_up(workers: int) -> None:
    system = System([node(never_returns)()])
    verdict = check(system, timeout=1.0, workers=workers)
    assert (verdict.status, verdict.bound) == ("inconclusive", "timeout")
    assert any("user code was still running" in w and "test_bad_models.py:" in w for w in verdict.warnings)


def test_too_many_choices_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tabulation, "_MOST_CHOICES", 500)
    explained(lambda: run(chooses_too_much), "Node.act has more than 500 combinations of choices")


@pytest.mark.parametrize(
    "unsteady", [lambda s: next(TICKS) % 2 == 0, lambda s: (n := list(s[Process][0].names))[0] < n[-1]]
)
def test_a_property_must_be_a_function(unsteady: Any) -> None:
    prop = always(unsteady, name="unsteady")
    explained(lambda: run(lambda self: None, properties=[prop]), "property unsteady is not a function of the state")


def test_that_nothing_ends_is_what_deadlock_freedom_asks_for() -> None:
    idles = run(lambda self: None, when=lambda self: True, properties=[deadlock_free()])
    spins = run(lambda self: setattr(self, "n", 1 - self.n), when=lambda self: True, properties=[deadlock_free()])
    assert idles.status == "violated"  # a step that changes nothing leads nowhere
    assert (spins.status, spins.properties[0].note) == ("holds", "no state is terminal")
    assert not any("deadlock_free" in warning for warning in spins.warnings)
