"""`plait.check`: search the states of a System, and say what was found and what was covered."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

from plait.check.cover.recorder import Recorder, premises
from plait.check.cover.summary import never_ran, with_coverage
from plait.check.explain.lifting import confirm, lifted
from plait.check.explain.tidy import tidied
from plait.check.explain.tracing import Tracer
from plait.check.explain.why import why, why_failed
from plait.check.live import search as liveness
from plait.check.progress import Progress
from plait.check.reduce.plan import History, Inference, Plan, Seeds, Split, plan
from plait.check.runner import Runner
from plait.check.tabulate.codec import StuckError
from plait.kernel.errors import ModelError, UsageError
from plait.kernel.trace import Trace
from plait.kernel.verdict import PropertyResult, Statistics, Status, Verdict
from plait.model.properties import Property
from plait.model.system import System, with_properties
from plait.model.temporal import Temporal

Search = Literal["bfs", "dfs", "random", "stateless"]
WALKS = 10_000
"""Random walks, unless the user says otherwise."""
STATELESS_DEPTH = 10_000
"""A search without a visited set would follow a cycle for ever: it ends here unless the user says otherwise."""
_FORGET: list[str] = []
"""Rules of the reductions that are left out: tests show with it that each is needed."""


def check(
    system: System,
    *,
    search: Search = "bfs",
    workers: int | None = None,
    max_states: int | None = None,
    max_depth: int | None = None,
    timeout: float | None = None,
    memory: int | None = None,
    seed: int = 0,
    walks: int = WALKS,
    keep_going: bool = False,
    properties: Sequence[str] | None = None,
    reduce: str | Sequence[str] = "none",
    decomposition: Inference = "auto",
    split: Split = "reply",
    seeds: Seeds = "fewest",
    spos: bool = True,
    history: History = "none",
    raw: bool = False,
    coverage: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Verdict:
    """Check a System and return a Verdict.

    `search` is bfs (shortest counterexamples), dfs, random (`walks` seeded runs) or stateless (no visited set). A limit that
    is hit makes the verdict inconclusive. `memory` is in bytes, by default most of what the machine has. `keep_going`
    searches on after a violation; `properties` names the ones to check. Ctrl-C ends the search with what was found so far.

    `reduce` names reductions (decomposition, por, symmetry; dpor for the stateless search), or is "auto" or "none".
    `decomposition` is "auto" (infer auxiliary fields) or "declared" (only fields that are `aux(…)`); `split` and `seeds`
    are how por tells transitions apart and where its sets start; `spos` keeps states with one transition off the stack of
    dfs; `history="last"` makes the messages of each process's last step part of the state, as the papers' tool does.

    A counterexample is made readable: steps that are not needed are left out, and independent ones reordered so that the run
    changes less often from process to process. `raw=True` gives it as it was found. With `coverage=True` the verdict
    says what of the model the search has exercised.

    >>> from plait import Process, action, always
    >>> class Counter(Process):
    ...     n: int = 0
    ...     @action(when=lambda self: self.n < 3)
    ...     def up(self):
    ...         self.n += 1
    >>> @always
    ... def small(s):
    ...     return all(c.n <= 3 for c in s[Counter])
    >>> verdict = check(System([Counter(), Counter()], properties=[small]))
    >>> verdict.status, verdict.statistics.states
    ('holds', 16)
    """
    _validate(system, search, workers, max_states, max_depth, timeout, memory, seed, walks)
    if not isinstance(spos, bool):
        raise UsageError(f"spos={spos!r}", hint="give True or False")
    _validate_choices(decomposition=decomposition, split=split, seeds=seeds, history=history)
    checked = _select(system, properties)
    temporal = [p for p in checked if isinstance(p, Temporal)]
    if temporal and search not in ("bfs", "dfs"):
        raise UsageError(
            f"--search {search}: {temporal[0].name} is a temporal property, which needs the graph of all states",
            hint="use bfs or dfs, or leave it out with --property",
        )
    asked = premises(temporal) if coverage else []
    if len(liveness.predicates(checked, [premise.atom for premise in asked])) > liveness.MOST_PREDICATES:
        asked = []  # to cover more must not make a model too large to check
    system = with_properties(system, liveness.flattened(checked, [premise.atom for premise in asked]))
    reductions = plan(system, reduce, search, decomposition, history, temporal, _FORGET)
    runner = reductions.runner(system, Recorder(system) if coverage else None)
    if search == "stateless" and max_depth is None:
        max_depth = STATELESS_DEPTH
    crew = 1 if reductions.dpor else workers or os.cpu_count() or 1  # dpor decides what to try by what it met before
    memory = memory if memory is not None else _most_memory()
    told = (lambda counters: progress(_progress(counters, search))) if progress else None
    runs: liveness.Findings | None = None
    report: dict[str, Any] | None = None
    limits: dict[str, Any] = {
        "workers": crew,
        "max_states": max_states,
        "memory": memory,
        "progress": told,
        "forget": _FORGET,
    }
    more = [premise.atom for premise in asked]
    reduced = reductions.history or any(r.applied for r in reductions.reductions)
    try:
        if temporal and search == "bfs" and max_depth is None and not reduced:
            # The graph has all states: what is asked of states can be asked on the way, breadth first.
            runs = liveness.search(runner, temporal, more, safety=True, tidy=not raw, timeout=timeout, **limits)
            if not _violated(system, runs.report):
                report = runs.report
        if report is None:
            report = runner.search(
                search,
                max_depth=max_depth,
                timeout=timeout,
                seed=seed,
                walks=walks,
                keep_going=keep_going,
                spos=spos,
                dpor=reductions.dpor,
                por=(split, seeds) if reductions.por else None,
                **limits,
            )
            runs = None
            if temporal and (keep_going or not _violated(system, report)) and report["bound"] is None:
                left = None if timeout is None else max(0.0, timeout - report["seconds"])
                por = (split, seeds) if reductions.por and report["given_up"] is None else None
                whole = lambda: reductions._replace(decomposition=None).runner(system)  # noqa: E731
                runs = liveness.search(
                    runner, temporal, more, whole=whole, tidy=not raw, timeout=left, por=por, **limits
                )
                report["seconds"] += runs.report["seconds"]
                report["memory_bytes"] = max(report["memory_bytes"], runs.report["memory_bytes"])
                report["bound"] = runs.report["bound"]
    except StuckError:
        raise ModelError("the model did not answer when the search was to end", hint="make handlers do less") from None
    except RuntimeError as error:
        message, _, hint = str(error).partition("\nhint: ")
        raise ModelError(message, hint=hint or None) from None
    verdict = _verdict(runner, report, search, crew, keep_going, reductions, temporal, runs, raw)
    return (
        with_coverage(runner, verdict, asked if runs and runs.report["bound"] is None else []) if coverage else verdict
    )


def _validate(system: System, search: str, workers: int | None, *limits: Any) -> None:
    if not isinstance(system, System):
        raise UsageError(f"check() was given {system!r}, not a System", hint="call the model function: check(paxos())")
    if search not in get_args(Search):
        raise UsageError(f"search={search!r}", hint=f"choose one of: {', '.join(get_args(Search))}")
    if workers is not None and (not isinstance(workers, int) or workers < 1):
        raise UsageError(f"workers={workers!r}", hint="give a number of threads, at least 1")
    names = ("max_states", "max_depth", "timeout", "memory", "seed", "walks")
    for name, value in zip(names, limits, strict=True):
        kinds = int | float if name == "timeout" else int
        if value is not None and (isinstance(value, bool) or not isinstance(value, kinds) or not 0 <= value < 2**63):
            whole = "" if name == "timeout" else "whole "
            raise UsageError(f"{name}={value!r}", hint=f"give a {whole}number that is not negative")


def _validate_choices(**given: str) -> None:
    kinds: dict[str, Any] = {"decomposition": Inference, "split": Split, "seeds": Seeds, "history": History}
    for name, value in given.items():
        if value not in get_args(kinds[name]):
            raise UsageError(f"{name}={value!r}", hint=f"choose one of: {', '.join(get_args(kinds[name]))}")


def _select(system: System, names: Sequence[str] | None) -> list[Property]:
    known = {p.name: p for p in system.properties}
    for name in names or ():
        if name not in known:
            raise UsageError(
                f"the system has no property {name!r}", hint=f"its properties are: {', '.join(known) or 'none'}"
            )
    return list(system.properties) if names is None else [known[name] for name in names]


def _progress(counters: dict[str, Any], search: str) -> Progress:
    names = ("states", "transitions", "depth", "frontier", "memory_bytes", "python_calls", "seconds", "walks")
    return Progress(search=search, **{name: counters[name] for name in names})


def _most_memory() -> int | None:
    """Most of the machine's memory: a search that fills it stops with a verdict instead of being killed."""
    try:
        return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 0.85)
    except (ValueError, OSError, AttributeError):
        return None


