"""Rounds and the checker together: search the sequential program, and show what it finds on the protocol itself."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from plait.kernel.errors import ModelError
from plait.kernel.trace import Trace
from plait.kernel.verdict import PropertyResult, Reduction, Status, Verdict
from plait.model.system import System

if TYPE_CHECKING:
    from plait.rounds.sequential import Program

PHASES = 3
"""So many phases, unless the user says otherwise."""
WATCHED = 100_000
"""So many asynchronous states are looked at for the conditions, unless the user says otherwise."""
AUDITED = 1_000_000
"""So many states of the sequential program, where these were not enough."""
WALKS = 2_000
"""So many random walks, to find a run to a step that the audit suspects."""


def selected(system: System, names: Sequence[str] | None) -> System:
    """The System with some of its properties."""
    if names is None:
        return system
    chosen = copy.copy(system)
    chosen.properties = [p for p in system.properties if p.name in names]
    return chosen


def check_rounds(
    system: System,
    *,
    phases: int = PHASES,
    assume: str = "none",
    properties: Sequence[str] | None = None,
    watch: int = WATCHED,
    raw: bool = False,
    **options: Any,
) -> Verdict:
    """The verdict on a System by way of its sequential program; each violation is a run of the System itself."""
    from plait.check.api import check
    from plait.check.explain.execute import execute, tidied
    from plait.rounds.protocol_run import marked, protocol_steps
    from plait.rounds.sequential import program_of

    system = selected(system, properties)
    program = program_of(system, phases=phases, assume=assume)
    verdict = check(program.make(), raw=raw, **options)

    def real(trace: Trace | None) -> Trace | None:
        """The same run, of the protocol: executed there, so that nothing else is ever shown."""
        if trace is None:
            return None
        steps, note = protocol_steps(trace), None
        if program.assumed.free and not raw:  # else what is left out is taken to be delivered
            steps, note = tidied(system, steps, trace.property)
        found = marked(system, execute(system, steps, trace.property), steps)
        return msgspec.structs.replace(found, tidied=note)

    whole = program.assumed.free and not program.beyond
    """Whether the program has all behaviours of the protocol: nothing may be said of what was left out."""
    results = [_result(result, real(result.trace), whole, phases) for result in verdict.properties]
    told, undecided = "", None
    claims = (r.trace is None and r.status in ("holds", "violated") for r in results)
    claimed = verdict.status == "holds" or any(claims)
    if claimed and not verdict.bound:
        # The program was searched to its end, so that an audit of it ends, too.
        decided = conditions(system, max_states=watch, phases=phases, audited=None)
        told, undecided = _conditions(decided)
        try:
            _refused(system, decided)
            _numbered(program, options)
        except ModelError as error:
            if not any(r.trace is not None and r.status == "violated" for r in results):
                raise
            undecided = error.message  # what was found is a violation all the same
    if undecided:
        note = "not known: the program may not have all behaviours"
        results = [
            msgspec.structs.replace(r, status="inconclusive", note=note) if r.trace is None else r for r in results
        ]
    first = min((r for r in results if r.status == "violated"), key=lambda r: len(r.trace or ()), default=None)
    status: Status = "violated" if first else verdict.status
    if not first and any(r.status == "inconclusive" for r in results):
        status = "inconclusive"
    bound = None if whole else _bound(program)
    if status != "holds":
        bound = "an undecided condition" if undecided else _plural(phases)
    return msgspec.structs.replace(
        verdict,
        status=status,
        properties=results,
        property=first.name if first else None,
        message=undecided if undecided and not first else _message(first, verdict),
        trace=first.trace if first else None,
        bound=verdict.bound or (None if first else bound),
        warnings=_never(program, verdict, whole),
        statistics=msgspec.structs.replace(
            verdict.statistics, reductions=[Reduction("rounds", True, _told(program) + told)]
        ),
    )


def _result(result: PropertyResult, trace: Trace | None, whole: bool, phases: int) -> PropertyResult:
    note, status = result.note, result.status
    if trace is not None:
        steps = "1 step" if len(trace) == 1 else f"{len(trace):,} steps"
        note = f"an example after {steps}" if result.kind == "reachable" else f"after {steps}"
    elif result.kind == "reachable" and status == "violated" and not whole:
        status, note = "inconclusive", f"no example in {_plural(phases)}"
    return msgspec.structs.replace(result, trace=trace, note=note, status=status)


def _message(first: PropertyResult | None, verdict: Verdict) -> str | None:
    if first is None:
        return verdict.message if verdict.status == "inconclusive" else None
    return f"{first.name} is violated" + (f": {first.note}" if first.trace is None and first.note else "")


def _bound(program: Program) -> str:
    """What the verdict is about, and nothing more."""
    n = len(program.system.classes)
    said = f"of {_plural(program.phases)}, {n} processes"
    if program.assumed.free:
        return f"{said}, any message may be lost"
    return f"{said}, assumption {program.assumed}, for properties whose violation persists to the end of a round"


def _told(program: Program) -> str:
    end = "" if program.beyond else "; no message of a later phase is made"
    return f"the sequential program of {_plural(program.phases)}, assumption {program.assumed}{end}"


def _plural(phases: int) -> str:
    return f"{phases} phase{'s' if phases > 1 else ''}"


def _never(program: Program, verdict: Verdict, whole: bool) -> list[str]:
    """Handlers that did not run, as the checker would say of the protocol itself."""
    if verdict.status == "violated" or verdict.bound:
        return []
    where = "" if whole else f" in {_plural(program.phases)}"
    return [
        f"{cls.__name__}.{handler.name} never ran{where}"
        for cls, handler in program.system.handlers()
        if (cls.__name__, handler.name) not in program.fired and handler.kind != "recovery"
    ]


def _refused(system: System, decided: Verdict) -> None:
    """Refuse a protocol that is not round-based."""
    if decided.status == "violated":
        raise ModelError(
            decided.message or "not round-based",
            hint=f"rounds do not have all its behaviours: plait rounds tags {system.target or system.name} shows a run",
        )


def _conditions(verdict: Verdict) -> tuple[str, str | None]:
    """What the conditions add to a verdict, and why it shows nothing."""
    if verdict.status == "violated":
        return "; it is not round-based", None
    if verdict.status == "holds":
        return "; it is round-based" + (f" ({verdict.bound})" if verdict.bound else ""), None
    names = ", ".join(p.name for p in verdict.properties if p.status == "inconclusive")
    undecided = f"whether it is round-based is not decided ({names}): plait rounds tags says more"
    return f"; {undecided}", undecided


def _numbered(program: Program, options: dict[str, Any]) -> None:
    """Refuse a protocol in which it matters who creates a process first: the program has one order of that only."""
    from plait.check.api import check
    from plait.rounds.sequential import program_of

    several = program.exchange.several
    if several is None:
        return
    compared = program_of(program.system, phases=program.phases, assume=program.assumed, compared=True)
    cut = "not all their orders were compared" if check(compared.make(), **options).bound else None
    if difference := compared.exchange.difference or cut:
        raise ModelError(
            f"{program.system.name}: {several}, and that may matter: {difference}",
            hint="rounds do not have all its behaviours: check it without --rounds, or let one process create them",
        )


def conditions(
    system: System,
    *,
    max_states: int = WATCHED,
    phases: int = PHASES,
    audited: int | None = AUDITED,
    **options: Any,
) -> Verdict:
    """Decide the conditions of paper 002, sections 4.2 and 5.1: each is a property, with a run that breaks it.

    They are watched on the steps of the asynchronous protocol. Where that has too many states, so many phases of its
    sequential program are audited instead.
    """
    from plait.check.api import check
    from plait.rounds.calendar import CONDITIONS, NAMES
    from plait.rounds.conditions.declarations import proved
    from plait.rounds.conditions.instrumentation import watched

    bare = selected(system, [])
    ghosts = watched(bare)
    verdict = check(ghosts, max_states=max_states, keep_going=True, **options)
    found = _runs(verdict)
    states = f"{verdict.statistics.states:,} asynchronous states"
    reasons = (dict.fromkeys(CONDITIONS, f"on all {states}") if verdict.bound is None else {}) | proved(system)
    doubts: dict[int, str] = {}
    if verdict.status == "inconclusive" and len(reasons) < len(CONDITIONS):
        reasons, doubts, shown = _audited(bare, ghosts, phases, reasons, {"max_states": audited, **options})
        if not shown and doubts:  # is there a run? Perhaps one comes along.
            shown = _runs(check(ghosts, search="random", walks=WALKS, keep_going=True, **options))
        found |= shown
    results = []
    for number, said in CONDITIONS.items():
        status: Status = "violated" if number in found else "holds" if number in reasons else "inconclusive"
        how = reasons.get(number) or doubts.get(number) or f"not broken on {states}, and not proven"
        note, trace = f"{said}: {how}", None
        if number in found:
            note, trace = _broken(bare, found[number], number)
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
        bound=None if broken else verdict.bound if undecided else _phases(reasons),
        warnings=[],
    )


def _undecided(verdict: Verdict) -> str | None:
    if any(result.name == "assertions" for result in verdict.properties):
        return "an assertion of the protocol itself fails, and what comes after that is not seen: plait check shows it"
    return verdict.message


def _runs(verdict: Verdict) -> dict[int, Trace]:
    """Runs of the protocol with its ghosts that break conditions."""
    return {n: r.trace for n, r in enumerate(verdict.properties, 1) if r.trace is not None and r.name != "assertions"}


def _phases(reasons: dict[int, str]) -> str | None:
    return next((r.partition(", by")[0] for r in reasons.values() if ", by the audit" in r), None)


def _broken(system: System, watched: Trace, number: int) -> tuple[str, Trace]:
    """What a step broke, and the run to it on the protocol without ghosts."""
    from plait.check.explain.execute import execute
    from plait.rounds.protocol_run import steps_of

    note = dict(_breaches(watched))[number]
    trace = execute(system, steps_of(watched))
    return note, msgspec.structs.replace(trace, property=f"condition {number}", explanation=note)


def _breaches(watched: Trace) -> list[tuple[int, str]]:
    """What a run with ghosts broke: the conditions, in words."""
    state = watched.events[-1].state if watched.events else watched.initial
    ghosts = [fields["rounds_watch"] for fields in state.fields.values() if fields]
    return [tuple(entry["#tup"]) for ghost in ghosts for entry in ghost["broken"]["#tup"]]


def _audited(
    system: System, ghosts: System, phases: int, reasons: dict[int, str], options: dict[str, Any]
) -> tuple[dict[int, str], dict[int, str], dict[int, Trace]]:
    """The conditions that the sequential program proves, what stands against the others, and runs that break some."""
    from plait.check.api import check
    from plait.check.explain.execute import execute
    from plait.rounds.calendar import CONDITIONS
    from plait.rounds.protocol_run import protocol_steps
    from plait.rounds.sequential import program_of

    program = program_of(system, phases=phases, audited=True)
    verdict = check(program.make(), **options)
    if verdict.trace is not None:  # the step at its end breaks a condition, or an assertion of the user's
        run = execute(ghosts, protocol_steps(verdict.trace))
        return reasons, {}, {number: run for number, _ in _breaches(run)}
    if verdict.status != "holds" or program.audit is None:
        return reasons, {}, {}
    doubts = {s.condition: f"it is not known whether a run gets to {s.what}" for s in program.audit.suspicions()}
    shown = f"for {_plural(program.phases)}, by the audit of the sequential program"
    return {n: reasons.get(n, shown) for n in CONDITIONS if n in reasons or n not in doubts}, doubts, {}
