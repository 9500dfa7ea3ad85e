"""From a state that the search found to a Trace: rebuild the run, execute it, tidy it, and add the reasons."""

from __future__ import annotations

import msgspec

from plait._native import Failure, Finding
from plait.check.explain.lifting import confirm, lifted
from plait.check.explain.tidy import tidied
from plait.check.explain.tracing import Path, Tracer
from plait.check.explain.waiting import waiting
from plait.check.explain.why import violators, why, why_failed
from plait.check.runner import Runner
from plait.check.tabulate.codec import exception, kind_of
from plait.kernel.deadline import Deadline
from plait.kernel.trace import Event, Trace, Why, for_whom
from plait.model.properties import NO_EXCEPTIONS, Property


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

        def shows(path: Path) -> bool:
            ends = prop.kind != "final" or path.runner.is_terminal(path.state)
            return ends and path.runner.holds(number, path.state) == (prop.kind == "reachable")

        with clock.optional():
            tracer, events, note = tidied(tracer, events, shows, shorten=shorten)
    if runner.decomposition:
        confirm(tracer, prop)
    several = len(tracer.runner.initial) > 1
    where = "in the last state" if events else f"in {'an' if several else 'the'} initial state"
    false_for = violators(tracer, prop)
    explanation = {
        "always": f"{prop.name} is false{for_whom(false_for)} {where}",
        "final": f"{prop.name} is false{for_whom(false_for)} {where}, which is terminal",
        "reachable": f"{prop.name} is true {where}",
    }[prop.kind]
    reasons: Why | None = None
    with clock.optional():
        reasons = why(tracer, prop, number, events)
    found = tracer.trace(events, prop.name, explanation, tidied=note, why=reasons, violators=false_for)
    if not prop.wants_no_end:
        return found
    return msgspec.structs.replace(found, waiting=waiting(tracer.runner, tracer.state))


def failed(runner: Runner, name: str, finding: Finding, clock: Deadline, *, tidy: bool, shorten: bool) -> Trace:
    """The run to a violation of a built-in property: with the failing step, or to a state in which a property raises."""
    tracer, events = _executed(runner, finding)
    raising = tracer.runner.raising(tracer.state) if name == NO_EXCEPTIONS else None
    if raising is None:
        failing = tracer.runner.failing(tracer.state, name)
        if failing is None:
            raise RuntimeError(f"{name} is not violated after the run that should violate it")
        events.append(tracer.step(failing))
    wanted, note = kind_of(failure_of(tracer)), None
    if tidy:
        with clock.optional():
            tracer, events, note = tidied(tracer, events, lambda t: kind_of(failure_of(t)) == wanted, shorten=shorten)
    failure = failure_of(tracer)
    assert failure is not None
    reasons: Why | None = None
    with clock.optional():
        if raising is None:
            reasons = why_failed(tracer, events)
        else:
            number = raising[0]
            reasons = why(tracer, tracer.runner.system.properties[number], number, events)
    return tracer.trace(events, name, failure.message, tidied=note, why=reasons, exception=exception(failure))


def failure_of(path: Path) -> Failure | None:
    """The failure at the end of a run: of its last step, or of a property in its last state."""
    if path.taken and path.taken[-1].failure:
        return path.taken[-1].failure
    raising = path.runner.raising(path.state)
    return raising[1] if raising else None


def _executed(runner: Runner, finding: Finding) -> tuple[Tracer, list[Event]]:
    run = runner.engine.path(finding.fingerprint, finding.run)
    if run is None:
        raise RuntimeError("the run to a violation could not be rebuilt: two states share a fingerprint")
    start, transitions = run
    if runner.decomposition:
        return lifted(runner, start, transitions)
    tracer = Tracer(runner, start)
    return tracer, [tracer.step(transition) for transition in transitions]