def _violated(system: System, report: dict[str, Any]) -> bool:
    """Whether a search has found a violation: of a property, or a failed assertion."""
    found = (finding[0] for finding in report["findings"])
    return any(n == len(system.properties) or system.properties[n].kind != "reachable" for n in found)


def _verdict(
    runner: Runner,
    report: dict[str, Any],
    search: str,
    workers: int,
    keep_going: bool,
    reductions: Plan,
    temporal: list[Temporal],
    runs: liveness.Findings | None,
    raw: bool,
) -> Verdict:
    system = runner.system
    bound = report["bound"]
    states = report["states"]
    statistics = Statistics(
        states=states,
        transitions=report["transitions"],
        terminal_states=report["terminal"],
        depth=report["depth"],
        seconds=report["seconds"],
        python_calls=report["python_calls"],
        search=search,
        workers=workers,
        collision_probability=0.0 if search == "stateless" else _collision(states, reductions.images),
        memory_bytes=report["memory_bytes"],
        table_bytes=report["table_bytes"],
        walks=report["walks"],
        graph_states=runs.report["states"] if runs else 0,
        stack_operations=report["stack_operations"],
        stack_operations_saved=report["stack_operations_saved"],
        reductions=reductions.outcome(report["given_up"]),
    )
    found = {number: (fingerprint, depth, run) for number, fingerprint, depth, run in report["findings"]}
    stopped = _violated(system, report) and not keep_going
    tidy, shorten = not raw, search != "bfs"  # breadth first, a run is a shortest one
    results = []
    for number, prop in enumerate(system.properties):
        if prop.kind == "predicate":
            continue
        trace = _trace(runner, prop, found[number][0], found[number][2], tidy, shorten) if number in found else None
        results.append(_result(prop, trace, bound, stopped, statistics))
    if len(system.properties) in found:
        fingerprint, _, run = found[len(system.properties)]
        trace = _failed_assertion(runner, fingerprint, run, tidy, shorten)
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
        warnings=_warnings(runner, temporal, statistics, complete=not bound and not stopped),
    )


