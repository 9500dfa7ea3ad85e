"""Execute a run of another analysis on the model itself. So only real runs are reported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from plait._native import Transition
from plait.check.explain.counterexample import failure_of
from plait.check.explain.tidy import MOST_STEPS, executed, left_out, ordered, rearranged, shortened, switches
from plait.check.explain.tracing import Tracer, begun, snapshot
from plait.check.explain.why import violators, why
from plait.check.live.lasso import Lasso
from plait.check.live.repetition import broken, comes_back
from plait.check.live.search import assumed, flattened
from plait.check.runner import Runner
from plait.check.tabulate.codec import exception
from plait.kernel.errors import TraceError
from plait.kernel.renaming import by_position, renamed
from plait.kernel.step import Step
from plait.kernel.trace import Event, Trace, for_whom
from plait.kernel.values import exact, to_data
from plait.model.fairness import Fairness
from plait.model.properties import BUILT_IN, NO_EXCEPTIONS
from plait.model.system import System
from plait.model.temporal import Temporal


def execute(system: System, steps: Sequence[Step], name: str | None = None) -> Trace:
    """The Trace of a run, as the model executes it. With the name of a property, the run must decide this property.

    This means: an `always` property is false in the last state, a `reachable` property is true there. The names
    `assertions` and `no_exceptions` mean that the last step fails, or that a property raises in the last state. A guard
    that raises is no step of the program: then the failing step is added.
    """
    tracer, events = execution(system, steps)
    if name == NO_EXCEPTIONS and failure_of(tracer) is None:
        failing = tracer.runner.failing(tracer.state, name)
        events += [tracer.step(failing)] if failing else []
    explanation = _confirmed(tracer, events, name)
    decided = next(((i, p) for i, p in enumerate(system.properties) if p.name == name), None)
    reasons = why(tracer, decided[1], decided[0], events) if decided else None
    false_for = violators(tracer, decided[1]) if decided else []
    raised = exception(failure_of(tracer)) if name == NO_EXCEPTIONS else None
    return tracer.trace(events, name, explanation, why=reasons, exception=raised, violators=false_for)


class Execution(NamedTuple):
    """Steps executed on a System: their events, and values of the model that a Trace does not contain."""

    tracer: Tracer
    events: list[Event]

    def choices(self) -> list[list[object]]:
        """For each step, the values that it chose."""
        decode = self.tracer.runner.tabulation.codec.decode
        return [[decode(choice) for choice in transition.choices] for transition in self.tracer.taken]

    def fields(self) -> list[dict[str, Any]]:
        """For each process, its fields in the last state. A process that was not created has none."""
        runner = self.tracer.runner
        locals_ = runner.engine.components(self.tracer.state)[0]
        processes = range(len(runner.system.classes))
        return [dict(runner.tabulation.local_value(i, locals_[i])[1]) for i in processes]


def execution(system: System, steps: Sequence[Step]) -> Execution:
    """Execute steps on a System. Raise a TraceError if a step is not possible."""
    runner = Runner(system)
    tracer = Tracer(runner)
    return Execution(tracer, [tracer.step(transition) for transition in _path(runner, tracer, steps)])


def tidied(system: System, steps: Sequence[Step], name: str | None) -> tuple[list[Step], str | None]:
    """The needed steps, with few changes from process to process in each round, and a text that says what was saved."""
    found = list(steps)
    if not 1 < len(found) <= MOST_STEPS:
        return found, None

    def decides(tracer: Tracer, events: list[Event], kept: list[int]) -> bool:
        try:
            return _confirmed(tracer, events, name) is not None
        except TraceError:
            return False

    tracer, events, kept = shortened(*execution(system, found), decides)
    notes = left_out(len(kept), len(found))
    found = [found[i] for i in kept]
    order = []
    for _, group in groupby(range(len(found)), lambda i: found[i].place):
        first, *rest = group
        order += [first + i for i in ordered(events[first : first + 1 + len(rest)])]
    before, after = (switches([found[i].lane for i in some]) for some in (range(len(found)), order))
    again = executed(tracer.runner, tracer.visited[0], [tracer.taken[i] for i in order]) if after < before else None
    if again is not None and decides(*again, order):
        found, notes = [found[i] for i in order], notes + rearranged(after, before)
    return found, "; ".join(notes) or None


def retraced(system: System, trace: Trace) -> Trace:
    """Execute the steps of a trace on another System. Steps that are not possible there are left out.

    A process with another name stands for the process at the same position. A lasso stays one if it closes here too.
    """
    lasso = _retaken(system, trace)
    return lasso.tracer.trace(lasso.events, None, loop=lasso.loop)


def unfairness(system: System, trace: Trace) -> str | None:
    """The fairness assumption that a lasso violates on this System, as text; None if it meets all."""
    return broken(_retaken(system, trace), system, _assumed(system, trace))


def _assumed(system: System, trace: Trace) -> tuple[Fairness, ...]:
    prop = next((p for p in system.properties if p.name == trace.property), None)
    return assumed(system, prop) if isinstance(prop, Temporal) else tuple(system.fairness)


def _retaken(system: System, trace: Trace) -> Lasso:
    runner = Runner(flattened(system, system.properties))
    names = [repr(pid) for pid in (*system.pids, *system.shared)]
    trace = renamed(trace, by_position([lane.name for lane in trace.lanes], names))
    tracer = Tracer(runner, begun(runner, trace))
    messages = {m.id: m for m in trace.messages}
    events: list[Event] = []
    loop = trace.loop
    for number, event in enumerate(trace.events):
        if number == trace.loop:
            loop = len(events)
        taken = [messages[i] for i in event.consumed if i in messages]
        contents = [(m.sender, m.type, m.fields) for m in taken]
        step = Step(event.lane, event.label, event.kind, contents, event.choices)
        chosen = _likest(runner, event, list(_fitting(runner, tracer, tracer.state, step)))
        if chosen is not None:
            events.append(tracer.step(chosen))
            if chosen.failure:
                break
    lasso = Lasso(tracer, events, loop)
    same = [p for p in system.properties if p.name == trace.property]
    if loop is not None and not comes_back(lasso, system, same or system.properties):
        return lasso._replace(loop=None)
    return lasso


def _likest(runner: Runner, event: Event, fitting: Sequence[Transition]) -> Transition | None:
    """The transition for an event. Two crashes may look equal and belong to different faults: budgets tell them apart."""
    if len(fitting) > 1 and event.kind == "crash":
        for transition in fitting:
            there = snapshot(runner, transition.state, {})
            if (there.status, there.budgets) == (event.state.status, event.state.budgets):
                return transition
    return fitting[0] if fitting else None


def _path(runner: Runner, tracer: Tracer, steps: Sequence[Step]) -> list[Transition]:
    """The transitions for the steps. Two crashes may look equal and belong to different faults: one of them fits."""
    path: list[Transition] = []
    choices = [_fitting(runner, tracer, tracer.state, steps[0])] if steps else []
    furthest = 0
    while len(path) < len(steps):
        transition = next(choices[-1], None)
        if transition is None:
            choices.pop()
            if not choices:
                step = steps[furthest]
                raise TraceError(
                    f"step {furthest + 1} ({step.lane}: {step.label}) is not possible in {runner.system.name}",
                    hint="this run does not belong to this model: please report this as a bug of Plait",
                )
            path.pop()
            continue
        path.append(transition)
        if len(path) < len(steps):
            furthest = max(furthest, len(path))
            choices.append(_fitting(runner, tracer, transition.state, steps[len(path)]))
    return path


def _fitting(runner: Runner, tracer: Tracer, state: Sequence[int], step: Step) -> Iterator[Transition]:
    return (t for t in runner.engine.successors(state) if _fits(tracer, t, step))


def _fits(tracer: Tracer, transition: Transition, step: Step) -> bool:
    lane = tracer.lane(transition)
    if (transition.kind, lane, tracer.label(transition)) != (step.kind, step.lane, step.label):
        return False
    decode = tracer.runner.tabulation.codec.decode
    consumed = sorted(exact(list(tracer.message(content, sender))) for _, sender, content in transition.consumed)
    choices = [to_data(decode(choice)) for choice in transition.choices]
    if step.kind == "crash":  # a crash does not choose the messages that it drops
        return True
    return consumed == sorted(exact(list(m)) for m in step.consumed) and exact(choices) == exact(step.choices)


def _confirmed(tracer: Tracer, events: list[Event], name: str | None) -> str | None:
    """What the last state shows, as text. Raise a TraceError if it does not decide the property."""
    runner = tracer.runner
    if name is None:
        return None
    if name in BUILT_IN:
        failure = failure_of(tracer)
        if failure is None:
            raise TraceError(
                f"{name} is not violated at the end of the run", hint="please report this as a bug of Plait"
            )
        return failure.message
    number, prop = next((i, p) for i, p in enumerate(runner.system.properties) if p.name == name)
    if runner.holds(number, tracer.state) != (prop.kind == "reachable"):
        raise TraceError(
            f"the last state of the run does not decide {name}", hint="please report this as a bug of Plait"
        )
    truth = "true" if prop.kind == "reachable" else f"false{for_whom(violators(tracer, prop))}"
    return f"{name} is {truth} in the last state"
