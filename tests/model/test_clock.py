"""Clocks as values: what a model may do with them, and the error for everything else."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from plait import (
    Clock,
    Message,
    ModelError,
    Monitor,
    Process,
    System,
    action,
    always,
    aux,
    check,
    durable,
    eventually,
    field,
    majority,
    on,
    refines,
    tick,
    weak,
)
from plait.rounds.requirements import refuse

LIMIT = 4


class Note(Message):
    what: object = None


class Log(Monitor):
    last: object = None

    def observe(self, process: Any, event: Any) -> None:
        self.last = event


def model(use: Callable[[Any], object], **more: Any) -> System:
    """A process with two clocks, whose only step uses them."""

    class Timed(Process):
        lease: Clock = Clock(bound=3)
        other: Clock = Clock(bound=9)
        done: int = 0
        log: list[object] = field(default_factory=list)

        @action(when=lambda self: self.done == 0)
        def step(self) -> None:
            self.done = 1
            use(self)

    return System([Timed()], properties=[always(lambda s: True, name="fine")], **more)


def caught(self: Any) -> None:
    try:
        self.done = 1 if self.lease < 7 else 2
    except ModelError:
        self.done = 3


def added(self: Any) -> None:
    self.lease += 1


REFUSED: dict[str, tuple[Callable[[Any], object], str]] = {
    "sent": (lambda self: self.send(self.id, Note(self.lease)), "message Note: it holds a clock"),
    "sent, inside": (lambda self: self.send(self.id, Note([self.lease])), "field what: it holds a clock"),
    "f-string": (lambda self: self.send(self.id, Note(f"{self.lease}")), "makes a text of a clock"),
    "str": (lambda self: str(self.lease), "makes a text of a clock"),
    "+": (lambda self: self.lease + 1, "computes with a clock"),
    "1 -": (lambda self: 1 - self.lease, "computes with a clock"),
    "+=": (added, "computes with a clock"),
    "abs": (lambda self: abs(self.lease), "computes with a clock"),
    "int": (lambda self: int(self.lease), "uses a clock as a number"),
    "range": (lambda self: range(self.lease), "uses a clock as a number"),
    "bool": (lambda self: not self.lease, "uses a clock as a condition"),
    "hash": (lambda self: {self.lease}, "uses a clock as a key"),
    "two clocks": (lambda self: self.lease < self.other, "compares two clocks"),
    "equal clocks": (lambda self: self.lease == self.other, "compares two clocks"),
    "float": (lambda self: self.lease < 2.5, "compares a clock with 2.5"),
    "None": (lambda self: self.lease == None, "compares a clock with None"),  # noqa: E711
    "above the bound": (lambda self: self.lease >= LIMIT, "compares a clock with 4 (clock >= 4), but its bound is 3"),
    "caught": (caught, "compares a clock with 7"),
    "an attribute": (lambda self: self.lease.value, "reads the attribute 'value' of a clock"),
    "setting one": (lambda self: setattr(self.lease, "value", 1), "sets the attribute 'value' of a clock"),
    "copied": (lambda self: copy.deepcopy(self.lease), "copies a clock"),
    "as a dict": (lambda self: self.log.append(dataclasses.asdict(self)), "copies a clock"),
    "assigned": (lambda self: setattr(self, "lease", Clock(bound=3)), "assigns self.lease, which is a clock"),
    "exchanged": (lambda self: setattr(self, "lease", self.other), "assigns self.lease, which is a clock"),
    "overwritten": (lambda self: setattr(self, "lease", 0), "assigns self.lease, which is a clock"),
    "deleted": (lambda self: delattr(self, "lease"), "deletes self.lease"),
    "stored": (lambda self: setattr(self, "done", self.lease), "stores a clock in self.done"),
    "stored, a new one": (lambda self: setattr(self, "done", Clock()), "stores a clock in self.done"),
    "stored, inside": (lambda self: self.log.append(self.lease), "field log: it holds a clock"),
    "the greater one": (lambda self: setattr(self, "done", max(self.lease, 2)), "stores a clock in self.done"),
    "announced": (lambda self: self.announce((1, self.lease)), "announced event: it holds a clock"),
    "chosen": (lambda self: self.choose([self.lease]), "chosen option: it holds a clock"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_uses_are_refused_by_name(case: str) -> None:
    use, message = REFUSED[case]
    for native in ("off", "auto"):
        with pytest.raises(ModelError) as caught_error:
            check(model(use, monitors=[Log()]), native=native)
        assert message in caught_error.value.message
        assert "step" in caught_error.value.message
        assert caught_error.value.hint


def test_in_guards_and_properties_too() -> None:
    class Guarded(Process):
        lease: Clock = Clock(bound=3)

        @action(when=lambda self: self.lease.reset() is None)
        def step(self) -> None: ...

    with pytest.raises(ModelError, match=r"the guard of Guarded\.step changes the state"):
        check(System([Guarded()]))

    def swallowed(s: Any) -> bool:
        try:
            return bool(s.processes[0].lease < 5)
        except ModelError:
            return True

    for predicate, message in (
        (lambda s: s.processes[0].lease < 5, "property p: compares a clock with 5"),
        (swallowed, "property p: compares a clock with 5"),
        (lambda s: s.processes[0].lease == s.processes[0].other, "property p: compares two clocks"),
        (lambda s: s.processes[0].lease.reset() is None, "property p changes the state"),
    ):
        system = model(lambda self: None)
        system.properties = [always(predicate, name="p")]
        with pytest.raises(ModelError) as error:
            check(system)
        assert message in error.value.message


def test_the_text_of_a_clock_does_not_show_its_count() -> None:
    clock = Clock(bound=3)
    before = repr(clock)
    clock._tick()
    assert repr(clock) == before == "<Clock running>"


def test_each_process_has_its_own_clock() -> None:
    class Timed(Process):
        lease: Clock = Clock(bound=1)
        kept: Clock = durable(Clock(running=False, bound=1))

    one, other = Timed(), Timed()
    assert one.lease is not other.lease
    assert one.kept is not other.kept
    assert Timed.__plait_clocks__ == {"lease", "kept"}
    assert Timed.__plait_durable__ == {"kept"}
    assert not one.kept.running
    shared = Clock(bound=1)
    with pytest.raises(ModelError, match="hold the same Clock object"):
        System([Timed(lease=shared), Timed(lease=shared)])


def test_mistakes_in_declarations() -> None:
    class Timed(Process):
        lease: Clock = Clock(bound=1)

    class Untold(Process):
        lease: Any = None

        @action(urgent=True)
        def step(self) -> None: ...

    for make, message in (
        (lambda: System([Timed(lease=3)]), "the field Timed0.lease is a clock, but has the value 3"),  # type: ignore[arg-type]
        (lambda: System([Untold(lease=Clock())]), "the field Untold0.lease has a Clock as its value"),
        (lambda: System([Untold()]), "Untold.step is urgent, but no process has a clock"),
        (lambda: System([Timed()], drift=-1), "drift=-1: expected a number of ticks"),
        (lambda: System([Timed()], drift=True), "drift=True: expected a number of ticks"),
        (lambda: Clock(bound=-1), "Clock(bound=-1): expected a number of ticks"),
        (lambda: Clock(running=1), "Clock(running=1): expected True or False"),  # type: ignore[arg-type]
        (lambda: action(urgent=3), "@action: urgent=3: expected True or False"),  # type: ignore[call-overload]
        (lambda: on(Note, urgent=None), "@on(Note): urgent=None: expected True or False"),  # type: ignore[call-overload]
        (lambda: type("Mine", (Clock,), {}), "Mine is a subclass of Clock"),
        (lambda: type("P", (Process,), {"a": aux(Clock()), "__annotations__": {"a": Clock}}), "P.a is a clock, and"),
    ):
        with pytest.raises(ModelError) as error:
            make()
        assert message in error.value.message
        assert error.value.hint

    class Plain(Process): ...

    with pytest.raises(ModelError, match="drift=1, but no process has a clock"):
        System([Plain()], drift=1)
    with pytest.raises(ModelError, match=r"weak\(tick\): no process of the System has such steps"):
        check(System([Plain()], properties=[eventually(lambda s: True)], fairness=[weak(tick)]))
    with pytest.raises(ModelError, match="the abstract System cannot be used, because it has clocks"):
        refines(System([Timed()]), lambda s: Timed())
    with pytest.raises(ModelError, match="Timed has a clock, and rounds change when steps happen"):
        refuse(System([Timed()]))


# -- bounds from the source ----------------------------------------------------------------------------------------------


def bound_of(system: System) -> int:
    """The bound of the only clock of a process that takes no step: it has this many values, without 0 and the last one."""
    return check(system).statistics.states - 2


class Constants(Process):
    most = 5
    limit: int = 9
    a: Clock = Clock()

    def helper(self) -> bool:
        return 1 < self.a < self.most

    @action(when=lambda self: self.a > LIMIT + 2 and self.a < -1)
    def never(self) -> None: ...


def test_bounds_are_found_in_the_source() -> None:
    """In guards, methods and properties; constants of modules, classes and closures, and what is computed of them."""
    assert bound_of(System([Constants()])) == 6
    assert bound_of(System([Constants()], properties=[always(lambda s: s[Constants][0].a >= 0)])) == 6
    far = 11
    assert (
        bound_of(
            System([Constants()], properties=[always(lambda s: s[Constants][0].a >= 0 or 2 * far != s[Constants][0].a)])
        )
        == 22
    )
    assert bound_of(System([Constants(a=Clock(bound=8))])) == 8


def test_a_bound_that_is_not_found_must_be_declared() -> None:
    class Unknown(Process):
        limit: int = 9
        a: Clock = Clock()

        @action(when=lambda self: self.a >= self.limit)
        def step(self) -> None: ...

    class Hidden(Process):
        a: Clock = Clock()

        @action(when=lambda self: helper(self.a) and self.a > 1)
        def step(self) -> None: ...

    class Unused(Process):
        a: Clock = Clock()

    def helper(clock: Clock) -> bool:
        return clock > 5

    for cls, message in (
        (Unknown, "the bound of this clock is not known: the guard of Unknown.step compares it with self.limit"),
        (Unused, "Unused.a: the bound of this clock is not known: the source does not compare it"),
        (Hidden, "the guard of Hidden.step: compares a clock with 5 (clock > 5), but its bound is 1"),
    ):
        with pytest.raises(ModelError) as error:
            check(System([cls()]))
        assert message in error.value.message
        assert "Clock(bound=" in (error.value.hint or "")
    made: dict[str, Any] = {}
    exec("always = lambda s: s.processes[0].a > 1", made)
    with pytest.raises(ModelError, match="the source of property p is not available"):
        check(System([Unused()], properties=[always(made["always"], name="p")]))
    assert check(System([Unknown(a=Clock(bound=9))])).statistics.states == 11
    assert check(System([Hidden(a=Clock(bound=5))])).statistics.states == 7


def test_quorum_sizes_may_depend_on_a_clock() -> None:
    class Voter(Process):
        a: Clock = Clock()
        votes: int = 0

        @on(Note, quorum=lambda self: 1 if self.a >= 2 else 2)
        def vote(self, ms: tuple[Note, ...]) -> None:
            self.votes = len(ms)

        @on(Note, quorum=majority(Process), where=lambda self, m: False)
        def never(self, ms: tuple[Note, ...]) -> None: ...

    class Idle(Process): ...

    assert bound_of(System([Voter(), Idle()])) == 2
