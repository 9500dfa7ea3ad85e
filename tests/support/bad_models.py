"""What the tests of bad models share: a process that does anything, and what an error must look like."""

from __future__ import annotations

import itertools
import os
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import plait
from plait import (
    Message,
    ModelError,
    Monitor,
    Pid,
    PlaitError,
    Process,
    System,
    UsageError,
    Verdict,
    action,
    check,
    field,
    on,
)

OURS = f"{Path(plait.__file__).parent}{os.sep}"
"""How the path of every file of the package begins. No message for a user has one, wherever the clone lives."""


class Note(Message):
    content: Any = None


class Other(Message):
    pass


class Sink(Process):
    """Takes everything."""

    @on(Note)
    def take(self, m: Note) -> None:
        pass


class Child(Process):
    age: int = 0


def node(act: Callable[[Any], Any], when: Any = lambda self: self.n < 3) -> type[Process]:
    """A process class with one action."""
    body = {
        "__annotations__": {"n": int, "a": object, "b": object, "names": set, "frozen": frozenset, "table": dict},
        "n": 0,
        "a": None,
        "b": None,
        "names": field(default_factory=lambda: {"red", "green", "blue"}),
        "frozen": frozenset({"red", "green", "blue"}),
        "table": field(default_factory=dict),
        "act": action(act, when=when),
    }
    return types.new_class("Node", (Process,), {}, lambda namespace: namespace.update(body))


def run(act: Callable[[Any], Any], when: Any = lambda self: self.n < 3, workers: int = 1, **system: Any) -> Verdict:
    return check(System([node(act, when)(), Sink()], **system), workers=workers)


def explained(call: Callable[[], Any], *words: str) -> PlaitError:
    """The error that a call raises: it has these words, a hint, and nothing of ours in it."""
    with pytest.raises((ModelError, UsageError)) as caught:
        call()
    error = caught.value
    for word in words:
        assert word in error.message
    assert error.hint
    assert str(error) == f"{error.message}\nhint: {error.hint}"
    assert "Traceback" not in str(error)
    assert OURS not in str(error)
    # What is shown below it is the user's own exception, and never the error itself.
    assert error.__cause__ is None or not isinstance(error.__cause__, PlaitError)
    return error


# -- what a handler must not do --------------------------------------------------------------------------------------


def sends_to_nobody(self: Any) -> None:
    self.send(Pid("Ghost", 0), Note())


def sends_to_a_number(self: Any) -> None:
    self.send(3, Note())


def sends_a_number(self: Any) -> None:
    self.send(self.id, 3)


def sends_without_content(self: Any) -> None:
    self.send(Sink.pid(0), Note({"key": [object()]}))


def sets_an_object(self: Any) -> None:
    self.b = object()


def sets_a_function(self: Any) -> None:
    self.a = lambda: None


def sets_a_generator(self: Any) -> None:
    self.table["key"] = (x for x in ())


def sets_a_huge_number(self: Any) -> None:
    self.a = 10**5000


def sets_a_pid_that_cannot_be(self: Any) -> None:
    self.a = Pid("Node", -1)


def announces_an_object(self: Any) -> None:
    self.announce(object())


def chooses_an_object(self: Any) -> None:
    self.choose([object()])


def chooses_from_objects(self: Any) -> None:
    self.choose({object()})


def chooses_from_nothing(self: Any) -> None:
    self.choose([])


def chooses_from_no_collection(self: Any) -> None:
    self.choose(3)


def shares_a_list(self: Any) -> None:
    self.a = self.b = [1]


def shares_a_list_inside(self: Any) -> None:
    row = [0]
    self.a = (row, row)


def contains_itself(self: Any) -> None:
    self.a = [1]
    self.a.append(self.a)


def sets_an_unknown_field(self: Any) -> None:
    self.oops = 1


def deletes_a_field(self: Any) -> None:
    del self.a


def asks_a_new_message_for_its_sender(self: Any) -> None:
    self.a = Note().sender


def spawns_without_slots(self: Any) -> None:
    self.spawn(Child)


