"""Replay: execute a saved Trace on the model, step by step, and make sure that it still shows what it showed."""

from __future__ import annotations

from collections.abc import Iterator

from plait._native import Transition
from plait.check.runner import Runner
from plait.check.tracing import Tracer
from plait.kernel.errors import TraceError
from plait.kernel.trace import Event, Snapshot, Trace
from plait.kernel.values import Data, text
from plait.model.system import System

_STALE = "the model has changed since the trace was made: check it again for a new one"


def replay(system: System, trace: Trace) -> Iterator[Event]:
    """Yield each event as the model executes it now; raise TraceError where it no longer can.

    After the last event the property is evaluated again: a trace that does not show its finding any more is an error too.
    """
    runner = Runner(system)
    tracer = Tracer(runner)
    _same("the initial state", trace.initial, tracer.initial)
    for number, event in enumerate(trace.events, 1):
        here = f"step {number} ({event.lane}: {event.label})"
        candidates = [t for t in runner.engine.successors(tracer.state) if _matches(tracer, t, trace, event)]
        if not candidates:
            raise TraceError(f"{here} is not possible any more", hint=_STALE)
        # Among steps that look alike (a fifo queue that loses one of two equal messages) take the one that fits.
        chosen = next((t for t in candidates if _fits(tracer, t, event)), candidates[0])
        now = tracer.step(chosen)
        _same(f"the state after {here}", event.state, now.state)
        yield now
    _confirm(runner, tracer, trace)


def _matches(tracer: Tracer, transition: Transition, trace: Trace, event: Event) -> bool:
    if transition.kind != event.kind or tracer.names[transition.process] != event.lane:
        return False
    decode = tracer.runner.tabulation.codec.decode
    consumed = [tracer.message(content, sender) for _, sender, content in transition.consumed]
    recorded = [(trace.messages[i].sender, trace.messages[i].type, trace.messages[i].fields) for i in event.consumed]
    choices = [text(tracer.data(decode(choice))) for choice in transition.choices]
    return (
        tracer.label(transition) == event.label
        and sorted(map(str, consumed)) == sorted(map(str, recorded))
        and choices == [text(choice) for choice in event.choices]
        and bool(transition.failure) == bool(event.note)
    )


def _fits(tracer: Tracer, transition: Transition, event: Event) -> bool:
    """Whether the fields after a transition are the recorded ones, and as many messages are pending."""
    locals_, inboxes, _, _ = tracer.runner.engine.components(transition.state)
    for index, name in enumerate(tracer.names):
        fields = tracer.runner.tabulation.local_value(index, locals_[index])[1]
        if {k: tracer.data(v) for k, v in fields.items()} != event.state.fields[name]:
            return False
        if len(tracer.runner.engine.store.inbox(inboxes[index])) != len(event.state.pending[name]):
            return False
    return True


def _same(place: str, then: Snapshot, now: Snapshot) -> None:
    for name in sorted(then.fields.keys() | now.fields.keys()):
        if name not in now.fields or name not in then.fields:
            raise TraceError(
                f"{place} differs: process {name} {'left' if name in then.fields else 'is new'}", hint=_STALE
            )
        _same_record(f"{place} differs: {name}", then.fields[name], now.fields[name])
        if len(then.pending.get(name, [])) != len(now.pending.get(name, [])):
            raise TraceError(f"{place} differs: other messages are pending for {name}", hint=_STALE)
    for what, was, is_now in (
        ("status", then.status, now.status),
        ("monitor", then.monitors, now.monitors),
        ("budget", then.budgets, now.budgets),
    ):
        _same_record(f"{place} differs: {what}", was, is_now)


def _same_record(place: str, was: dict[str, Data], now: dict[str, Data]) -> None:
    for key in sorted(was.keys() | now.keys()):
        if was.get(key) != now.get(key):
            raise TraceError(
                f"{place} {key} was {text(was.get(key))} in the trace and is {text(now.get(key))} now", hint=_STALE
            )


def _confirm(runner: Runner, tracer: Tracer, trace: Trace) -> None:
    """The property must be decided in the last state as the trace says."""
    if trace.property is None or trace.property == "assertions":
        return
    numbers = {p.name: i for i, p in enumerate(runner.system.properties)}
    if trace.property not in numbers:
        raise TraceError(f"the model has no property {trace.property!r} any more", hint=_STALE)
    number = numbers[trace.property]
    kind = runner.system.properties[number].kind
    if kind == "final" and not runner.is_terminal(tracer.state):
        raise TraceError("the last state of the trace is not terminal any more", hint=_STALE)
    if runner.holds(number, tracer.state) != (kind == "reachable"):
        raise TraceError(f"the last state of the trace no longer decides {trace.property}", hint=_STALE)
