"""Exceptions that are odd: no subclass of Exception, or without a text that can be made."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import pytest

from plait import ModelError, Process, System, View, action, always, check
from plait.model.loading.loader import ModelFunction
from plait.report.html import report


class OddError(BaseException):
    """Not an Exception."""


class SpeechlessError(Exception):
    """Without a text."""

    def __str__(self) -> str:
        raise ValueError


def raises(error: BaseException) -> Callable[..., Any]:
    def function(*_: object) -> Any:
        raise error

    return function


ODD = [
    SystemExit(0),
    OddError("no"),
    asyncio.CancelledError(),
    GeneratorExit(),
    SpeechlessError(),
    ValueError("\udc80"),
]


class Step(Process):
    """Takes a step."""

    done: bool = False
    act: Any = None
    guard: Any = None

    @action(when=lambda self: not self.done and (FAILING.get(self.guard) or bool)(1))
    def go(self) -> None:
        self.done = True
        FAILING.get(self.act, bool)(1)


FAILING = {number: raises(error) for number, error in enumerate(ODD)}


@pytest.mark.parametrize("number", FAILING)
@pytest.mark.parametrize("place", ["handler", "guard", "property"])
def test_it_is_a_violation_of_no_exceptions(place: str, number: int) -> None:
    fields = {"handler": {"act": number}, "guard": {"guard": number}}.get(place, {})
    prop = always(lambda s: place != "property" or FAILING[number](s) or True, name="odd")
    verdict = check(System([Step(**fields)], properties=[prop]))
    assert (verdict.status, verdict.property) == ("violated", "no_exceptions")
    assert verdict.trace is not None
    assert type(ODD[number]).__name__ in (verdict.trace.explanation or "")
    report(verdict).encode()


def test_an_assertion_without_a_text() -> None:
    class Asserts(Process):
        done: bool = False

        @action(when=lambda self: not self.done)
        def go(self) -> None:
            raise AssertionError("\udc80")

    verdict = check(System([Asserts()], properties=[always(lambda s: True)]))
    assert verdict.property == "assertions"
    assert verdict.trace is not None
    assert "\\udc80" in (verdict.trace.explanation or "")


def test_a_model_function_that_exits_is_an_error() -> None:
    with pytest.raises(ModelError, match=r"raised SystemExit: 0"):
        ModelFunction("m", lambda: sys.exit(0)).build({})


def test_views_belong_to_their_role() -> None:
    def by_match(s: View) -> bool:
        match s[Step][0]:
            case Step(done=True):
                return False
        return True

    for holds in (by_match, lambda s: not any(p.done for p in s if isinstance(p, Step))):
        assert check(System([Step()], properties=[always(holds, name="p")])).property == "p"
    with pytest.raises(ModelError, match="asks for no role"):
        check(System([Step()], properties=[always(lambda s: not s.get("Step"), name="p")]))
