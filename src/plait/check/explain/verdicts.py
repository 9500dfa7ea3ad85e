"""From the report of a search to a Verdict: statistics, the result of each property, traces and warnings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from plait._native import SearchReport
from plait.check.cover.summary import never_ran
from plait.check.explain.counterexample import counterexample, failed
from plait.check.growth import Growth
from plait.check.live.search import Findings, assumed
from plait.check.options import Options
from plait.check.reduce.plan import Plan
from plait.check.runner import Runner
from plait.kernel.deadline import Deadline
from plait.kernel.places import user_line
from plait.kernel.trace import Trace
from plait.kernel.verdict import VACUOUS, PropertyResult, Statistics, Status, Verdict
from plait.model.process import Handler, Process
from plait.model.properties import BUILT_IN, Property
from plait.model.refinement import Refinement
from plait.model.system import System
from plait.model.temporal import Temporal

_RAISED = "it raised an exception"
_BOUND_RAISED = "the bound raised an exception"


def violated(system: System, report: SearchReport) -> bool:
    """Whether a search has found a violation of a property, also of a built-in one."""
    found = (finding.number for finding in report.findings)
    return any(n >= len(system.properties) or system.properties[n].kind != "reachable" for n in found)


def judge(
    runner: Runner,
    options: Options,
    reductions: Plan,
    temporal: Sequence[Temporal],
    refinements: Sequence[Refinement],
    report: SearchReport,
    runs: Findings | None,
    clock: Deadline,
) -> Verdict:
    """The verdict of a search, from the report of the engine and the fair runs that were found.

    In the runner's System, temporal properties are flattened. `temporal` are the original ones.
    """
    search, keep_going = options.search, options.keep_going
    system = runner.system
    counters = report.counters
    reports = [report] if runs is None or runs.report is report else [report, runs.report]
    bound = reports[-1].bound
    statistics = Statistics(
        states=counters.states,
        cut_states=max(r.counters.cut_states for r in reports),
        transitions=counters.transitions,
        terminal_states=counters.terminal_states,
        depth=counters.depth,
        seconds=sum(r.counters.seconds for r in reports),
        python_calls=counters.python_calls,
        native_answers=counters.native_answers,
        native_compared=counters.native_compared,
        local_states=counters.local_states,
        local_bytes=counters.local_bytes,
        search=search,
        workers=options.workers or 1,
        collision_probability=_collision(
            0 if search == "stateless" else counters.states + counters.cut_states,
            runner.engine.images,
            counters.property_keys,
            counters.fingerprint_bits,
            counters.transitions,
        ),
        memory_bytes=max(r.counters.memory_bytes for r in reports),
        table_bytes=counters.table_bytes,
        walks=counters.walks,
        graph_states=runs.report.counters.states if runs else 0,
        stack_operations=counters.stack_operations,
        stack_operations_saved=counters.stack_operations_saved,
        reductions=reductions.outcome(report.given_up, runner.engine.symmetry_sampled),
        all_states=report.bound is None and bound is not None,
    )
    found = {finding.number: (runner, finding) for finding in report.findings}
    if runs is not None and runs.report is not report:  # in runs, predicates may raise
        found = {finding.number: (runs.runner, finding) for finding in runs.report.findings} | found
    stopped = any(violated(system, r) for r in reports) and not keep_going
    tidy, shorten = not options.raw, search != "bfs"  # bfs finds shortest runs
    raised = runner.tabulation.raised | (runs.runner.tabulation.raised if runs else set())
    left_out = _BOUND_RAISED if system.within is not None and system.within.name in raised else None
    results = []
    for number, prop in enumerate(system.properties):
        if prop.kind in ("predicate", "initially", "within"):
            continue
        trace = None
        if number in found:
            on, finding = found[number]
            trace = counterexample(on, prop, finding, clock, tidy=tidy, shorten=shorten)
        undecided = _RAISED if prop.name in raised else left_out or report.bound
        results.append(_result(prop, trace, undecided, stopped, statistics))
    for number, name in enumerate(BUILT_IN, len(system.properties)):
        if number in found:
            on, finding = found[number]
            trace = failed(on, name, finding, clock, tidy=tidy, shorten=shorten)
            results.append(PropertyResult(name, "always", "violated", trace.explanation, trace))
        elif name in (options.properties or ()):
            results.append(_result(Property(name, "always", bool), None, report.bound, stopped, statistics))
    for number, wanted in enumerate(temporal):
        undecided = _RAISED if any(atom.name in raised for atom in wanted.formula.atoms()) else left_out or bound
        trace = runs.traces[number] if runs else None
        results.append(_run_result(system, wanted, trace, undecided, stopped, statistics))
    for number, refinement in enumerate(refinements):
        trace = runs.refined[number] if runs else None
        results.append(_refined_result(system, refinement, trace, left_out or bound, stopped, statistics))
    complete, refuted = not bound, any(r.kind == "refinement" and r.status == "violated" for r in results)
    cut = system.within.name if system.within is not None and statistics.cut_states else None
    first = min((r for r in results if r.status == "violated"), key=_length, default=None)
    if not first and not bound and not options.explore:
        bound = vacuous(results, [place for place in system.handlers() if place not in runner.tabulation.never_run()])
        bound = "no-state" if bound == "no-step" and not statistics.states else bound
        results = [undecided_by(bound, result) for result in results]
    decided = not bound and all(r.status != "inconclusive" for r in results)
    status: Status = "violated" if first else "holds" if decided else "inconclusive"
    return Verdict(
        status=status,
        statistics=statistics,
        properties=results,
        model=system.target or system.name,
        property=first.name if first else None,
        message=_message(first, bound),
        bound=bound or cut,
        trace=first.trace if first else None,
        warnings=[
            *_warnings(
                runner, bool(results) or options.explore, statistics, complete=complete and not stopped and not refuted
            ),
            *([] if complete or search == "random" else Growth(runner).notes()),
            *_left_out(reports, clock),
            *(_left_to_python(runner) if options.native == "only" else []),
        ],
    )


def _left_out(reports: Sequence[SearchReport], clock: Deadline) -> list[str]:
    """What was not done to the end because the search had ended, or the time was over."""
    places = (user_line(report.late) for report in reports if report.late is not None)
    left_out = [f"user code was still running when the search ended, and was interrupted{place}" for place in places]
    if clock.missed:
        left_out.append("the counterexample is not shortened or not explained: the time was over, or Ctrl-C came")
    return left_out


def _left_to_python(runner: Runner) -> list[str]:
    """The questions that native functions could not answer."""
    count = runner.engine.native_left
    questions = f"{count:,} question{'s' if count > 1 else ''}"
    return [f"native functions left {questions} to Python: {', '.join(runner.engine.native_reasons)}"] if count else []


def vacuous(results: Sequence[PropertyResult], ran: Iterable[tuple[type[Process], Handler]]) -> str | None:
    """Why a search that found no violation has shown nothing, as a bound: from the results, and the handlers that ran."""
    if not results:
        return "no-property"
    return None if any(handler.kind in ("action", "message") for _, handler in ran) else "no-step"


def undecided_by(bound: str | None, result: PropertyResult) -> PropertyResult:
    """A result that holds only because nothing happens is inconclusive. An example is one all the same."""
    if bound is None or result.trace is not None or result.status != "holds":
        return result
    return PropertyResult(result.name, result.kind, "inconclusive", VACUOUS[bound])


def _collision(states: int, images: int, keys: int, bits: int, transitions: int) -> float:
    """The probability that two states share a fingerprint, or two values of properties a key.

    The fingerprint of an orbit is the least one of some images. Keys have 96 bits. A wide fingerprint is first compared with
    one that a worker met a moment ago, by 64 bits.
    """
    expected = images * states * (states - 1) / 2 / 2**bits + keys * (keys - 1) / 2 / 2**96
    if bits > 64:
        expected += transitions / 2**64
    return -math.expm1(-expected)


def _length(result: PropertyResult) -> int:
    return len(result.trace) if result.trace else 0


def _result(
    prop: Property, trace: Trace | None, bound: str | None, stopped: bool, statistics: Statistics
) -> PropertyResult:
    incomplete = bound or ("stopped at the violation" if stopped else None)
    if prop.kind == "reachable":
        if trace is not None:
            return PropertyResult(prop.name, prop.kind, "holds", f"an example {_after(trace)}", trace)
        if incomplete:
            return PropertyResult(prop.name, prop.kind, "inconclusive", f"no example so far ({incomplete})")
        if statistics.cut_states:
            note = f"no example within the bound; {statistics.cut_states:,} states outside of it were not expanded"
            return PropertyResult(prop.name, prop.kind, "inconclusive", note)
        kind = "states of the reduced space" if any(r.applied for r in statistics.reductions) else "reachable states"
        note = f"no example: false in all {statistics.states:,} {kind}"
        return PropertyResult(prop.name, prop.kind, "violated", note)
    if trace is not None:
        return PropertyResult(prop.name, prop.kind, "violated", _after(trace), trace)
    if incomplete:
        return PropertyResult(prop.name, prop.kind, "inconclusive", f"no violation so far ({incomplete})")
    if prop.kind == "final" and statistics.terminal_states == 0:
        note = "no state is terminal" if prop.wants_no_end else "vacuously: no state is terminal"
        return PropertyResult(prop.name, prop.kind, "holds", note)
    return PropertyResult(prop.name, prop.kind, "holds")


def _after(trace: Trace) -> str:
    if not trace.events:
        return "in the initial state"
    return f"after {len(trace):,} step{'s' if len(trace) > 1 else ''}"


def _run_result(
    system: System, prop: Temporal, trace: Trace | None, bound: str | None, stopped: bool, statistics: Statistics
) -> PropertyResult:
    """The result of a temporal property, with its fairness assumptions."""
    given = ", ".join(str(one) for one in assumed(system, prop))
    assuming = f"assuming {given}" if given else "no fairness assumed"
    if trace is not None:
        return PropertyResult(prop.name, prop.kind, "violated", assuming, trace)
    if bound or stopped:
        reason = bound or "stopped at the violation"
        return PropertyResult(prop.name, prop.kind, "inconclusive", f"no violation so far ({reason})")
    if statistics.cut_states:
        assuming += "; on all runs that stay within the bound"
    return PropertyResult(prop.name, prop.kind, "holds", assuming)


def _refined_result(
    system: System, prop: Refinement, trace: Trace | None, bound: str | None, stopped: bool, statistics: Statistics
) -> PropertyResult:
    """The result of a refinement. With fairness of the abstract System, it says what was assumed of this one."""
    if trace is not None:
        return PropertyResult(prop.name, prop.kind, "violated", _after(trace), trace)
    if bound or stopped:
        reason = bound or "stopped at the violation"
        return PropertyResult(
            prop.name, prop.kind, "inconclusive", f"not compared: steps are, when all states are known ({reason})"
        )
    given = ", ".join(str(one) for one in system.fairness)
    assuming = f"assuming {given}" if given else "no fairness assumed"
    note = assuming if prop.abstract.fairness else "steps only"
    if statistics.cut_states:
        note += "; on all runs that stay within the bound"
    return PropertyResult(prop.name, prop.kind, "holds", note)


def _message(first: PropertyResult | None, bound: str | None) -> str | None:
    if first is not None:
        what = f"{first.name} is violated"
        return f"{what}: {first.note}" if first.trace is None and first.note else what
    if bound in VACUOUS:
        return f"nothing was checked: {VACUOUS[bound]}"
    return f"stopped: {bound}" if bound else None


def _warnings(runner: Runner, checked: bool, statistics: Statistics, *, complete: bool) -> list[str]:
    """Warnings for the user when no property is violated."""
    system = runner.system
    warnings = []
    if not checked:
        warnings.append(
            "the system has no properties, so nothing is checked: add System(..., properties=[…]), check a built-in "
            "property (assertions, no_exceptions), or ask for exploration only (option explore)"
        )
    if complete and statistics.search != "stateless":
        never = never_ran(runner.tabulation).items()
        warnings += [f"{cls.__name__}.{name} never ran: {why}" for (cls, name), why in never]
        if statistics.terminal_states == 0:
            warnings += [
                f"{p.name} was never evaluated: no state is terminal; use always or reachable, or let the system end"
                for p in system.properties
                if p.kind == "final" and not p.wants_no_end
            ]
    return warnings
