"""`plait check`: search a model's states, and print the verdict."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from plait.check.options import Options
from plait.cli.annotations import Annotations
from plait.cli.conclusion import built, conclude
from plait.cli.options import Flag, Parameters, Phases, Quiet, Target, flags, remembered
from plait.cli.options import split as assignments
from plait.cli.output import writable
from plait.kernel.deadline import Deadline
from plait.kernel.errors import UsageError
from plait.kernel.places import place

if TYPE_CHECKING:
    from plait.kernel.verdict import Verdict
    from plait.model.system import System
    from plait.report.annotations import SourceLine

if not TYPE_CHECKING:
    Options = flags(Options)


def check(
    target: Target,
    /,
    *,
    parameters: Parameters = (),
    options: Annotated[Options, Parameter(name="*")] = Options(),  # noqa: B008 - it is frozen
    rounds: Flag = False,
    assume: str | None = None,
    phases: Phases = None,
    json: Flag = False,
    trace: Path | None = None,
    html: Path | None = None,
    sarif: Path | None = None,
    github: Flag = False,
    all: Flag = False,  # noqa: A002 - the name of the option
    watch: Flag = False,
    quiet: Quiet = False,
) -> int:
    """Search a model's states (the help text is in `plait.cli.main`).

    Parameters
    ----------
    target
        A zoo name, a Python file (models/token.py or models/token.py:ring), a Distal or P file, or package.module:function.
    parameters
        Set a parameter of the model, as in -p acceptors=3. Repeat -p for several parameters. plait show TARGET lists all.
    rounds
        Check the sequential program of a round-based protocol (plait rounds --help). Violations are shown on the protocol.
    assume
        What the network delivers, with --rounds: none, reliable, n-f (n-1, …), majority, common, kernel, module:predicate.
    phases
        Search this many phases, with --rounds; by default 3. With any: prove the properties for any number of phases.
    json
        Print exactly one JSON object on stdout.
    trace
        Save the counterexample in this file instead of in .plait/, as ITF (JSON).
    html
        Write a report to this HTML file.
    sarif
        Write what does not hold to this file as SARIF, for code scanning.
    github
        Print what does not hold as annotations of GitHub Actions.
    all
        Print every step of a long counterexample. By default, a terminal shows the first and the last steps.
    watch
        Check again whenever the model file or a module that it imports is saved. Ctrl-C ends it.
    quiet
        Print no progress, and only one line of the verdict.
    """
    from contextlib import nullcontext

    from plait.check import api
    from plait.cli.progress import ProgressLine
    from plait.model.loading.loader import load

    writable(trace, "--trace")
    writable(html, "--html")
    writable(sarif, "--sarif")
    if watch:
        return _watched(target, json=json)
    run: Callable[..., Verdict] = api.check
    if rounds:
        run = _rounds(phases, assume, options)
    elif assume is not None or phases is not None:
        given = "--assume" if assume is not None else "--phases"
        raise UsageError(f"{given} needs --rounds", hint=f"add --rounds: plait check {target} --rounds {given} …")
    values, clock = assignments(parameters), Deadline(options.timeout)
    system = built(lambda: load(target, values), clock, target, options.search, json=json, quiet=quiet)
    if isinstance(system, int):
        return system
    with nullcontext() if quiet else ProgressLine() as progress:
        verdict = run(system, dataclasses.replace(options, timeout=clock.left), progress=progress)
    named = {name: system.parameters.get(name) for name in values}
    return conclude(
        verdict,
        system.name,
        named,
        json=json,
        quiet=quiet,
        trace=trace,
        html=html,
        annotations=Annotations(*_places(system), sarif=sarif, github=github),
        every_step=all,
    )


def _watched(target: str, *, json: bool) -> int:
    """Check now, and after each save."""
    from plait.cli.watch import watch

    if json:
        raise UsageError(
            "--watch cannot be combined with --json: --json prints exactly one object", hint="leave one of them out"
        )
    return watch(target, remembered())


def _places(system: System) -> tuple[dict[str, SourceLine], SourceLine | None]:
    """The lines of the properties, and of the first of them for what has no line."""
    from plait.model.refinement import Refinement
    from plait.model.temporal import Temporal
    from plait.report.annotations import SourceLine

    found: dict[str, SourceLine] = {}
    for prop in system.properties:
        functions = [prop.function]
        if isinstance(prop, Temporal):
            functions = [atom.predicate for atom in prop.formula.atoms()]
        if isinstance(prop, Refinement):
            functions = [prop.mapping]
        for function in functions:
            code = getattr(function, "__code__", None)
            if code is not None and prop.name not in found:
                file, _, line = place(code.co_filename, code.co_firstlineno).rpartition(":")
                found[prop.name] = SourceLine(file, int(line))
    return found, next(iter(found.values()), None)


def _rounds(phases: int | str | None, assume: str | None, options: Options) -> Callable[..., Verdict]:
    """The check of the sequential program."""
    from functools import partial

    from plait.rounds.check import check_rounds
    from plait.rounds.sequential import PHASES

    if options.reduce != "none":
        raise UsageError(
            f"--rounds cannot be combined with --reduce {options.reduce}",
            hint="leave --reduce out: a sequential program has no interleavings to reduce",
        )
    if options.coverage:
        raise UsageError(
            "--rounds cannot be combined with --coverage: a sequential program has no handlers",
            hint="leave --rounds out for the coverage of the protocol itself",
        )
    assume = "none" if assume is None else assume
    if isinstance(phases, str):
        from plait.rounds.unbounded.check import check_any_phases

        return partial(check_any_phases, assume=assume)
    return partial(check_rounds, phases=phases or PHASES, assume=assume)
