"""Exceptions, failed assertions and model errors have the same texts natively and in CPython."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import pytest

from plait import Process, System, always, final, on, reachable
from tests.support import bad_models as bad
from tests.support import raising
from tests.support.bad_models import Child, Note, Sink, node
from tests.support.natively import Checked, compare


def explained(found: Checked, *words: str) -> None:
    assert found.error is not None
    assert all(word in found.error[1] for word in words)


# -- exceptions and assertions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"keep_going": True}, {"search": "dfs"}], ids=str)
@pytest.mark.parametrize("broken", raising.PLACES)
def test_exceptions(broken: str, options: dict[str, Any]) -> None:
    found = compare(lambda: raising.system(broken), **options)
    assert found.verdict is not None
    assert found.verdict.property == "no_exceptions"
    assert found.verdict.trace is not None
    assert found.verdict.trace.exception is not None
    assert found.verdict.trace.exception.where == raising.PLACES[broken][0]


@pytest.mark.parametrize("message", [None, "n is 2"])
def test_assertions(message: str | None) -> None:
    def act(self: Any) -> None:
        self.n += 1
        assert self.n != 2, message

    def act_plainly(self: Any) -> None:
        self.n += 1
        assert self.n != 2

    made = node(act if message else act_plainly)
    found = compare(lambda: System([made(), Sink()], properties=[final(lambda s: True, name="ends")]))
    assert found.verdict is not None
    assert found.verdict.property == "assertions"
    assert found.verdict.trace is not None
    assert (message or "assertion failed") in (found.verdict.trace.explanation or "")


def test_a_failed_assertion_in_a_property() -> None:
    def positive(s: Any) -> bool:
        assert s.processes[0].n < 2
        return True

    made = node(bad.step)
    found = compare(lambda: System([made(), Sink()], properties=[always(positive)]), keep_going=True)
    assert found.verdict is not None
    assert found.verdict.property == "positive"


# -- errors of the model -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("act", bad.HANDLERS, ids=lambda act: act.__name__)
def test_handlers(act: Callable[[Any], None]) -> None:
    made = node(act)
    explained(compare(lambda: System([made(), Sink()])), "Node.act", *bad.HANDLERS[act])


@pytest.mark.parametrize("name", [name for name in bad.GUARDS if name != "counts globally"])
def test_guards(name: str) -> None:
    guard, words = bad.GUARDS[name]
    made = node(bad.step, guard)
    explained(compare(lambda: System([made(), Sink()])), "the guard of Node.act", *words)


@pytest.mark.parametrize("kind", [always, reachable, final])
@pytest.mark.parametrize("name", bad.PROPERTIES)
def test_properties(name: str, kind: Any) -> None:
    predicate, words = bad.PROPERTIES[name]
    quiet = types.new_class("Sink", (Process,))
    loud = node(bad.talk, lambda self: self.n < 2)
    properties = [kind(predicate, name="careful")]
    found = compare(lambda: System([loud(), quiet()], properties=properties, monitors=[bad.Watch()]))
    if name == "changes a message" and kind is always:  # false at first
        assert found.verdict is not None
    else:
        explained(found, "property careful", *words)


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_spare_slots(slots: int) -> None:
    def act(self: Any) -> None:
        self.n += 1
        self.spawn(Child, age=self.n)

    made = node(act)
    found = compare(lambda: System([made(), Sink()], spare={Child: slots}), explore=True)
    assert (found.error is None) == (slots == 3)
    if slots < 3:
        explained(found, "Node.act spawns Child", f"all {slots} spare slots" if slots > 1 else "spare slot")


def test_a_quorum_that_can_never_be() -> None:
    class Odd(Process):
        @on(Note, quorum=lambda self: 7)
        def gather(self, ms: Any) -> None:
            pass

    explained(compare(lambda: System([Odd(), Sink()])), "the quorum of Odd.gather is 7")


def test_an_error_that_comes_late() -> None:
    """After most of the questions were answered natively only."""

    def act(self: Any) -> None:
        self.n += 1
        if self.n == 60:
            self.a = self.b = [1]

    made = node(act, lambda self: self.n < 100)
    explained(compare(lambda: System([made(), Sink()])), "Node.act", "fields a and b", "the same list object [1]")
