"""From the report of a search to a Verdict: statistics, the result of each property, traces and warnings."""

from __future__ import annotations

import math
from collections.abc import Sequence

from plait._native import SearchReport
from plait.check.cover.summary import never_ran
from plait.check.explain.counterexample import counterexample, failed_assertion
from plait.check.live.search import Findings, assumed
from plait.check.options import Options
from plait.check.reduce.plan import Plan
from plait.check.runner import Runner
from plait.kernel.deadline import Deadline
from plait.kernel.places import user_line
from plait.kernel.trace import Trace
from plait.kernel.verdict import PropertyResult, Statistics, Status, Verdict
from plait.model.properties import Property
from plait.model.system import System
from plait.model.temporal import Temporal


def violated(system: System, report: SearchReport) -> bool:
    """Whether a search has found a violation of a property or a failed assertion."""
    found = (finding.number for finding in report.findings)
    return any(n == len(system.properties) or system.properties[n].kind != "reachable" for n in found)


def judge(
    runner: Runner,
    options: Options,
    reductions: Plan,
    temporal: Sequence[Temporal],
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
        transitions=counters.transitions,
        terminal_states=counters.terminal_states,
        depth=counters.depth,
        seconds=sum(r.counters.seconds for r in reports),
        python_calls=counters.python_calls,
        search=search,
        workers=options.workers or 1,
        collision_probability=0.0 if search == "stateless" else _collision(counters.states, reductions.images),
        memory_bytes=max(r.counters.memory_bytes for r in reports),
        table_bytes=counters.table_bytes,
        walks=counters.walks,
        graph_states=runs.report.counters.states if runs else 0,
        stack_operations=counters.stack_operations,
        stack_operations_saved=counters.stack_operations_saved,
        reductions=reductions.outcome(report.given_up),
    )
    found = {finding.number: finding for finding in report.findings}
    stopped = violated(system, report) and not keep_going
    tidy, shorten = not options.raw, search != "bfs"  # bfs finds shortest runs
    results = []
    for number, prop in enumerate(system.properties):
        if prop.kind == "predicate":
            continue
        trace = None
        if number in found:
            trace = counterexample(runner, prop, found[number], clock, tidy=tidy, shorten=shorten)
        results.append(_result(prop, trace, bound, stopped, statistics))
    if len(system.properties) in found:
        trace = failed_assertion(runner, found[len(system.properties)], clock, tidy=tidy, shorten=shorten)
        results.append(PropertyResult("assertions", "always", "violated", trace.explanation, trace))
    for number, wanted in enumerate(temporal):
        results.append(_run_result(system, wanted, runs.traces[number] if runs else None, bound, stopped))
    first = min((r for r in results if r.status == "violated"), key=_length, default=None)
    status: Status = "violated" if first else "inconclusive" if bound else "holds"
    return Verdict(
        status=status,
        statistics=statistics,
        properties=results,
        model=system.target or system.name,
        property=first.name if first else None,
        message=_message(first, bound),
        bound=bound,
        trace=first.trace if first else None,
        warnings=[
            *_warnings(runner, temporal, statistics, complete=not bound and not stopped),
            *_left_out(reports, clock),
        ],
    )


def _left_out(reports: Sequence[SearchReport], clock: Deadline) -> list[str]:
    """What was not done to the end because the search had ended, or the time was over."""
    places = (user_line(report.late) for report in reports if report.late is not None)
    left_out = [f"user code was still running when the search ended, and was interrupted{place}" for place in places]
    if clock.missed:
        left_out.append("the counterexample is not shortened or not explained: the time was over, or Ctrl-C came")
    return left_out


def _collision(states: int, images: int) -> float:
    """The probability that two states share a fingerprint. An orbit has the least one of its images."""
    return -math.expm1(-images * states * (states - 1) / 2 / 2**64)


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
    system: System, prop: Temporal, trace: Trace | None, bound: str | None, stopped: bool
) -> PropertyResult:
    """The result of a temporal property, with its fairness assumptions."""
    given = ", ".join(str(one) for one in assumed(system, prop))
    assuming = f"assuming {given}" if given else "no fairness assumed"
    if trace is not None:
        return PropertyResult(prop.name, prop.kind, "violated", assuming, trace)
    if bound or stopped:
        reason = bound or "stopped at the violation"
        return PropertyResult(prop.name, prop.kind, "inconclusive", f"no violation so far ({reason})")
    return PropertyResult(prop.name, prop.kind, "holds", assuming)


def _message(first: PropertyResult | None, bound: str | None) -> str | None:
    if first is not None:
        what = f"{first.name} is violated"
        return f"{what}: {first.note}" if first.trace is None and first.note else what
    return f"stopped: {bound}" if bound else None


def _warnings(runner: Runner, temporal: Sequence[Temporal], statistics: Statistics, *, complete: bool) -> list[str]:
    """Warnings for the user when no property is violated."""
    system = runner.system
    warnings = []
    if not system.properties and not temporal:
        warnings.append("the system has no properties, so nothing is checked: add System(..., properties=[…])")
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
