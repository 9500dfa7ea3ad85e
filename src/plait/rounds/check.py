"""Checking a protocol by rounds: search its sequential program, and show what it finds on the protocol itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Unpack

import msgspec

from plait.check.api import check
from plait.check.explain.execute import execute, tidied
from plait.check.explain.verdicts import undecided_by, vacuous
from plait.check.options import Changes, Options, options_from
from plait.check.progress import Progress
from plait.kernel.deadline import Deadline, OutOfTimeError
from plait.kernel.errors import Argument, ModelError
from plait.kernel.step import Step
from plait.kernel.trace import Trace
from plait.kernel.verdict import PhaseStructure, PropertyResult, Reduction, Status, Verdict
from plait.model.system import System, selected, with_properties
from plait.rounds.between import applies, search_between
from plait.rounds.conditions.decision import WATCHED, conditions
from plait.rounds.protocol_run import protocol_steps, with_marks
from plait.rounds.sequential import PHASES, Program, phases_text, program_of
from plait.rounds.text.structure import phase_structure


def check_rounds(
    system: System,
    options: Options | None = None,
    *,
    phases: int = PHASES,
    assume: str = "none",
    watch: int = WATCHED,
    progress: Callable[[Progress], None] | None = None,
    **changes: Unpack[Changes],
) -> Verdict:
    """Check a System by its sequential program; each counterexample is a run of the System itself.

    `phases` bounds the program, `assume` names what the network delivers, `watch` bounds the asynchronous states that are
    searched to decide whether the protocol is round-based. The other options are those of `plait.check`; the timeout is
    for all of it.
    """
    options = options_from(changes, options, "check_rounds()")
    clock = Deadline(options.timeout)
    system = with_properties(system, selected(system, options.properties))
    wanted, options = options, dataclasses.replace(options, properties=None, explore=True)
    between, sequential = None, None
    try:
        with clock.enforced():
            program = program_of(system, phases=phases, assume=assume)
            whole_rounds = applies(program, options)
            sequential = None if whole_rounds else program.make()
    except OutOfTimeError:
        return Verdict.unfinished(
            system.target or system.name,
            "timeout",
            "while the sequential program was made",
            search=options.search,
            seconds=clock.elapsed,
            properties=[
                PropertyResult(p.name, p.kind, "inconclusive", "not checked (timeout)") for p in system.properties
            ],
        )
    if whole_rounds:
        between = search_between(program, dataclasses.replace(options.completed(), timeout=clock.left), progress)
    if between is None:
        sequential = sequential or program.make()
        verdict = check(sequential, options, progress=progress, timeout=clock.left)
        runs = {r.name: protocol_steps(sequential, r.trace) for r in verdict.properties if r.trace is not None}
    else:
        verdict, runs = between.verdict, between.runs
    whole = program.assumed.free and not program.beyond
    """Whether the program has all behaviours of the protocol. If not, nothing can be said of what was left out."""
    results = [
        _result(result, _on_protocol(program, runs.get(result.name), result.name, clock, options.raw), whole, phases)
        for result in verdict.properties
    ]
    told, undecided = "", None
    claims = (r.trace is None and r.status in ("holds", "violated") for r in results)
    claimed = verdict.status == "holds" or any(claims)
    if claimed and not verdict.bound:
        try:
            if between is not None and between.round_based:
                how = "" if whole else f" (for {phases_text(phases)}, by the audit of the sequential program)"
                told = f"; it is round-based{how}"
            else:  # the program was searched to its end, so an audit of it ends, too
                decided = conditions(system, max_states=watch, phases=phases, audited=None, timeout=clock.left)
                told, undecided = _told_of_conditions(decided)
                _require_round_based(system, decided)
            if between is None or between.numbers_matter:
                _require_one_creation_order(program, dataclasses.replace(options, timeout=clock.left))
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
    nothing = None
    if not first and not verdict.bound and not undecided and not wanted.explore:
        ran = [(c, h) for c, h in program.system.handlers() if (c.__name__, h.name) in program.ran]
        nothing = vacuous(results, ran)
        results = [undecided_by(nothing, r) for r in results]
    if not first and (nothing or any(r.status == "inconclusive" for r in results)):
        status = "inconclusive"
    bound = None if whole else _bound(program)
    if status != "holds":
        bound = "an undecided condition" if undecided else nothing or phases_text(phases)
    return msgspec.structs.replace(
        verdict,
        status=status,
        properties=results,
        property=first.name if first else None,
        message=undecided if undecided and not first else _message(first, verdict),
        trace=first.trace if first else None,
        bound=verdict.bound or (None if first else bound),
        warnings=_never_ran(program, verdict, whole),
        phases=_drawn(system),
        statistics=msgspec.structs.replace(
            verdict.statistics, reductions=[Reduction("rounds", True, _told(program) + told)]
        ),
    )


def _on_protocol(program: Program, steps: list[Step] | None, name: str, clock: Deadline, raw: bool) -> Trace | None:
    """A run of the program that decides a property, executed on the protocol, so that only real runs are shown."""
    if steps is None:
        return None
    note = None
    if program.assumed.free and not raw:  # otherwise a message that no step takes must be delivered
        with clock.optional():
            steps, note = tidied(program.system, steps, name)
    found = with_marks(program.system, execute(program.system, steps, name), steps)
    return msgspec.structs.replace(found, tidied=note)


def _result(result: PropertyResult, trace: Trace | None, whole: bool, phases: int) -> PropertyResult:
    note, status = result.note, result.status
    if trace is not None:
        steps = "1 step" if len(trace) == 1 else f"{len(trace):,} steps"
        note = f"an example after {steps}" if result.kind == "reachable" else f"after {steps}"
    elif result.kind == "reachable" and status == "violated" and not whole:
        status, note = "inconclusive", f"no example in {phases_text(phases)}"
    return msgspec.structs.replace(result, trace=trace, note=note, status=status)


def _message(first: PropertyResult | None, verdict: Verdict) -> str | None:
    if first is None:
        return verdict.message if verdict.status == "inconclusive" else None
    return f"{first.name} is violated" + (f": {first.note}" if first.trace is None and first.note else "")


def _bound(program: Program) -> str:
    """What the verdict is about, and nothing more."""
    n = len(program.system.classes)
    said = f"of {phases_text(program.phases)}, {n} processes"
    if program.assumed.free:
        return f"{said}, any message may be lost"
    return f"{said}, assumption {program.assumed}, for properties whose violation persists to the end of a round"


def _drawn(system: System) -> PhaseStructure | None:
    """The phases for the report; none if the source of the model cannot be found."""
    try:
        return phase_structure(system)
    except ModelError:
        return None


def _told(program: Program) -> str:
    end = "" if program.beyond else "; no message of a later phase is made"
    return f"the sequential program of {phases_text(program.phases)}, assumption {program.assumed}{end}"


def _told_of_conditions(decided: Verdict) -> tuple[str, str | None]:
    """What the conditions add to a verdict; and if they are not decided, why the verdict shows nothing."""
    if decided.status == "violated":
        return "; it is not round-based", None
    if decided.status == "holds":
        return "; it is round-based" + (f" ({decided.bound})" if decided.bound else ""), None
    names = ", ".join(p.name for p in decided.properties if p.status == "inconclusive")
    undecided = f"it is not decided whether the protocol is round-based ({names}): plait rounds tags shows the details"
    return f"; {undecided}", undecided


def _never_ran(program: Program, verdict: Verdict, whole: bool) -> list[str]:
    """Handlers that did not run, as the checker would say of the protocol itself."""
    if verdict.status == "violated" or verdict.bound:
        return []
    where = "" if whole else f" in {phases_text(program.phases)}"
    return [
        f"{cls.__name__}.{handler.name} never ran{where}"
        for cls, handler in program.system.handlers()
        if (cls.__name__, handler.name) not in program.ran and handler.kind != "recovery"
    ]


def _require_round_based(system: System, decided: Verdict) -> None:
    """Refuse a protocol that is not round-based."""
    if decided.status == "violated":
        raise ModelError(
            decided.message or "not round-based",
            hint=f"plait rounds tags {system.target or system.name} shows a run that breaks it; or check without rounds",
        )


def _require_one_creation_order(program: Program, options: Options) -> None:
    """Refuse a protocol in which the order of creating processes matters: the program has only one order."""
    several = program.creation_order.several
    if several is None:
        return
    compared = program_of(program.system, phases=program.phases, assume=program.assumed, compared=True)
    cut = "not all their orders were compared" if check(compared.make(), options).bound else None
    if difference := compared.creation_order.difference or cut:
        raise ModelError(
            f"{program.system.name}: {several}, and their order may matter: {difference}",
            hint=(
                "rounds do not have all its behaviours: check it without ",
                Argument("rounds"),
                ", or let one process create them",
            ),
        )
