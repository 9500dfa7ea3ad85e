"""`conform`: search the model for a run that explains a log."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Sequence

from plait import _native
from plait._native import ConformReport, Transition
from plait.check.cover.recorder import Recorder
from plait.check.cover.summary import never_ran
from plait.check.explain.tracing import Tracer
from plait.check.options import Native
from plait.check.runner import Runner
from plait.conform.collection import frozen, paused
from plait.conform.compiled import Compiled
from plait.conform.explanation import Explanation
from plait.conform.log import Log
from plait.kernel.coverage import Coverage
from plait.kernel.errors import TraceError, UsageError
from plait.kernel.trace import Event as Drawn
from plait.kernel.trace import Trace
from plait.kernel.verdict import Conformance, Deviation, HandlerUse, LoggedStep
from plait.model.system import System

MOST_STATES = 2_000_000
_SHOWN = 12
"""Last steps in the text."""
_KEPT = 300
"""Last steps of a long run with states."""


def conform(
    system: System,
    log: Log,
    *,
    complete: Sequence[str] = (),
    open: bool = False,  # noqa: A002 - the name of the option
    max_states: int = MOST_STATES,
    timeout: float | None = None,
    coverage: bool = False,
    native: Native = "auto",
    traced: bool = True,
    reduced: bool = True,
) -> Conformance:
    """Whether a log is a run of a System.

    `complete` adds to what the log says of itself: what it leaves out nowhere. With `open`, the log of each process may end
    early. With `coverage`, the run is executed once more
    in Python, to see which branches it takes.
    """
    if system.ticking:
        raise UsageError(
            f"{system.name} has clocks: conform does not search models with clocks",
            hint="leave the clocks out: an action without a clock may happen at any time, as in a log it does",
        )
    begun = time.monotonic()
    runner = Runner(system, native=native)
    with paused():
        compiled = Compiled(runner, log, complete)
        events = compiled.engine_events
    with frozen():
        report = _native.conform(
            runner.engine,
            events,
            compiled.complete,
            compiled.matches,
            max_states=max_states,
            open=open or log.open,
            timeout=timeout,
            keep=len(log.events) * 100 + 10_000 if coverage else _KEPT,
            reduced=reduced,
        )
        return _conformance(runner, compiled, report, begun, coverage, traced)


def _conformance(
    runner: Runner, compiled: Compiled, report: ConformReport, begun: float, coverage: bool, traced: bool
) -> Conformance:
    system, log, steps, places = runner.system, compiled.log, report.steps, report.places
    explanation = Explanation(runner, compiled) if report.stuck else None
    unexplained = explanation.unexplained(*report.stuck[0]) if explanation is not None else []
    violations = [_deviation(system, one) for one in report.decided]
    status = {True: "conforms", False: "deviates", None: "inconclusive"}[report.conforms]
    if status == "conforms" and violations:
        status = "violated"
    tail = report.tail
    # A short run is executed as other searches do it, also if nobody asks for a trace: it is a run of theirs, too.
    trace = _trace(runner, tail[-_KEPT - 1 :], report) if traced or len(steps) <= _KEPT else None
    covered = _coverage(runner, report) if coverage else None
    uses: Counter[tuple[str, str]] = Counter()
    for process, kind, handler, _ in steps:
        uses[system.classes[process].__name__, _label(system, process, kind, handler)] += 1
    handlers = [
        HandlerUse(cls.__name__, handler.name, uses[cls.__name__, handler.name])
        for cls in dict.fromkeys(system.classes)
        for handler in cls.__plait_handlers__
        if handler.kind in ("action", "message")
    ]
    return Conformance(
        target=system.target or system.name,
        log=log.name,
        status=status,  # type: ignore[arg-type]
        bound=report.bound,
        events=len(log.events),
        explained=report.explained,
        steps=len(steps),
        free=len(steps) - len({place for place in places if place}),
        states=report.states,
        transitions=report.transitions,
        seconds=time.monotonic() - begun,
        handlers=handlers,
        violations=violations,
        unexplained=unexplained,
        others=max(0, len(report.stuck) - 1),
        last=_last(runner, compiled, report),
        skipped=max(0, len(steps) - _SHOWN),
        trace=trace if traced else None,
        coverage=covered,
    )


def _deviation(system: System, found: tuple[int | None, bool, str | None, int]) -> Deviation:
    number, raises, message, step = found
    if number is None:
        return Deviation("no_exceptions", step, message)
    return Deviation(system.properties[number].name, step, "it raises an exception" if raises else None)


def _label(system: System, process: int, kind: str, handler: int | None) -> str:
    return kind if handler is None else system.classes[process].__plait_handlers__[handler].name


def _last(runner: Runner, compiled: Compiled, report: ConformReport) -> list[LoggedStep]:
    steps = report.steps
    first = max(0, len(steps) - _SHOWN)
    events: dict[int, list[str]] = {}
    for number, place in enumerate(report.places):
        if place is not None and place > first:
            events.setdefault(place, []).append(compiled.of(number).place)
    return [
        LoggedStep(
            number,
            runner.names[process],
            _label(runner.system, process, kind, handler),
            events.get(number, []),
        )
        for number, (process, kind, handler, _) in enumerate(steps[first:], first + 1)
    ]


def _taken(runner: Runner, report: ConformReport, tail: Sequence[tuple[int, list[int]]]) -> list[Transition]:
    """The transitions between the last states of a run, as the searches of the engine take them."""
    found, steps = [], report.steps
    for (number, before), (_, after) in itertools.pairwise(tail):
        process, kind, handler, _ = steps[number]
        fitting = (
            t
            for t in runner.engine.successors(before)
            if (t.process, t.kind, t.handler) == (process, kind, handler)
            and t.failure is None
            and runner.engine.components(t.state) == runner.engine.components(after)
        )
        transition = next(fitting, None)
        if transition is None:
            raise TraceError(
                f"step {number + 1} of the run is not a step of {runner.system.name}",
                hint="this is a bug of Plait: please report it with the log",
            )
        found.append(transition)
    return found


def _trace(runner: Runner, tail: Sequence[tuple[int, list[int]]], report: ConformReport) -> Trace | None:
    if any(number is None for number, _, _, _ in report.decided):
        return None  # a monitor raised an exception, and the engine has no state after it
    tracer = Tracer(runner, tail[0][1])
    events: list[Drawn] = [tracer.step(transition) for transition in _taken(runner, report, tail)]
    return tracer.trace(events, None)


def _coverage(runner: Runner, report: ConformReport) -> Coverage | None:
    """Which parts of the model the run exercises: its steps, once more, in Python."""
    recorder = Recorder(runner.system)
    watched = Runner(runner.system, recorder=recorder)
    tabulation = watched.tabulation
    _ = watched.initial
    seen: set[object] = set()
    for (_, before), transition in zip(report.tail, _taken(runner, report, report.tail), strict=False):
        if transition.handler is None:
            continue
        local = runner.local(before, transition.process)
        messages = [(sender, content) for _, sender, content in transition.consumed]
        key = (transition.process, transition.handler, local, tuple(messages))
        if key in seen:
            continue
        seen.add(key)
        tabulation.armed(transition.process, local)
        for message in messages:
            tabulation.guards(transition.process, local, [(transition.handler, message)])
        tabulation.step(transition.process, local, transition.handler, messages)
    over = f"the {len(report.steps):,} steps of the run that explains the log"
    return recorder.coverage(over, never_ran(tabulation), tabulation.sent, [])
