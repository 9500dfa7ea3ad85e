"""Mistakes in processes and properties that are refused by name, and what looks like one and is fine."""

from __future__ import annotations

import copy
import dataclasses
import typing
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from plait import Message, ModelError, Process, System, action, always, check, init, on, reachable
from tests.support.bad_models import explained


class Ping(Message):
    number: int


class Pong(Message):
    number: int


class Loud(Ping):
    pass


class Node(Process):
    n: int = 0

    @action(when=lambda self: self.n < 2)
    def go(self) -> None:
        self.n += 1


class Absent(Process):
    pass


def handling(message: type[Message], annotation: Any, **more: Any) -> Callable[[], type]:
    def handle(self: Any, m: Any) -> None:
        pass

    handle.__annotations__ = {"m": annotation}
    return lambda: type("Handling", (Process,), {"handle": on(message, **more)(handle)})


WRONG: list[tuple[Any, dict[str, Any]]] = [
    ("Pong", {}),
    (Pong, {}),
    ("Pong | None", {}),
    ("tuple[Ping, ...]", {}),
    ("Sequence[Pong]", {"quorum": 2}),
    ("Ping", {"quorum": 2}),
]
RIGHT: list[tuple[Any, dict[str, Any]]] = [
    ("Ping", {}),
    (Message, {}),
    ("Loud", {}),
    ("Ping | Pong", {}),
    (typing.Optional[Ping], {}),  # noqa: UP045
    (Any, {}),
    (object, {}),
    ("OnlyForTypeCheckers", {}),
    ("tuple[Ping, ...]", {"quorum": 2}),
    ("Sequence[Ping]", {"quorum": 2}),
    (list[Loud], {"quorum": 2}),
    (tuple, {"quorum": 2}),
    (Sequence, {"quorum": 2}),
]


@pytest.mark.parametrize(("annotation", "more"), WRONG, ids=str)
def test_a_handler_annotated_with_another_message_is_refused(annotation: Any, more: dict[str, Any]) -> None:
    explained(handling(Ping, annotation, **more), "Handling.handle is annotated with", "@on(Ping")


@pytest.mark.parametrize(("annotation", "more"), RIGHT, ids=str)
def test_other_annotations_are_fine(annotation: Any, more: dict[str, Any]) -> None:
    assert handling(Ping, annotation, **more)().__name__ == "Handling"


def test_an_override_without_decorator_is_compared_too() -> None:
    class Base(Process):
        @on(Ping)
        def handle(self, m: Ping) -> None:
            pass

    def define() -> None:
        class Sub(Base):
            def handle(self, m: Pong) -> None:  # type: ignore[override]
                pass

    explained(define, "Sub.handle is annotated with Pong, but @on(Ping) gives it Ping")


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, dataclasses.replace], ids=lambda f: f.__name__)
def test_a_guard_may_copy_its_process(duplicate: Callable[[Any], Any]) -> None:
    class Copying(Process):
        n: int = 0
        other: int = 0

        @action(when=lambda self: duplicate(self).n < 2)
        def go(self) -> None:
            self.n += 1

    assert check(System([Copying(), Copying()])).statistics.states == 9


def test_a_message_may_be_copied_in_a_guard() -> None:
    class Sender(Process):
        sent: bool = False
        got: int = 0

        @action(when=lambda self: not self.sent)
        def go(self) -> None:
            self.sent = True
            self.send(self.id, Ping(1))

        @on(Ping, where=lambda self, m: copy.copy(m).number == dataclasses.replace(m, number=1).number)
        def take(self, m: Ping) -> None:
            self.got = copy.copy(m).number

    assert check(System([Sender()]), coverage=True).statistics.states == 3


def test_getattr_with_a_default_on_a_view() -> None:
    def default(s: Any) -> bool:
        return all(getattr(p, "missing", 7) == 7 and not hasattr(p, "missing") and hasattr(p, "n") for p in s[Node])

    assert check(System([Node()], properties=[always(default)])).status == "holds"
    wrong = always(lambda s: all(p.missing for p in s[Node]), name="wrong")
    explained(lambda: check(System([Node()], properties=[wrong])), "property wrong", "Node has no field 'missing'")


def test_a_role_that_the_system_does_not_have() -> None:
    prop = always(lambda s: not s[Absent], name="absent")
    error = explained(lambda: check(System([Node()], properties=[prop])), "property absent", "the system has no Absent")
    assert "Node" in str(error.hint)
    assert "s.get(Absent)" in str(error.hint)
    spare = System([Node()], spare={Absent: 1}, properties=[prop])
    assert check(spare).status == "holds"


def test_a_role_that_may_be_absent() -> None:
    prop = always(lambda s: not s.get(Absent) and s.get(Node) == s[Node] and len(s.get(Node)) == 2, name="absent")
    for spare in ({}, {Absent: 1}):
        assert check(System([Node(), Node()], spare=spare, properties=[prop])).status == "holds"


@pytest.mark.parametrize("compare", [lambda p: p.pid == Node.pid(0), lambda p: Node.pid(0) != p.pid])
def test_the_method_pid_is_no_id(compare: Callable[[Any], bool]) -> None:
    class Confused(Process):
        n: int = 0

        @action(when=compare)
        def go(self) -> None:
            self.n = 1

    explained(lambda: check(System([Confused()])), "the guard of Confused.go", "the method pid of Confused")


def test_a_handler_of_the_base_class_takes_every_message() -> None:
    class Odd(Message):
        number: int

    class Even(Message): ...

    class Sink(Process):
        got: tuple[str, ...] = ()

        @on(Message)
        def take(self, m: Message) -> None:
            self.got = (*self.got, type(m).__name__)

    class Source(Process):
        @init
        def send_both(self) -> None:
            self.send(Sink.pid(0), Odd(1))
            self.send(Sink.pid(0), Even())

    ends = {("Odd", "Even"), ("Even", "Odd")}
    wanted = [reachable(lambda s, end=end: s[Sink][0].got == end, name=str(end)) for end in ends]  # type: ignore[misc]
    assert check(System([Sink(), Source()], properties=wanted)).status == "holds"


def test_a_quorum_is_a_number_or_a_function() -> None:
    with pytest.raises(ModelError, match=r"@on\(Ping\): quorum='2': expected a number, a quorum or a function"):

        class Odd(Process):
            @on(Ping, quorum="2")  # type: ignore[arg-type]
            def take(self, ms: Any) -> None: ...
