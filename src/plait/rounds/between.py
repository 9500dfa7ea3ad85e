"""The sequential program searched round by round on the native engine, instead of turn by turn.

Without a network assumption and without crashes, what a process does in a round does not depend on what the others do in
it, and each of its steps may be the last. So the states between rounds are enough, and the handlers of the protocol run
natively (docs/internals/reductions/rounds.md has the proof). A protocol that this search does not support is searched
turn by turn (`sequential.py`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple

from plait.check.between import RoundsReport, searched_between
from plait.check.options import Options
from plait.check.progress import Progress
from plait.check.runner import Runner
from plait.kernel.errors import ModelError
from plait.kernel.step import Step
from plait.kernel.values import to_data
from plait.kernel.verdict import PropertyResult, Statistics, Verdict
from plait.model.properties import Property
from plait.model.system import System
from plait.rounds.conditions.declarations import proved
from plait.rounds.program.creation_order import Names, creation_ways, too_many_orders
from plait.rounds.protocol_run import Placed, in_order
from plait.rounds.sequential import Program


class Found(NamedTuple):
    """What the search between rounds has found."""

    verdict: Verdict
    """Without traces."""
    runs: dict[str, list[Step]]
    """By property, the steps of a run that decides it."""
    round_based: bool
    """Whether all conditions are proven to hold."""
    numbers_matter: bool
    """Whether several processes create processes of one role, and their order may matter."""


def applies(program: Program, options: Options) -> bool:
    """Whether the program may be searched between rounds."""
    system = program.system
    return (
        program.assumed.free
        and not system.faults
        and not system.network.lossy
        and options.native != "off"
        and options.search == "bfs"
        and options.max_depth is None
        and options.history == "none"
        and all(sum(h.kind == "init" for h in cls.__plait_handlers__) <= 1 for cls in system.classes)
    )


def search_between(
    program: Program, options: Options, progress: Callable[[Progress], None] | None = None
) -> Found | None:
    """Search the states between rounds; None if the program must be searched turn by turn."""
    system, runner = program.system, Runner(program.system, native=options.native)
    try:
        report = report_of(program, runner, options, progress=progress)
    except ModelError:
        return None  # the search turn by turn names the handler
    if report.unsupported is not None:
        return None
    if {f.number for f in report.search.findings} != set(report.runs):
        raise AssertionError("the search between rounds decided a property without a run")
    if report.suspects is None and not report.runs and report.search.bound is None:
        raise AssertionError("the search between rounds ended without a reason")
    program.beyond |= report.beyond
    classes = system.classes
    program.ran |= {(classes[p].__name__, classes[p].__plait_handlers__[h].name) for p, h in report.ran}
    for parent, slot in report.births:
        program.creation_order.creators.setdefault(system.pids[slot].role, set()).add(system.pids[parent])
    return Found(
        _verdict(system, report, options),
        {system.properties[n].name: _steps(runner, steps) for n, steps in report.runs.items()},
        report.suspects is False and 4 in proved(system),
        program.creation_order.several is not None and (report.numbers_matter is not False or too_many_orders(system)),
    )


def report_of(
    program: Program,
    runner: Runner,
    options: Options,
    *,
    collect: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> RoundsReport:
    """What the engine finds. With `collect`, it reports the local states of each state."""
    exchanges = [_names(program.system, way) for way in creation_ways(program.system)]
    place_of = program.calendar.place
    return searched_between(runner, options, place_of, program.end, exchanges, collect=collect, progress=progress)


NativeStep = tuple[int, int, list[tuple[int, bytes]], list[bytes], tuple[int, int], bool]
"""A step as the engine reports it: process, handler, consumed messages, choices, its place, and whether it creates."""


def _steps(runner: Runner, found: Sequence[NativeStep]) -> list[Step]:
    """The steps of a run, in the order of the rounds."""
    codec, names = runner.tabulation.model_codec, runner.names
    steps = []
    for process, handler, consumed, choices, key, creates in found:
        taken = []
        for sender, content in consumed:
            message = codec.message(sender, content)
            fields = {f.name: to_data(getattr(message, f.name)) for f in dataclasses.fields(message)}
            taken.append((names[sender], type(message).__name__, fields))
        chosen = [to_data(codec.codec.decode(choice)) for choice in choices]
        name = runner.system.classes[process].__plait_handlers__[handler].name
        steps.append(Placed(key, Step(names[process], name, "step", taken, chosen, key[0]), creates))
    return in_order(steps)


def _verdict(system: System, report: RoundsReport, options: Options) -> Verdict:
    bound = report.search.bound
    found = {system.properties[n].name for n in report.runs}
    violated = any(p.kind == "always" and p.name in found for p in system.properties)
    incomplete = bound or ("stopped at the violation" if violated and not options.keep_going else None)
    results = [_result(prop, report, found=prop.name in found, incomplete=incomplete) for prop in system.properties]
    first = next((r for r in results if r.status == "violated"), None)
    decided = not bound and all(r.status != "inconclusive" for r in results)
    return Verdict(
        status="violated" if first else "holds" if decided else "inconclusive",
        statistics=_statistics(report, options),
        properties=results,
        model=system.target or system.name,
        property=first.name if first else None,
        message=f"stopped: {bound}" if bound and not first else None,
        bound=bound,
    )


def _result(prop: Property, report: RoundsReport, *, found: bool, incomplete: str | None) -> PropertyResult:
    reachable = prop.kind == "reachable"
    if found:
        return PropertyResult(prop.name, prop.kind, "holds" if reachable else "violated")
    if incomplete:
        what = "example" if reachable else "violation"
        return PropertyResult(prop.name, prop.kind, "inconclusive", f"no {what} so far ({incomplete})")
    if reachable:
        states = f"{report.search.counters.states:,} states of the reduced space"
        return PropertyResult(prop.name, prop.kind, "violated", f"no example: false in all {states}")
    return PropertyResult(prop.name, prop.kind, "holds")


def _statistics(report: RoundsReport, options: Options) -> Statistics:
    counters = report.search.counters
    return Statistics(
        states=counters.states,
        transitions=counters.transitions,
        terminal_states=counters.terminal_states,
        depth=counters.depth,
        seconds=counters.seconds,
        python_calls=counters.python_calls,
        native_answers=counters.native_answers,
        native_compared=counters.native_compared,
        local_states=counters.local_states,
        local_bytes=counters.local_bytes,
        search="bfs",
        workers=1,
        memory_bytes=counters.memory_bytes,
        table_bytes=counters.table_bytes,
    )


def _names(system: System, way: Names) -> tuple[list[int], list[tuple[bytes, list[int]]]]:
    """A way to exchange names, as the engine takes it: by process its place, by role the new indices."""
    places = [system.index[way.get(pid, pid)] for pid in system.pids]
    roles = [
        (role.encode(), [way.get(pid, pid).index for pid in system.pids if pid.role == role])
        for role in dict.fromkeys(pid.role for pid in system.pids)
    ]
    return places, roles
