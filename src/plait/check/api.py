"""`plait.check`: search the states of a System and return a Verdict."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Unpack

import msgspec

from plait._native import SearchReport
from plait.check import hash_seeds
from plait.check.cover.recorder import Recorder, premises
from plait.check.cover.summary import with_coverage
from plait.check.explain.verdicts import judge, violated
from plait.check.growth import Growth
from plait.check.live import search as liveness
from plait.check.live.buchi import Automaton
from plait.check.live.refinement import Refining
from plait.check.options import Changes, Fingerprint, Options, options_from
from plait.check.progress import Progress
from plait.check.reduce.asymmetry import AsymmetryError
from plait.check.reduce.plan import Plan, plan
from plait.check.runner import Runner
from plait.kernel.deadline import Deadline, OutOfTimeError
from plait.kernel.errors import Argument, UsageError
from plait.kernel.verdict import PropertyResult, Verdict
from plait.model.properties import Property
from plait.model.refinement import Refinement
from plait.model.system import System, selected
from plait.model.temporal import Atom, Temporal


def check(
    system: System,
    options: Options | None = None,
    *,
    progress: Callable[[Progress], None] | None = None,
    **changes: Unpack[Changes],
) -> Verdict:
    """Check a System and return a Verdict.

    `plait.check.options.Options` describes the options. Give them as keyword arguments, as an `Options`, or both: keyword
    arguments then change the given `Options`. A limit that is hit makes the verdict inconclusive. The timeout includes
    everything that is done before and after the search. Ctrl-C ends the search with what was found so far. `progress` is
    called a few times per second.

    >>> from plait import Process, action, always
    >>> class Counter(Process):
    ...     n: int = 0
    ...     @action(when=lambda self: self.n < 3)
    ...     def up(self):
    ...         self.n += 1
    >>> @always
    ... def small(s):
    ...     return all(c.n <= 3 for c in s[Counter])
    >>> verdict = check(System([Counter(), Counter()], properties=[small]), search="dfs", workers=1)
    >>> verdict.status, verdict.statistics.states
    ('holds', 16)
    """
    if not isinstance(system, System):
        raise UsageError(f"check() was given {system!r}, not a System", hint="call the model function: check(paxos())")
    options = options_from(changes, options).completed()
    clock = Deadline(options.timeout)
    checked = selected(system, options.properties)
    temporal = [p for p in checked if isinstance(p, Temporal)]
    refinements = [p for p in checked if isinstance(p, Refinement)]
    if (temporal or refinements) and options.search not in ("bfs", "dfs"):
        first: Property = (temporal or refinements)[0]
        kind = "temporal property" if temporal else "refinement"
        raise UsageError(
            (Argument("search", options.search), f": {first.name} is a {kind}, which needs the graph of all states"),
            hint=("use bfs or dfs, or choose other properties with ", Argument("properties")),
        )
    if options.coverage and options.native == "only":
        raise UsageError(
            (Argument("native", "only"), ": coverage is recorded by running the model in Python"),
            hint=("leave ", Argument("coverage"), " out, or use ", Argument("native", "auto")),
        )
    asked = premises(temporal) if options.coverage else []
    if len(liveness.predicates(checked, [premise.atom for premise in asked])) > liveness.MOST_PREDICATES:
        asked = []  # coverage must not make a model too large to check
    more = [premise.atom for premise in asked]
    system = liveness.flattened(system, checked, more)
    asymmetry: AsymmetryError | None = None
    while True:
        try:
            with clock.enforced():
                reductions = plan(system, options, temporal, refinements, asymmetry=asymmetry)
                automata = liveness.automata(temporal, more)
                runner = reductions.runner(system, Recorder(system) if options.coverage else None)
        except OutOfTimeError:
            return Verdict.unfinished(
                system.target or system.name,
                "timeout",
                "while the search was planned",
                search=options.search,
                seconds=clock.elapsed,
                properties=[PropertyResult(p.name, p.kind, "inconclusive", "not checked (timeout)") for p in checked],
            )
        options = dataclasses.replace(options, fingerprint=_bits(options, reductions, temporal, refinements))
        if reductions.dpor:  # it chooses transitions by what it has seen before
            options = dataclasses.replace(options, workers=1)
        try:
            refining = [Refining(runner, one) for one in refinements]
            report, runs = _searched(runner, options, reductions, temporal, automata, more, refining, clock, progress)
            break
        except AsymmetryError as error:
            asymmetry = error  # the next plan has no symmetry, or raises this error
    untested = hash_seeds.compare(runner.tabulation, checked, clock, report.bound == "interrupted")
    verdict = judge(runner, options, reductions, temporal, refinements, report, runs, clock)
    verdict = msgspec.structs.replace(verdict, warnings=[*verdict.warnings, *untested]) if untested else verdict
    if not options.coverage:
        return verdict
    return with_coverage(runner, verdict, asked if runs and runs.report.bound is None else [], report.exits)


def _bits(
    options: Options, reductions: Plan, temporal: Sequence[Property], refinements: Sequence[Property]
) -> Fingerprint:
    """How many bits fingerprints have in this search."""
    unable = None
    if options.search != "bfs":
        unable = f"the {options.search} search has fingerprints of 64 bits: only bfs has wider ones"
    elif reductions.symmetry or reductions.rotations:
        unable = "with symmetry, the fingerprint is the least one of the images of a state, and has 64 bits"
    elif temporal or refinements:
        first = (*temporal, *refinements)[0]
        unable = f"{first.name} needs the graph of all states, which has fingerprints of 64 bits"
    if options.fingerprint == "auto":
        return 64 if unable else 96 if reductions.por else "auto"
    if unable and options.fingerprint != 64:
        raise UsageError(
            (Argument("fingerprint", options.fingerprint), f": {unable}"),
            hint=("leave ", Argument("fingerprint"), " out, or use 64"),
        )
    return options.fingerprint


def _searched(
    runner: Runner,
    options: Options,
    reductions: Plan,
    temporal: list[Temporal],
    automata: list[Automaton],
    more: list[Atom],
    refining: list[Refining],
    clock: Deadline,
    progress: Callable[[Progress], None] | None,
) -> tuple[SearchReport, liveness.Findings | None]:
    """The report of the engine about states, and about runs if there are temporal properties."""
    system = runner.system
    growth = Growth(runner)
    told = (lambda counters: progress(Progress.of(options.search, counters, growth.notes()))) if progress else None
    reduced = reductions.history or any(r.applied for r in reductions.reductions)
    of_graph = bool(temporal or refining)
    if of_graph and options.search == "bfs" and options.max_depth is None and not reduced:
        # The graph has all states, breadth first: properties of states are checked in the same search.
        runs = liveness.search(
            runner, temporal, automata, more, options, clock, safety=True, refining=refining, progress=told
        )
        if not violated(system, runs.report):
            return runs.report, runs
    limited = dataclasses.replace(options, timeout=clock.left)
    report = runner.engine.search(limited, por=reductions.por, dpor=reductions.dpor, progress=told)
    if not of_graph or (violated(system, report) and not options.keep_going) or report.bound is not None:
        return report, None
    # The history of a process is no part of a run: steps that change only the history would make loops of nothing.
    plain = reductions._replace(history=False)
    fair = any(liveness.assumed(system, prop) for prop in temporal)
    if reductions.history:
        runner = plain.runner(system, runner.tabulation.recorder)
        refining = [Refining(runner, one.prop) for one in refining]
    runs = liveness.search(
        runner,
        temporal,
        automata,
        more,
        options,
        clock,
        whole=lambda: plain._replace(decomposition=None).runner(system),
        # With fairness, the proof of the reduction assumes that no step fails.
        por=reductions.por and report.given_up is None and not (fair and violated(system, report)),
        refining=refining,
        progress=told,
    )
    return report, runs
