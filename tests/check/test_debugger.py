"""The debugger stops once, inside the handler of the step, with what the step starts from; then the run is the step."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from plait import Message, Process, System, action, always, check, crash_recovery, init, on, recovery
from plait.check.explain import debugger
from plait.check.explain.debugger import handled_steps
from plait.check.explain.replay import replay
from plait.kernel.errors import TraceError
from plait.kernel.trace import Snapshot, Trace
from plait.kernel.values import to_data
from plait.model.loading.loader import load
from tests.support.examples import CASES, FOLDER, name_of

VIOLATED = [case for case in CASES if case[2] is not None]


class Stop:
    """A debugger that records where it stops."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.frames: list[FrameType] = []
        self.fields: list[dict[str, Any]] = []
        monkeypatch.setattr(sys, "breakpointhook", self.stop)

    def stop(self) -> None:
        frame = sys._getframe(1)
        self.frames.append(frame)
        self.fields.append(fields(frame.f_locals["self"]))


def fields(process: Process) -> dict[str, Any]:
    return {name: to_data(process.__dict__[name]) for name in process.__plait_fields__}


def own(state: Snapshot, lane: str) -> dict[str, Any]:
    """The fields of a process, without what the engine adds: its lead."""
    return {name: value for name, value in state.fields[lane].items() if name != "(lead)"}


def violation(system: System) -> Trace:
    trace = check(system).trace
    assert trace is not None
    return trace


def stops(system: System, trace: Trace, *steps: int) -> None:
    """Replay a trace, and stop in these steps."""
    list(replay(system, trace, before=lambda n, stop: stop() if n in steps else None))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "parameters", "violated"), VIOLATED, ids=map(name_of, VIOLATED))
def test_it_stops_in_every_step(
    name: str, parameters: dict[str, Any], violated: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the step, the fields are those of the state before it, and after the handler those of the state after it."""
    system = load(str(FOLDER / f"{name}.py"), parameters, parse=False)
    trace = violation(system)
    handled = handled_steps(system, trace)
    debugger_ = Stop(monkeypatch)
    stops(system, trace, *handled)
    assert handled
    for step, frame, before in zip(handled, debugger_.frames, debugger_.fields, strict=True):
        event, state = trace.events[step - 1], trace.events[step - 2].state if step > 1 else trace.initial
        assert repr(frame.f_locals["self"].id) == event.lane
        handler = frame.f_code.co_name
        assert handler == event.label or event.kind == "recover"
        assert frame.f_code.co_filename == inspect.getsourcefile(getattr(type(frame.f_locals["self"]), handler))
        assert before == own(state, event.lane)
        assert fields(frame.f_locals["self"]) == own(event.state, event.lane)


class Go(Message): ...


def traced(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(self: Any, *given: Any) -> Any:
        return function(self, *given)

    return wrapper


class Base(Process):
    done: int = 0
    down: int = 0

    def finish(self) -> None:
        self.done += 1


class Odd(Base):
    """Handlers whose code is less simple than most."""

    picks: tuple[int, ...] = ()

    @init
    def start(self) -> None:
        self.send(self.id, Go())

    @action(when=lambda self: not self.picks)
    def pick(self) -> None:
        """Two choices: of nine runs of the handler, one is the step."""
        self.picks = (self.choose([1, 2, 3]), self.choose([1, 2, 3]))

    @action(when=lambda self: self.done == 0)
    @traced
    def decorated(self) -> None:
        self.finish()

    @action(when=lambda self: self.done == 1)
    def closing(self) -> None:
        super().finish()

    @on(Go, where=lambda self, m: self.done == 2)
    def one_line(self, m: Go) -> None: self.finish()  # fmt: skip

    made = action(when=lambda self: self.done == 3)(lambda self: self.finish())

    @action(when=lambda self: self.done == 4)
    def fails(self) -> None:
        self.done = 5
        assert self.done == 4

    @recovery
    def back(self) -> None:
        self.down += 1


def odd(bad: Callable[[Odd], bool], crashes: bool = False) -> tuple[System, Trace]:
    @always
    def good(s: Any) -> bool:
        return not any(bad(p) for p in s[Odd])

    system = System([Odd()], properties=[good], faults=[crash_recovery(Odd)] if crashes else [])
    return system, violation(system)


@pytest.mark.parametrize(
    ("bad", "label", "after"),
    [
        (lambda p: p.picks == (2, 3), "pick", {"picks": (2, 3)}),
        (lambda p: p.done == 1, "decorated", {"done": 1}),
        (lambda p: p.done == 2, "closing", {"done": 2}),
        (lambda p: p.done == 3, "one_line", {"done": 3}),
        (lambda p: p.done == 5, "fails", {"done": 5}),
    ],
    ids=["choices", "decorated", "closure", "one line", "assertion"],
)
def test_odd_handlers(
    bad: Callable[[Odd], bool],
    label: str,
    after: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    system, trace = odd(bad)
    stop = Stop(monkeypatch)
    code = Odd.closing.__code__
    stops(system, trace, len(trace))
    (frame,) = stop.frames
    assert frame.f_code.co_name == trace.events[-1].label == label
    process = frame.f_locals["self"]
    assert {name: getattr(process, name) for name in after} == after
    assert Odd.closing.__code__ is code, "the function is the user's again"
    assert debugger._STOPS not in globals()


def test_a_recovery(monkeypatch: pytest.MonkeyPatch) -> None:
    system, trace = odd(lambda p: p.down == 1, crashes=True)
    assert [event.kind for event in trace.events] == ["crash", "recover"]
    assert handled_steps(system, trace) == [2], "a crash runs no handler"
    stop = Stop(monkeypatch)
    stops(system, trace, 2)
    assert [frame.f_code.co_name for frame in stop.frames] == ["back"]
    assert [found["down"] for found in stop.fields] == [0]


def test_a_handler_without_a_definition() -> None:
    system, trace = odd(lambda p: p.done == 4)
    assert trace.events[-1].label == "made"
    with pytest.raises(TraceError, match=r"the debugger cannot stop in Odd.made: .* does not have its definition"):
        stops(system, trace, len(trace))


def test_a_guard_that_raises() -> None:
    class Raising(Process):
        number: int = 0

        @action(when=lambda self: 1 // (1 - self.number) == 1)
        def tick(self) -> None:
            self.number += 1

    system = System([Raising()], properties=[always(lambda s: True)])
    trace = violation(system)
    assert trace.property == "no_exceptions"
    with pytest.raises(TraceError, match=r"the guard of Raising.tick raises an exception, so the handler does not run"):
        stops(system, trace, 2)


def test_what_a_user_changes_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    system, trace = odd(lambda p: p.done == 1)

    def change() -> None:
        sys._getframe(1).f_locals["self"].undeclared = 1

    monkeypatch.setattr(sys, "breakpointhook", change)
    stops(system, trace, 1)


@pytest.mark.parametrize("error", [__import__("bdb").BdbQuit, SystemExit])
def test_a_user_who_ends_the_program(error: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    system, trace = odd(lambda p: p.picks == (2, 3))

    def end() -> None:
        raise error

    monkeypatch.setattr(sys, "breakpointhook", end)
    with pytest.raises(KeyboardInterrupt):
        stops(system, trace, 1)
