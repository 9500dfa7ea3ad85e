"""Searches from the start or from a state of a run: check, find a state, whether a process can still act, count the ways.

A search has a Runner of its own, which executes the model natively. It begins with the last state of the given run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from plait._native import Counters, SearchReport, Transition
from plait.check.api import check
from plait.check.live.search import flattened
from plait.check.options import Options
from plait.check.progress import Progress
from plait.check.runner import Runner
from plait.check.walk.expression import Expression
from plait.check.walk.projection import Chosen, Collapsed, collapsed
from plait.check.walk.run import Run, Runs, keyed, keys_of, run_of
from plait.kernel.errors import TraceError, UsageError
from plait.kernel.verdict import Verdict
from plait.model.properties import ASSERTIONS, NO_EXCEPTIONS, Property
from plait.model.system import System, with_properties

Told = Callable[[Counters], object] | None


class Answer(msgspec.Struct, frozen=True):
    """The result of a search."""

    status: str
    """'holds', 'violated', 'found', 'not found' or 'inconclusive'."""
    text: str
    run: Run | None = None
    loop: int | None = None
    """For a run that repeats for ever, the number of steps before its loop."""
    count: int | None = None
    statistics: list[tuple[str, str]] = []


def checked(system: System, start: Run | None, options: Options, told: Callable[[Progress], None] | None) -> Answer:
    """Check the properties: all of them from the initial states, those of states from the end of a run."""
    if start is None:
        verdict = check(system, options, progress=told)
        runs = Runs(Runner(flattened(system, system.properties)))
        run = None if verdict.trace is None else run_of(runs, verdict.trace)
        loop = None if verdict.trace is None else verdict.trace.loop
        return Answer(verdict.status, _verdict_text(verdict), run, loop, statistics=_statistics(verdict.statistics))
    wanted = _wanted(system, options.properties)
    judged = [p for p in wanted if p.kind in ("always", "final")]
    runner, here = _begun(system, flattened(with_properties(system, judged), judged), start)
    counters = None if told is None else lambda c: told(Progress.of(options.search, c))
    report = runner.engine.search(options.completed(), progress=counters)
    for finding in report.findings:
        found = runner.engine.path(finding.fingerprint, finding.run)
        if found is None:
            continue
        path, count = list(found[1]), len(runner.system.properties)
        name = runner.system.properties[finding.number].name if finding.number < count else ""
        if not name:
            name = ASSERTIONS if finding.number == count else NO_EXCEPTIONS
            failing = runner.failing(path[-1].state if path else here, name)
            path += [failing] if failing else []
        said = f"{name} is violated after {_more(path)}"
        return Answer("violated", said, _continued(runner, start, here, path), statistics=_statistics(report.counters))
    others = [p.name for p in wanted if p not in judged]
    left = f" (only a check from the start decides {', '.join(others)})" if others else ""
    return _ended(report, "holds", f"no state from here on violates a property{left}")


def find(system: System, start: Run | None, text: str, options: Options, told: Told) -> Answer:
    """A nearest state in which an expression is true."""
    plain = Runner(with_properties(system, []))
    expression = Expression(system, plain.tabulation, text)
    prop = expression.avoided()
    runner, _ = _begun(system, flattened(with_properties(system, [prop]), [prop]), start)
    report = runner.engine.search(options.completed(), progress=told)
    for finding in report.findings:
        found = runner.engine.path(finding.fingerprint, finding.run)
        if found is None:
            continue
        begin, path = found
        run = _continued(runner, start, begin, path)
        if finding.number == 0:
            said = f"{expression.text} is true after {_more(path)}"
            return Answer("found", said, run, statistics=_statistics(report.counters))
        said = "the search ended in a state where a step fails"
        return Answer("inconclusive", said, run, statistics=_statistics(report.counters))
    return _ended(report, "not found", f"{expression.text} is true in no state{' from here on' if start else ''}")


def can(system: System, start: Run | None, lane: str, handler: str | None, options: Options, told: Told) -> Answer:
    """Whether a process can still run a handler (or any handler), and a shortest run to it."""
    lanes = [repr(pid) for pid in system.pids]
    if lane not in lanes:
        raise UsageError(f"the model has no process {lane!r}", hint=f"it has: {', '.join(lanes)}")
    handlers = [one.name for one in system.classes[lanes.index(lane)].__plait_handlers__]
    if handler is not None and handler not in handlers:
        raise UsageError(f"{lane} has no handler {handler!r}", hint=f"it has: {', '.join(handlers)}")
    number = None if handler is None else handlers.index(handler)
    runner, _ = _begun(system, flattened(with_properties(system, []), []), start)
    found, report = runner.engine.can(options.completed(), lanes.index(lane), number, progress=told)
    what = handler or "take a step"
    if found is not None:
        run = _continued(runner, start, *found)
        said = f"{lane} can {'run ' if handler else ''}{what} after {_more(found[1][:-1])}"
        return Answer("found", said, run, statistics=_statistics(report.counters))
    return _ended(report, "not found", f"{lane} can never {'run ' if handler else ''}{what} from here on")


def ways(system: System, to: Run, options: Options, told: Told) -> Answer:
    """How many runs lead to the last state of a run."""
    runner, state = _begun(system, flattened(with_properties(system, []), []), to, begin=False)
    found, report = runner.engine.ways(options.completed(), state, progress=told)
    if found is None:
        return _ended(report, "not found", "no run leads here")
    length, shortest, every = found
    many = "infinitely many runs lead" if every is None else f"{_runs(every)} {'lead' if every != 1 else 'leads'}"
    said = f"{many} here; {_runs(shortest)} with the least number of steps, {length}"
    if report.bound is not None:
        said = f"at least {said}: the search ended by its limit ({report.bound})"
    return Answer("found", said, to, count=every, statistics=_statistics(report.counters))


def graph(
    system: System, start: Run | None, chosen: Chosen, most: int, options: Options, told: Told = None
) -> Collapsed:
    """The state graph, collapsed."""
    judged = [p for p in system.properties if p.kind in ("always", "final")]
    runner, _ = _begun(system, flattened(with_properties(system, judged), judged), start)
    return collapsed(runner, chosen, options.completed(), most, before=start, progress=told)


def _wanted(system: System, names: Sequence[str] | None) -> list[Property]:
    """The properties with these names; without names, all of them."""
    if names is None:
        return list(system.properties)
    known = {prop.name: prop for prop in system.properties}
    for name in names:
        if name not in known:
            raise UsageError(f"the model has no property {name!r}", hint=f"it has: {', '.join(known)}")
    return [known[name] for name in names]


def _begun(system: System, flat: System, start: Run | None, *, begin: bool = True) -> tuple[Runner, Sequence[int]]:
    """A runner whose searches begin with the last state of a run, and this state."""
    runner = Runner(flat, native="auto")
    if start is None:
        return runner, runner.initial[0][0]
    if start.initial >= len(runner.initial):
        raise TraceError(f"the model has {len(runner.initial)} initial states", hint="begin with another one")
    state: Sequence[int] = runner.initial[start.initial][0]
    for number, key in enumerate(start.steps, 1):
        transition = keyed(runner, state).get(key)
        if transition is None or transition.failure is not None:
            raise TraceError(f"step {number} ({key}) leads nowhere", hint="search from an earlier state")
        state = transition.state
    if begin:
        runner.engine.begin_with(state)
    return runner, state


def _continued(runner: Runner, start: Run | None, begin: Sequence[int], path: Sequence[Transition]) -> Run:
    keys = tuple(keys_of(runner, begin, path))
    if start is not None:
        return Run(start.initial, (*start.steps, *keys))
    initial = next((i for i, (state, _) in enumerate(runner.initial) if list(state) == list(begin)), 0)
    return Run(initial, keys)


def _ended(report: SearchReport, status: str, said: str) -> Answer:
    if report.bound is not None:
        said = f"nothing was found, but the search ended by its limit ({report.bound})"
        status = "inconclusive"
    return Answer(status, said, statistics=_statistics(report.counters))


def _verdict_text(verdict: Verdict) -> str:
    if verdict.status == "holds":
        return "all properties hold" + (f" ({verdict.bound})" if verdict.bound else "")
    return verdict.message or f"the search ended by its limit ({verdict.bound})"


def _statistics(counters: object) -> list[tuple[str, str]]:
    shown = ("states", "transitions", "terminal_states", "depth")
    found = [(name.replace("_", " "), f"{getattr(counters, name):,}") for name in shown]
    return [*found, ("seconds", f"{getattr(counters, 'seconds'):.2f}")]  # noqa: B009 - of two classes


def _more(path: Sequence[object]) -> str:
    return f"{len(path)} step{'' if len(path) == 1 else 's'}"


def _runs(count: int) -> str:
    return f"{count:,} run{'' if count == 1 else 's'}"
