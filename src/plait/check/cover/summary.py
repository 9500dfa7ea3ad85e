"""Adds coverage to a verdict: the searched states, handlers that never ran and why, properties that hold vacuously."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from plait.check.cover.recorder import Place, Premise
from plait.check.runner import Runner
from plait.check.tabulate.tabulation import Tabulation
from plait.kernel.coverage import Exit, Untested
from plait.kernel.verdict import Verdict
from plait.model.process import Handler, Process

EngineExit = tuple[int | None, int | None, int]
"""Process, handler, and how many states outside of the bound its steps led to."""


def with_coverage(
    runner: Runner, verdict: Verdict, premises: Sequence[Premise], exits: Sequence[EngineExit] = ()
) -> Verdict:
    """The verdict with the coverage that the runner recorded. The premises were evaluated in all states.

    `exits` are the steps that led out of the bound of the search.
    """
    recorder = runner.tabulation.recorder
    assert recorder is not None
    untested = [*_properties(runner, verdict), *_formulas(runner, verdict, premises)]
    coverage = recorder.coverage(_over(verdict), never_ran(runner.tabulation), runner.tabulation.sent, untested)
    coverage = msgspec.structs.replace(coverage, exits=list(_exits(runner, exits)))
    warnings = list(verdict.warnings)
    if _complete(verdict):
        warnings += [f"{u.property} holds vacuously: {u.text} {u.reason}" for u in untested if u.vacuous]
    return msgspec.structs.replace(verdict, coverage=coverage, warnings=warnings)


def _exits(runner: Runner, exits: Sequence[EngineExit]) -> Iterator[Exit]:
    """Where the search left its bound, by role and handler, the most frequent first."""
    counts: Counter[tuple[str | None, str | None]] = Counter()
    for process, handler, states in exits:
        cls = None if process is None else runner.system.classes[process]
        role = None if cls is None else cls.__name__
        counts[role, None if cls is None or handler is None else cls.__plait_handlers__[handler].name] += states
    for (role, name), states in counts.most_common():
        yield Exit(role, name, states)


def never_ran(tabulation: Tabulation) -> dict[Place, str]:
    """The handlers that never ran, with the reason. A front end may mark handlers that need not run."""
    never = [(c, h) for c, h in tabulation.never_run() if h.name not in getattr(c, "__plait_optional__", ())]
    return {(cls, handler.name): _why(tabulation, cls, handler) for cls, handler in never}


def _why(tabulation: Tabulation, cls: type[Process], handler: Handler) -> str:
    if handler.messages and not tabulation.was_sent(handler):
        return f"no process sends {handler.message_names}"
    if handler.messages and not tabulation.was_sent(handler, cls):
        return f"no {handler.message_names} is sent to {_a(cls)}"
    if handler.accept is not None and handler.where is None:
        return "it never accepted a set of messages"
    if handler.kind in ("action", "message"):
        return "its guard was never true" if handler.where else "it was never enabled"
    if handler.kind == "init":
        return "@init runs before the first step, not for a spawned process"
    return "no process recovered from a crash"


def _a(cls: type[Process]) -> str:
    return f"{'an' if cls.__name__[:1] in 'AEIOU' else 'a'} {cls.__name__}"


def _complete(verdict: Verdict) -> bool:
    return _searched_all(verdict) and verdict.status != "violated"


def _searched_all(verdict: Verdict) -> bool:
    """Whether no limit was reached. A search that has shown nothing was complete, too."""
    return verdict.limit is None


def _over(verdict: Verdict) -> str:
    """The searched states, as text."""
    s = verdict.statistics
    applied = ", ".join(r.name for r in s.reductions if r.applied)
    states = f"{s.states:,} states" if s.states != 1 else "1 state"
    if s.search == "stateless":
        states = f"{s.states:,} visits to states"
    if s.walks:
        return f"the {states} of {s.walks:,} random walks"
    if applied:
        states += f" of the reduced space ({applied})"
    if not _searched_all(verdict):
        return f"the {states} that were searched; the search was not complete"
    if verdict.status == "violated" and any(p.status == "inconclusive" for p in verdict.properties):
        return f"the {states} that were searched up to the violation"
    if s.cut_states:
        return f"all {states} within the bound"
    return f"all {states}"


def _properties(runner: Runner, verdict: Verdict) -> Iterator[Untested]:
    """The parts of properties that hold and that no state has tested."""
    assert runner.tabulation.recorder is not None
    status = {p.name: p.status for p in verdict.properties}
    for number, prop in enumerate(runner.system.properties):
        if prop.kind in ("always", "final") and status.get(prop.name) != "violated":
            yield from runner.tabulation.recorder.untested(number)


def _formulas(runner: Runner, verdict: Verdict, premises: Sequence[Premise]) -> Iterator[Untested]:
    assert runner.tabulation.recorder is not None
    status = {p.name: p.status for p in verdict.properties}
    numbers = {p.predicate: i for i, p in enumerate(runner.system.properties) if p.kind == "predicate"}
    for premise in premises:
        number = numbers[premise.atom.predicate]
        if status.get(premise.property) == "violated":
            continue
        if premise.initially and not any(runner.holds(number, state) for state, _ in runner.initial):
            where = "the initial state" if len(runner.initial) == 1 else "all initial states"
            yield Untested(premise.property, str(premise.atom), f"is false in {where}", True)
        elif not runner.tabulation.recorder.was_true(number):
            yield Untested(premise.property, str(premise.atom), "was never true", True)