HANDLERS: dict[Callable[[Any], None], tuple[str, ...]] = {
    sends_to_nobody: ("sends to Ghost0",),
    sends_to_a_number: ("sends to 3",),
    sends_a_number: ("sends 3", "not a Message"),
    sends_without_content: ("message Note", "field content", "object"),
    sets_an_object: ("field b", "object"),
    sets_a_function: ("field a", "function"),
    sets_a_generator: ("field table", "generator"),
    sets_a_huge_number: ("field a", "4300 digits"),
    sets_a_pid_that_cannot_be: ("field a",),
    announces_an_object: ("announced event", "object"),
    chooses_an_object: ("chosen option", "object"),
    chooses_from_objects: ("option", "object"),
    chooses_from_nothing: ("choose() was given no options",),
    chooses_from_no_collection: ("choose(3)",),
    shares_a_list: ("fields a and b", "the same list object [1]"),
    shares_a_list_inside: ("field a", "the same list object [0]"),
    contains_itself: ("field a", "the same list object"),
    sets_an_unknown_field: ("sets self.oops", "does not declare"),
    deletes_a_field: ("deletes self.a",),
    asks_a_new_message_for_its_sender: ("Note has no sender yet",),
    spawns_without_slots: ("spawns Child", "no spare slots"),
}


# -- what a guard must not do ----------------------------------------------------------------------------------------


TICKS = itertools.count()


def step(self: Any) -> None:
    self.n += 1


GUARDS: dict[str, tuple[Callable[[Any], Any], tuple[str, ...]]] = {
    "changes a value": (lambda self: self.names.add("black") is None, ("changes the state of Node0",)),
    "changes a field": (lambda self: setattr(self, "n", 7) is None, ("changes the state of Node0",)),
    "makes a field": (lambda self: setattr(self, "oops", 7) is None, ("sets self.oops",)),
    "deletes a field": (lambda self: delattr(self, "a") is None, ("deletes self.a",)),
    "stores an object": (lambda self: setattr(self, "a", object()) is None, ("field a",)),
    "sends": (lambda self: self.send(self.id, Note()) is None, ("Node.send()", "outside of a handler")),
    "announces": (lambda self: self.announce(1) is None, ("Node.announce()", "outside of a handler")),
    "chooses": (lambda self: self.choose([True, False]), ("Node.choose()", "outside of a handler")),
    "spawns": (lambda self: self.spawn(Child) is None, ("Node.spawn()", "outside of a handler")),
    "counts globally": (lambda self: next(TICKS) % 2 == 0, ("not a function of its inputs",)),
    "depends on the order of a set": (
        lambda self: self.n < 20 and next(iter(self.names)) < list(self.names)[-1],
        ("not a function",),
    ),
}


# -- what a property must not do -------------------------------------------------------------------------------------


class Watch(Monitor):
    events: list[Any] = field(default_factory=list)

    def observe(self, process: Pid, event: Any) -> None:
        self.events.append(event)


def talk(self: Any) -> None:
    self.n += 1
    self.announce(self.n)
    self.send(Sink.pid(0), Note([self.n]))


PROPERTIES: dict[str, tuple[Callable[[Any], Any], tuple[str, ...]]] = {
    "returns nothing": (lambda s: None, ("returned None",)),
    "returns a list": (lambda s: [], ("returned []",)),
    "changes a field's value": (lambda s: s.processes[0].names.add("x") is None, ("changes the state", "Node0")),
    "spoils a field": (lambda s: s.processes[0].names.add(object()) is None, ("changes the state", "Node0")),
    "changes a message": (
        lambda s: s.processes[0].n > 0 and all(m.content.append(1) is None for m in s.processes[1].inbox),
        ("the inbox of Sink0",),
    ),
    "changes a monitor": (lambda s: s[Watch].events.append(1) is None, ("changes the state", "monitor Watch")),
    "sets a monitor's field": (lambda s: setattr(s[Watch], "events", ["x"]) is None, ("changes the state", "Watch")),
    "makes a monitor's field": (lambda s: setattr(s[Watch], "oops", 1) is None, ("sets self.oops",)),
    "sets a process's field": (lambda s: setattr(s.processes[0], "n", 1) is None, ("changes the state", "Node0.n")),
    "reads an unknown field": (lambda s: s.processes[1].weight == 0, ("Sink has no field 'weight'",)),
    "reads an unknown process": (lambda s: s[Pid("Ghost", 1)].n == 0, ("no process Ghost1",)),
    "reads something else": (lambda s: s["Sink"] == 0, ("the view has no 'Sink'",)),
}
