"""Deciding whether a protocol is round-based: each condition becomes a property, with a run that breaks it."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from plait.check.api import check
from plait.check.explain.execute import execute, execution
from plait.check.options import Options
from plait.kernel.deadline import Deadline
from plait.kernel.step import Step, steps_of
from plait.kernel.trace import Trace
from plait.kernel.verdict import PropertyResult, Status, Verdict
from plait.model.system import System, with_properties
from plait.rounds.calendar import CONDITIONS, NAMES
from plait.rounds.conditions.declarations import proved
from plait.rounds.conditions.instrumentation import Record, instrumented
from plait.rounds.protocol_run import protocol_steps
from plait.rounds.sequential import PHASES, phases_text, program_of

WATCHED = 100_000
"""How many asynchronous states are searched for the conditions, by default."""
AUDITED = 1_000_000
"""How many states of the sequential program are searched if these were not enough."""
WALKS = 2_000
"""How many random walks look for a run to a step that the audit suspects."""


class Evidence(NamedTuple):
    """What is known of the conditions, each by its number."""

    reasons: dict[int, str]
    """Why a condition holds."""
    doubts: dict[int, str]
    """Why a condition is not known to hold."""
    broken: dict[int, list[Step]]
    """The steps of a run that breaks a condition."""


def conditions(
    system: System,
    *,
    max_states: int = WATCHED,
    phases: int = PHASES,
    audited: int | None = AUDITED,
    workers: int | None = None,
    timeout: float | None = None,
) -> Verdict:
    """Decide the conditions of Sequentialization, sections 4.2 and 5.1, for a System.

    The steps of the asynchronous protocol are watched. If it has more than `max_states` states, its sequential program of
    `phases` phases is audited instead, up to `audited` states. `workers` is the number of threads that search, `timeout` the
    seconds for all of it.
    """
    clock = Deadline(timeout)
    bare = with_properties(system, [])
    ghosts = instrumented(bare)
    verdict = check(ghosts, max_states=max_states, keep_going=True, workers=workers, timeout=clock.left)
    states = f"{verdict.statistics.states:,} asynchronous states"
    reasons = (dict.fromkeys(CONDITIONS, f"on all {states}") if verdict.bound is None else {}) | proved(system)
    evidence = Evidence(reasons, {}, _breaking_runs(verdict))
    if verdict.status == "inconclusive" and len(reasons) < len(CONDITIONS):
        known = evidence.broken
        limits = Options(max_states=audited, workers=workers, timeout=clock.left)
        evidence = _audit(bare, ghosts, phases, reasons, limits)
        if not evidence.broken and evidence.doubts:  # a random walk may show that the suspected step is real
            walked = check(ghosts, search="random", walks=WALKS, keep_going=True, workers=workers, timeout=clock.left)
            evidence = evidence._replace(broken=_breaking_runs(walked))
        evidence = evidence._replace(broken=known | evidence.broken)
    results = []
    for number, said in CONDITIONS.items():
        status: Status = (
            "violated" if number in evidence.broken else "holds" if number in evidence.reasons else "inconclusive"
        )
        how = evidence.reasons.get(number) or evidence.doubts.get(number) or f"not broken on {states}, and not proven"
        note, trace = f"{said}: {how}", None
        if number in evidence.broken:
            note, trace = _counterexample(bare, ghosts, evidence.broken[number], number)
        results.append(PropertyResult(f"condition {number}", NAMES[number], status, note, trace))
    broken = min((r for r in results if r.trace is not None), key=lambda r: len(r.trace or ()), default=None)
    undecided = any(r.status == "inconclusive" for r in results)
    return msgspec.structs.replace(
        verdict,
        properties=results,
        status="violated" if broken else "inconclusive" if undecided else "holds",
        property=broken.name if broken else None,
        message=f"not round-based: {broken.note}" if broken else _undecided(verdict) if undecided else None,
        trace=broken.trace if broken else None,
        bound=None if broken else verdict.bound if undecided else _audited_phases(evidence.reasons),
        warnings=[],
    )


def _undecided(verdict: Verdict) -> str | None:
    if any(result.name == "assertions" for result in verdict.properties):
        return "an assertion of the protocol fails, and later steps are not searched: plait check shows the run"
    return verdict.message


def _breaking_runs(verdict: Verdict) -> dict[int, list[Step]]:
    """Runs of the instrumented protocol that break conditions."""
    return {
        number: steps_of(result.trace)
        for number, result in enumerate(verdict.properties, 1)
        if result.trace is not None and result.name != "assertions"
    }


def _audited_phases(reasons: dict[int, str]) -> str | None:
    return next((r.partition(", by")[0] for r in reasons.values() if ", by the audit" in r), None)


def _counterexample(system: System, ghosts: System, steps: list[Step], number: int) -> tuple[str, Trace]:
    """What the last step broke, and the run to it on the protocol itself."""
    note = dict(_breaches(ghosts, steps))[number]
    trace = execute(system, steps)
    return note, msgspec.structs.replace(trace, property=f"condition {number}", explanation=note)


def _breaches(ghosts: System, steps: list[Step]) -> list[tuple[int, str]]:
    """The conditions that a run of the instrumented protocol broke, and what broke them."""
    records = (fields.get("rounds_record") for fields in execution(ghosts, steps).fields())
    return [breach for record in records if isinstance(record, Record) for breach in record.broken]


def _audit(system: System, ghosts: System, phases: int, reasons: dict[int, str], options: Options) -> Evidence:
    """What the audit of the sequential program adds."""
    program = program_of(system, phases=phases, audited=True)
    sequential = program.make()
    verdict = check(sequential, options)
    if verdict.trace is not None:  # its last step breaks a condition, or fails an assertion of the user's
        run = protocol_steps(sequential, verdict.trace)
        return Evidence(reasons, {}, {number: run for number, _ in _breaches(ghosts, run)})
    if verdict.status != "holds" or program.audit is None:
        return Evidence(reasons, {}, {})
    doubts = {s.condition: f"it is not known whether a run gets to {s.what}" for s in program.audit.suspicions()}
    shown = f"for {phases_text(program.phases)}, by the audit of the sequential program"
    shown_by = {n: reasons.get(n, shown) for n in CONDITIONS if n in reasons or n not in doubts}
    return Evidence(shown_by, doubts, {})
