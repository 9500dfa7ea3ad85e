"""The verdict of a search, from the findings for its properties."""

from __future__ import annotations

from collections.abc import Mapping

from plait.bmc.execution.explanation import statement
from plait.bmc.execution.interpreter import Interpreter
from plait.bmc.execution.tracing import trace
from plait.bmc.finding import Costs, Finding, steps_text
from plait.bmc.options import Options
from plait.bmc.program.definition import BOUNDS, DIVISION, LIMITS, LOCKS, MEMORY, OVERFLOW, Program, Property, Value
from plait.kernel.verdict import FormulaStatistics, PropertyResult, Statistics, Status, Verdict

UNDEFINED = {BOUNDS, DIVISION, LOCKS, MEMORY, OVERFLOW}
"""After a violation of these, a program of C or Python goes on in a way that is not searched."""


def verdict_of(
    interpreter: Interpreter,
    findings: list[Finding],
    selected: set[str],
    costs: Costs,
    options: Options,
    seconds: float,
    target: str,
    parameters: Mapping[str, str | Value],
    full: bool,
) -> Verdict:
    """The verdict on the selected properties; none selected: on all.

    No property holds if a run reaches a limit of the front end, or fails a check that was not selected, or after which
    the program is undefined: beyond it, nothing was searched.
    """
    undefined = {f.property.name for f in findings if f.run is not None and f.property.name in UNDEFINED}
    limit = next((f for f in findings if f.property.name == LIMITS), None)
    others = [f for f in findings if selected and f.property.name not in selected and f is not limit]
    beyond = _beyond(limit) or _stopped(others)
    findings = [f for f in findings if f not in others]
    results: list[PropertyResult] = []
    for finding in findings:
        if finding is limit:
            continue
        shown, length = None, 0
        if finding.run is not None:
            start, steps = finding.run
            shown = trace(interpreter, target, parameters, finding.property, start, steps, full=full)
            length = len(steps) if full else len(shown)
        status, text = finding.status(), finding.text(length)
        if beyond is not None and status == "holds" and finding.property.kind != "reachable":
            status, text = "inconclusive", f"not violated before that: {beyond}"
        elif undefined and interpreter.program.undefined and status == "holds" and finding.property.kind != "reachable":
            status, text = "inconclusive", f"not violated before a violation of {', '.join(sorted(undefined))}"
        results.append(PropertyResult(finding.property.name, finding.property.kind, status, text, shown))
    bad = next((r for r in results if r.status == "violated"), None)
    bounds = [f.bound for f in findings if f.bound and f is not limit] + ([beyond] if beyond else [])
    bound = next((b for b in bounds if not b.startswith("depth")), bounds[0] if bounds else None)
    status = (
        "violated" if bad else "inconclusive" if not results or any(r.status != "holds" for r in results) else "holds"
    )
    first = bad or next((r for r in results if r.trace is not None), None)
    violated = next((f.property for f in findings if bad is not None and f.property.name == bad.name), None)
    message = _message(findings, status, beyond) if violated is None else _sentence(interpreter.program, violated)
    return Verdict(
        status=status,
        statistics=_statistics(interpreter.program, findings, costs, options, seconds),
        properties=results,
        model=target,
        property=bad.name if bad else None,
        message=message,
        bound=None if status == "holds" else bound,
        trace=first.trace if first else None,
    )


def _sentence(program: Program, violated: Property) -> str:
    """What is violated, in words. A `reachable` property is violated if no run reaches it."""
    if violated.kind == "reachable":
        return f"{violated.name} is violated: no run reaches it"
    return statement(program, violated).removesuffix(".")


def _beyond(limit: Finding | None) -> str | None:
    """Why runs beyond a limit of the front end exist, or may exist."""
    if limit is None or limit.status() == "holds":
        return None
    if limit.run is None or not limit.run.steps:
        return "it is not known whether a run exceeds a limit of recursion, objects or threads"
    return limit.run.steps[-1].failure


def _stopped(others: list[Finding]) -> str | None:
    """The first check that was not selected, and that fails or may fail: its thread stops there."""
    for finding in others:
        if finding.status() != "holds":
            how = "fails" if finding.run is not None else "may fail"
            return f"the check {finding.property.name} {how}, and its thread stops there"
    return None


def _message(findings: list[Finding], status: Status, beyond: str | None) -> str | None:
    if status != "inconclusive":
        return None
    depths = [f.depth for f in findings if f.status() == "inconclusive"]
    if not depths and beyond:
        return beyond
    if None in depths or not depths:
        return "not all properties were checked"
    least = min(depth for depth in depths if depth is not None)
    return f"all runs of at most {steps_text(least)} were checked; longer runs may exist"


def _statistics(
    program: Program, findings: list[Finding], costs: Costs, options: Options, seconds: float
) -> Statistics:
    width = f"{options.width} bits, wrapping around"
    if options.width is None:
        widest = max((b for b in costs.bits if b is not None), default=None)
        fit = f"all fit in {widest} bits" if widest is not None and None not in costs.bits else "of any size"
        width = f"mathematical ({fit})" if costs.bits else "mathematical"
    if any(variable.bits is not None for variable in program.variables):
        width = "as their types"
    solved = bool(costs.queries)
    return Statistics(
        states=costs.states,
        transitions=costs.transitions,
        terminal_states=costs.final_states,
        depth=costs.depth,
        seconds=seconds,
        python_calls=0,
        search="bmc",
        workers=1,
        formula=FormulaStatistics(
            encoding=", ".join(sorted({f.by for f in findings if f.by} or costs.encodings)) or options.encoding,
            projection=options.projection != "off" and solved,
            integers=width,
            solver=options.solver if solved else "none",
            queries=costs.queries,
            assertions=costs.assertions,
            build_seconds=costs.build,
            solve_seconds=costs.solve,
            work=costs.work,
            decided={f.property.name: f.by for f in findings if f.by and f.conclusive()},
        ),
    )