def _collision(states: int, images: int) -> float:
    """The probability that two states share a fingerprint; of an orbit it is the least of its images', hence small."""
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
    """The result of a temporal property, with what it assumes."""
    given = ", ".join(str(one) for one in liveness.assumed(system, prop))
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


def _warnings(runner: Runner, temporal: list[Temporal], statistics: Statistics, *, complete: bool) -> list[str]:
    """What a user should look at although nothing is violated."""
    system = runner.system
    warnings = []
    if not system.properties and not temporal:
        warnings.append("the system has no properties: give System(..., properties=[…]) something to check")
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


def _trace(runner: Runner, prop: Property, fingerprint: int, run: list[int] | None, tidy: bool, shorten: bool) -> Trace:
    tracer, events = _follow(runner, fingerprint, run)
    note = None
    number = [p.name for p in tracer.runner.system.properties].index(prop.name)
    if tidy:

        def shows(tracer: Tracer) -> bool:
            ends = prop.kind != "final" or tracer.runner.is_terminal(tracer.state)
            return ends and tracer.runner.holds(number, tracer.state) == (prop.kind == "reachable")

        tracer, events, note = tidied(tracer, events, shows, shorten=shorten)
    if runner.decomposition:
        confirm(tracer, prop)
    where = "in the last state" if events else "in the initial state"
    explanation = {
        "always": f"{prop.name} is false {where}",
        "final": f"{prop.name} is false {where}, which is terminal",
        "reachable": f"{prop.name} is true {where}",
    }[prop.kind]
    return tracer.trace(events, prop.name, explanation, tidied=note, why=why(tracer, prop, number, events))


def _failed_assertion(runner: Runner, fingerprint: int, run: list[int] | None, tidy: bool, shorten: bool) -> Trace:
    tracer, events = _follow(runner, fingerprint, run)
    failing = tracer.runner.failing(tracer.state)
    if failing is None or failing.failure is None:
        raise RuntimeError("no assertion fails after the run that should end in one")
    events.append(tracer.step(failing))
    note = None
    if tidy:
        fails = lambda tracer: bool(tracer.taken and tracer.taken[-1].failure)  # noqa: E731
        tracer, events, note = tidied(tracer, events, fails, shorten=shorten)
    return tracer.trace(events, "assertions", failing.failure[1], tidied=note, why=why_failed(tracer, events))


def _follow(runner: Runner, fingerprint: int, run: list[int] | None) -> tuple[Tracer, list[Any]]:
    transitions = runner.engine.path(fingerprint, run)
    if transitions is None:
        raise RuntimeError("the run to a violation could not be rebuilt: two states share a fingerprint")
    if runner.decomposition:
        return lifted(runner, transitions)
    tracer = Tracer(runner)
    return tracer, [tracer.step(transition) for transition in transitions]
