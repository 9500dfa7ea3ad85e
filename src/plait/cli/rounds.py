"""`plait rounds`: the round structure of a protocol, and its sequential program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from plait.cli.options import AtLeastOne, Flag, Parameters, Quiet, Seconds, Target, split
from plait.cli.output import emit, note, writable

Language = Literal["plait", "python", "c", "distal", "p"]
"""A language of `plait rounds emit`."""
Output = Annotated[Path | None, Parameter(name=["--output", "-o"])]


def tags(
    target: Target,
    /,
    *,
    parameters: Parameters = (),
    max_states: AtLeastOne = None,
    workers: AtLeastOne = None,
    timeout: Seconds = None,
    json: Flag = False,
    quiet: Quiet = False,
) -> int:
    """Decide the conditions (the help text is in `plait.cli.main`).

    Parameters
    ----------
    target
        A zoo name, a Python file, a Distal text, or package.module:function.
    parameters
        Set a parameter of the model: -p acceptors=3. Give it once per parameter.
    max_states
        Search at most this many asynchronous states; by default 100,000.
    workers
        Threads that search; by default one per processor.
    timeout
        Stop after this many seconds; 2m and 1h are understood.
    json
        Print exactly one JSON object on stdout.
    quiet
        Print one line only.
    """
    from plait.cli.conclusion import built
    from plait.cli.conclusion import show as print_verdict
    from plait.kernel.deadline import Deadline
    from plait.model.loading.loader import load
    from plait.rounds.conditions.decision import WATCHED, conditions

    clock, given = Deadline(timeout), split(parameters)
    system = built(lambda: load(target, given), clock, target, "bfs", json=json, quiet=quiet)
    if isinstance(system, int):
        return system
    verdict = conditions(system, max_states=max_states or WATCHED, workers=workers, timeout=clock.left)
    print_verdict(verdict, json=json, quiet=quiet)
    return verdict.exit_code


def show(target: Target, /, *, parameters: Parameters = (), svg: Path | None = None) -> int:
    """Print the phase structure and the rounds (the help text is in `plait.cli.main`).

    Parameters
    ----------
    target
        A zoo name, a Python file, a Distal text, or package.module:function.
    parameters
        Set a parameter of the model: -p acceptors=3. Give it once per parameter.
    svg
        Draw the rounds of a phase in this file: the handlers by role and round, and the messages between them.
    """
    from plait.model.loading.loader import load
    from plait.report.phases.svg import phases_svg
    from plait.rounds.text.structure import phase_structure, structure_text

    writable(svg, "--svg")
    system = load(target, split(parameters))
    if svg is None:
        emit(structure_text(system))
    else:
        svg.write_text(phases_svg(phase_structure(system)), encoding="utf-8")
        note(f"picture: {svg}")
    return 0


def emit_program(
    target: Target,
    /,
    *,
    to: Language = "plait",
    output: Output = None,
    parameters: Parameters = (),
    assume: str = "none",
    phases: AtLeastOne = None,
) -> int:
    """Write the sequential program (the help text is in `plait.cli.main`).

    Parameters
    ----------
    target
        A zoo name, a Python file, or package.module:function.
    to
        The language of the program: plait is a model for plait check, python needs nothing but Python, c is for plait bmc,
        CBMC and other checkers of C, distal a Distal text, p a P program.
    output
        Write the program to this file; by default to stdout.
    parameters
        Set a parameter of the model: -p acceptors=3. Give it once per parameter.
    assume
        What the network delivers: none, reliable, n-f (n-1, …), majority, common, kernel, or module:predicate.
    phases
        The number of phases of the program; by default 3.
    """
    from plait.model.loading.loader import load
    from plait.rounds.emit.description import describe
    from plait.rounds.sequential import PHASES

    writable(output, "--output")
    system = load(target, split(parameters))
    if to == "python":
        from plait.rounds.emit.python.program import python_text

        source, use = python_text(describe(system, phases=phases or PHASES, assume=assume)), f"python {output}"
    elif to == "c":
        from plait.rounds.emit.c.program import c_text

        source, use = c_text(describe(system, phases=phases or PHASES, assume=assume)), f"plait bmc {output}"
    elif to == "distal":
        from plait.rounds.emit.distal.program import distal_text

        source, use = distal_text(describe(system, phases=phases or PHASES, assume=assume)), f"plait check {output}"
    elif to == "p":
        from plait.rounds.emit.p.program import p_text

        source, use = p_text(describe(system, phases=phases or PHASES, assume=assume)), f"plait check {output}"
    else:
        from plait.rounds.emit.plait import program_text

        source = program_text(system, phases=phases or PHASES, assume=assume)
        use = f"plait check {output}:sequential"
    if output is None:
        emit(source)
    else:
        output.write_text(source, encoding="utf-8")
        note(f"program: {output}  ({use})")
    return 0
