"""Replay: execute a saved Trace on the model, step by step, and check that the model still reproduces it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import msgspec

from plait._native import Transition
from plait.check.explain.counterexample import failure_of
from plait.check.explain.debugger import stop_inside
from plait.check.explain.tracing import Tracer, begun, state_fields
from plait.check.explain.why import violators
from plait.check.live.lasso import Lasso
from plait.check.live.refinement import Refining
from plait.check.live.repetition import broken, comes_back
from plait.check.live.search import assumed, engine_fairness, flattened, predicates, violated
from plait.check.runner import Runner, violated_by
from plait.check.tabulate.codec import exception
from plait.kernel.errors import TraceError
from plait.kernel.trace import Event, Sent, Snapshot, Trace
from plait.kernel.values import Data, exact, text, to_data
from plait.model.properties import ASSERTIONS, BUILT_IN
from plait.model.refinement import Refinement
from plait.model.system import System
from plait.model.temporal import Temporal

_STALE = "the model has changed since the trace was saved: check it again to get a new trace"
_BROKEN = "the trace was edited or is damaged: check the model again to get a new trace"


def replay(
    system: System, trace: Trace, *, before: Callable[[int, Callable[[], None]], None] | None = None
) -> Iterator[Event]:
    """Yield each event as the model executes it now. Raise a TraceError if a step is not possible any more.

    `before` is called before each step, with the number of the step, counted from 1, and a function that stops in the
    user's debugger inside the handler of the step.

    After the last event the property is evaluated again. It is also an error if the trace does not show the violation
    any more. A lasso must return to the start of its loop, and must meet the fairness that is assumed now.
    """
    runner = Runner(flattened(system, system.properties))
    start = begun(runner, trace)
    if start is None:
        options = "; ".join(f"{lane} chooses {', '.join(map(_shown, some))}" for lane, some in trace.chosen.items())
        raise TraceError(
            f"no initial state is the one of the trace any more ({options or 'no @init method chooses'})", hint=_STALE
        )
    tracer = Tracer(runner, start)
    _same("the initial state", trace, _own(trace, trace.initial), tracer, tracer.initial)
    for number, event in enumerate(trace.events, 1):
        here = f"step {number} ({event.lane}: {event.label})"
        consumed = _messages(here, trace.messages, event.consumed)
        successors = runner.engine.successors(tracer.state)
        candidates = [t for t in successors if _matches(tracer, t, event, consumed, fails=bool(event.note))]
        if not candidates:
            fixed = event.note and any(_matches(tracer, t, event, consumed, fails=False) for t in successors)
            raise TraceError(f"{here} {'does not fail' if fixed else 'is not possible'} any more", hint=_STALE)
        if event.note and number < len(trace.events):
            raise TraceError(f"{here} failed, but the trace goes on after it", hint=_BROKEN)
        # Several steps may look equal (a fifo queue loses one of two equal messages). Take the one that fits.
        chosen = next((t for t in candidates if _fits(tracer, t, trace, event)), candidates[0])
        if before is not None:
            before(number, partial(stop_inside, tracer, chosen))
        now = tracer.step(chosen)
        _same(f"the state after {here}", trace, _own(trace, event.state), tracer, now.state)
        _same_effects(here, trace, event, tracer, now)
        yield now
    _confirm(runner, tracer, trace, system)


def _own(trace: Trace, snapshot: Snapshot) -> Snapshot:
    """A snapshot without the abstract state of a refinement, which is no part of the state."""
    own = {name: value for name, value in snapshot.monitors.items() if name != trace.abstract}
    return msgspec.structs.replace(snapshot, monitors=own)


def _messages(place: str, messages: Sequence[Sent], ids: Sequence[int]) -> list[str]:
    """The content of messages, in canonical order."""
    known = {m.id: m for m in messages}
    for number in ids:
        if number not in known:
            raise TraceError(f"{place} refers to message {number}, which the trace does not describe", hint=_BROKEN)
    return sorted(exact([known[i].sender, known[i].receiver, known[i].type, known[i].fields]) for i in ids)


def _matches(tracer: Tracer, transition: Transition, event: Event, recorded: list[str], *, fails: bool) -> bool:
    lane = tracer.lane(transition)
    if transition.kind != event.kind or lane != event.lane or tracer.label(transition) != event.label:
        return False
    decode = tracer.runner.tabulation.codec.decode
    consumed = []
    for _, sender, content in transition.consumed:
        name, kind, fields = tracer.message(content, sender)
        consumed.append(exact([name, tracer.names[transition.process], kind, fields]))
    choices = [to_data(decode(choice)) for choice in transition.choices]
    return sorted(consumed) == recorded and exact(choices) == exact(event.choices) and bool(transition.failure) == fails


def _fits(tracer: Tracer, transition: Transition, trace: Trace, event: Event) -> bool:
    """Whether a transition leads to the recorded state, with the same order in queues."""
    runner = tracer.runner
    locals_, inboxes, _, budgets = runner.engine.components(transition.state)
    network = runner.system.network
    known = {m.id: [m.sender, m.type, m.fields] for m in trace.messages}
    shown = state_fields(runner, transition.state)
    for index, name in enumerate(tracer.names):
        status, _ = runner.tabulation.local_value(index, locals_[index])
        if status != event.state.status.get(name, "up"):
            return False
        if shown[name] != event.state.fields.get(name):
            return False
        there = [list(tracer.message(m, sender)) for _, sender, m in runner.engine.store.inbox(inboxes[index])]
        recorded = [known.get(i, [""]) for i in event.state.pending.get(name, [])]
        # The order within a queue matters; the order among queues does not.
        key = {"fifo": lambda m: m[0], "mailbox": lambda m: 0}.get(network.kind, exact)
        if [exact(m) for m in sorted(there, key=key)] != [exact(m) for m in sorted(recorded, key=key)]:
            return False
    cells = zip(runner.system.cells, locals_[len(tracer.names) :], strict=True)
    if any(
        exact(to_data(runner.tabulation.cell_value(local)))
        != exact(event.state.fields.get(repr(cell.shared), {}).get(cell.name))
        for cell, local in cells
    ):
        return False
    return list(budgets) == list(event.state.budgets.values())


def _same(place: str, trace: Trace, then: Snapshot, tracer: Tracer, now: Snapshot) -> None:
    for name in sorted({*then.fields, *then.pending, *now.fields}):
        if name not in now.fields or name not in then.fields:
            raise TraceError(
                f"{place} differs: process {name} {'is new' if name in now.fields else 'is missing'}", hint=_STALE
            )
        _same_record(f"{place} differs: {name}", then.fields[name], now.fields[name])
        was = _messages(place, trace.messages, then.pending.get(name, []))
        if was != _messages(place, tracer.messages, now.pending.get(name, [])):
            raise TraceError(f"{place} differs: other messages are pending for {name}", hint=_STALE)
    for what, before, after in (
        ("status", then.status, now.status),
        ("monitor", then.monitors, now.monitors),
        ("budget", then.budgets, now.budgets),
    ):
        _same_record(f"{place} differs: {what}", before, after)


def _same_record(place: str, was: dict[str, Data], now: dict[str, Data]) -> None:
    for key in sorted(was.keys() | now.keys()):
        if exact(was.get(key)) != exact(now.get(key)):
            raise TraceError(
                f"{place} {key} was {_shown(was.get(key))} in the trace and is {_shown(now.get(key))} now", hint=_STALE
            )


def _shown(data: Data) -> str:
    try:
        return text(data)
    except (TypeError, ValueError):
        return repr(data)  # a tag with the wrong content


def _same_effects(here: str, trace: Trace, then: Event, tracer: Tracer, now: Event) -> None:
    """Compare the effects of a step, apart from the new state."""
    for what, was, is_now in (
        ("sent", _messages(here, trace.messages, then.sent), _messages(here, tracer.messages, now.sent)),
        ("announced", then.announced, now.announced),
        ("spawned", then.spawned, now.spawned),
        ("changed", {k: list(v) for k, v in then.changed.items()}, {k: list(v) for k, v in now.changed.items()}),
    ):
        if exact(was) != exact(is_now):
            raise TraceError(f"{here}: what it {what} in the trace differs from what it {what} now", hint=_STALE)


def _confirm(runner: Runner, tracer: Tracer, trace: Trace, system: System) -> None:
    """The last state, or the whole run, must decide the property as the trace says."""
    if trace.loop is not None and not 0 <= trace.loop < len(trace.events):
        raise TraceError(f"the trace goes back to step {trace.loop + 1}, which it does not have", hint=_BROKEN)
    prop = next((p for p in system.properties if p.name == trace.property), None)
    if isinstance(prop, Refinement):
        _confirm_refinement(runner, Lasso(tracer, trace.events, trace.loop), prop, system)
        return
    if trace.loop is not None and not isinstance(prop, Temporal):
        if prop is not None or trace.property == "assertions":
            raise TraceError(f"{trace.property} is about states, but the run of the trace repeats", hint=_BROKEN)
        if not comes_back(Lasso(tracer, trace.events, trace.loop), system, system.properties):
            raise _no_loop(trace)
    if trace.property is None:
        return
    end = f"the last state of the trace (after step {len(trace.events)})" if trace.events else "the initial state"
    if trace.property in BUILT_IN:
        _confirm_failure(tracer, trace, end)
        return
    if prop is None:
        raise TraceError(f"the model has no property {trace.property!r} any more", hint=_STALE)
    if isinstance(prop, Temporal):
        _confirm_run(runner, Lasso(tracer, trace.events, trace.loop), prop, system, trace)
        return
    numbers = {p.name: i for i, p in enumerate(runner.system.properties)}
    number = numbers[trace.property]
    kind = runner.system.properties[number].kind
    if kind == "final" and not runner.is_terminal(tracer.state):
        raise TraceError(f"{end} is not terminal any more", hint=_STALE)
    if runner.holds(number, tracer.state) != (kind == "reachable"):
        raise TraceError(f"{end} no longer decides {trace.property}", hint=_STALE)
    if violators(tracer, prop) != trace.violators:
        raise TraceError(f"in {end}, {trace.property} is false for other processes now", hint=_STALE)


def _confirm_refinement(runner: Runner, lasso: Lasso, prop: Refinement, system: System) -> None:
    """The run must violate the refinement: by its initial state, its last step, or its end."""
    if Refining(runner, prop).violated_by(lasso, engine_fairness(system, system.fairness)) is None:
        raise TraceError(f"the run of the trace does not violate {prop.name} any more", hint=_STALE)


def _confirm_failure(tracer: Tracer, trace: Trace, end: str) -> None:
    """The run must end in the same failure: of its last step, or of a property in its last state."""
    if trace.property == ASSERTIONS:
        if not (tracer.taken and violated_by(tracer.taken[-1]) == ASSERTIONS):
            raise TraceError(f"{end} has no failed assertion", hint=_BROKEN)
        return
    then, now = trace.exception, exception(failure_of(tracer))
    if then is None:
        raise TraceError(f"{end} has no exception", hint=_BROKEN)
    if now is None:
        raise TraceError(f"{then.where} does not raise {then.type} any more in {end}", hint=_STALE)
    if (then.where, then.type) != (now.where, now.type):
        raise TraceError(
            f"in {end}, {then.where} raised {then.type} in the trace, and {now.where} raises {now.type} now",
            hint=_STALE,
        )


def _no_loop(trace: Trace) -> TraceError:
    before = (trace.loop or 0) + 1
    return TraceError(f"after step {len(trace.events)} the state is not the one before step {before}", hint=_BROKEN)


def _confirm_run(runner: Runner, lasso: Lasso, prop: Temporal, system: System, trace: Trace) -> None:
    """The run must repeat as the trace says, violate the formula, and be fair."""
    loop = lasso.loop
    if not comes_back(lasso, system, [prop]):
        if loop is None:
            raise TraceError("the run does not end any more at the end of the trace", hint=_STALE)
        raise _no_loop(trace)
    atoms = predicates(system.properties)
    first = len(runner.system.properties) - len(atoms)
    if not violated(runner, prop.formula, first, atoms, lasso.tracer.visited, loop):
        raise TraceError(f"the run of the trace now satisfies {prop.name}", hint=_STALE)
    unfair = broken(lasso, system, assumed(system, prop))
    if unfair is not None:
        raise TraceError(
            f"the run of the trace is not fair any more, so it does not violate {prop.name}: {unfair}", hint=_STALE
        )
