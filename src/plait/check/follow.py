"""Follow: execute a run that another analysis found on the model itself, so that only real runs are reported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from plait._native import Transition
from plait.check.replay import exact
from plait.check.runner import Runner
from plait.check.tracing import Tracer
from plait.check.why import why
from plait.kernel.deed import Deed
from plait.kernel.errors import TraceError
from plait.kernel.trace import Event, Trace
from plait.kernel.values import to_data
from plait.model.system import System


def follow(system: System, deeds: Sequence[Deed], name: str | None = None) -> Trace:
    """The Trace of a run, as the model executes it; with the name of a property, the run must decide it.

    A property that must always hold is false in the last state, one that is to be reachable is true there, and
    `assertions` means that the last step fails.
    """
    runner = Runner(system)
    tracer = Tracer(runner)
    events = [tracer.step(transition) for transition in _path(runner, tracer, deeds)]
    explanation = _confirmed(runner, tracer, events, name)
    decided = next(((i, p) for i, p in enumerate(system.properties) if p.name == name), None)
    reasons = why(tracer, decided[1], decided[0], events) if decided else None
    return tracer.trace(events, name, explanation, why=reasons)


def _path(runner: Runner, tracer: Tracer, deeds: Sequence[Deed]) -> list[Transition]:
    """The transitions that the deeds are. Two crashes may look alike and be of different faults: then one of them fits."""
    path: list[Transition] = []
    choices = [_fitting(runner, tracer, tracer.state, deeds[0])] if deeds else []
    furthest = 0
    while len(path) < len(deeds):
        step = next(choices[-1], None)
        if step is None:
            choices.pop()
            if not choices:
                deed = deeds[furthest]
                raise TraceError(
                    f"step {furthest + 1} ({deed.lane}: {deed.label}) is not possible in {runner.system.name}",
                    hint="the run is none of this model: please report this as a bug",
                )
            path.pop()
            continue
        path.append(step)
        if len(path) < len(deeds):
            furthest = max(furthest, len(path))
            choices.append(_fitting(runner, tracer, step.state, deeds[len(path)]))
    return path


def _fitting(runner: Runner, tracer: Tracer, state: Sequence[int], deed: Deed) -> Iterator[Transition]:
    return (t for t in runner.engine.successors(state) if _fits(tracer, t, deed))


def _fits(tracer: Tracer, transition: Transition, deed: Deed) -> bool:
    lane = tracer.names[transition.process]
    if (transition.kind, lane, tracer.label(transition)) != (deed.kind, deed.lane, deed.label):
        return False
    decode = tracer.runner.tabulation.codec.decode
    consumed = sorted(exact(list(tracer.message(content, sender))) for _, sender, content in transition.consumed)
    choices = [to_data(decode(choice)) for choice in transition.choices]
    if deed.kind == "crash":  # what is dropped is not of its choice
        return True
    return consumed == sorted(exact(list(m)) for m in deed.consumed) and exact(choices) == exact(deed.choices)


def _confirmed(runner: Runner, tracer: Tracer, events: list[Event], name: str | None) -> str | None:
    """What the last state shows; an error if it does not."""
    if name is None:
        return None
    if name == "assertions":
        if not (events and events[-1].note):
            raise TraceError("no assertion fails at the end of the run", hint="please report this as a bug")
        return events[-1].note
    number, kind = next((i, p.kind) for i, p in enumerate(runner.system.properties) if p.name == name)
    if runner.holds(number, tracer.state) != (kind == "reachable"):
        raise TraceError(
            f"{name} is not decided by the last state of the run", hint="please report this as a bug of Plait"
        )
    return f"{name} is {'true' if kind == 'reachable' else 'false'} in the last state"
