"""From a state that the search found to a Trace: rebuild the run, execute it, tidy it, and add the reasons."""

from __future__ import annotations

from plait._native import Finding
from plait.check.explain.lifting import confirm, lifted
from plait.check.explain.tidy import tidied
from plait.check.explain.tracing import Tracer
from plait.check.explain.why import why, why_failed
from plait.check.runner import Runner
from plait.kernel.deadline import Deadline
from plait.kernel.trace import Event, Trace, Why
from plait.model.properties import Property


def counterexample(
    runner: Runner, prop: Property, finding: Finding, clock: Deadline, *, tidy: bool, shorten: bool
) -> Trace:
    """The run to a state that decides a property: a violation, or an example. With `shorten`, steps may be left out.

    If the time is over, the run is shown as it was found, or without the reasons.
    """
    tracer, events = _executed(runner, finding)
    note = None
    number = [p.name for p in tracer.runner.system.properties].index(prop.name)
    if tidy:

        def shows(tracer: Tracer) -> bool:
            ends = prop.kind != "final" or tracer.runner.is_terminal(tracer.state)
            return ends and tracer.runner.holds(number, tracer.state) == (prop.kind == "reachable")

        with clock.optional():
            tracer, events, note = tidied(tracer, events, shows, shorten=shorten)
    if runner.decomposition:
        confirm(tracer, prop)
    where = "in the last state" if events else "in the initial state"
    explanation = {
        "always": f"{prop.name} is false {where}",
        "final": f"{prop.name} is false {where}, which is terminal",
        "reachable": f"{prop.name} is true {where}",
    }[prop.kind]
    reasons: Why | None = None
    with clock.optional():
        reasons = why(tracer, prop, number, events)
    return tracer.trace(events, prop.name, explanation, tidied=note, why=reasons)


def failed_assertion(runner: Runner, finding: Finding, clock: Deadline, *, tidy: bool, shorten: bool) -> Trace:
    """The run to a state in which a handler's assertion fails, with the failing step."""
    tracer, events = _executed(runner, finding)
    failing = tracer.runner.failing(tracer.state)
    if failing is None or failing.failure is None:
        raise RuntimeError("no assertion fails after the run that should end in one")
    events.append(tracer.step(failing))
    note = None
    if tidy:
        fails = lambda tracer: bool(tracer.taken and tracer.taken[-1].failure)  # noqa: E731
        with clock.optional():
            tracer, events, note = tidied(tracer, events, fails, shorten=shorten)
    reasons: Why | None = None
    with clock.optional():
        reasons = why_failed(tracer, events)
    return tracer.trace(events, "assertions", failing.failure.message, tidied=note, why=reasons)


def _executed(runner: Runner, finding: Finding) -> tuple[Tracer, list[Event]]:
    transitions = runner.engine.path(finding.fingerprint, finding.run)
    if transitions is None:
        raise RuntimeError("the run to a violation could not be rebuilt: two states share a fingerprint")
    if runner.decomposition:
        return lifted(runner, transitions)
    tracer = Tracer(runner)
    return tracer, [tracer.step(transition) for transition in transitions]
