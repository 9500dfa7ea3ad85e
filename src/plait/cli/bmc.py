"""`plait bmc`: check a program whose processes share variables, up to a depth."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from plait.cli.annotations import Annotations
from plait.cli.conclusion import built, conclude
from plait.cli.options import AtLeastOne, Count, Flag, Parameters, Quiet, Seconds, Size, split
from plait.cli.output import emit, emit_json, note, writable
from plait.kernel.deadline import Deadline
from plait.kernel.errors import UsageError

if TYPE_CHECKING:
    from plait.bmc.program.definition import Program
    from plait.kernel.verdict import Verdict
    from plait.report.annotations import SourceLine


def bmc(
    target: str,
    /,
    *,
    parameters: Parameters = (),
    depth: Count | None = None,
    properties: Annotated[tuple[str, ...], Parameter(name="--property", negative="", show_default=False)] = (),
    projection: Literal["auto", "on", "off"] = "auto",
    encoding: Literal["auto", "steps", "clock", "explicit"] = "auto",
    order: bool = True,
    width: AtLeastOne = None,
    induction: Flag = False,
    races: Flag = False,
    overflow: Flag = False,
    leaks: Flag = False,
    shortest: Flag = False,
    atomic: Flag = False,
    spurious: Flag = False,
    unwind: AtLeastOne = None,
    objects: AtLeastOne = None,
    threads: AtLeastOne = None,
    solver: Literal["z3", "bitwuzla", "cvc5"] = "z3",
    timeout: Seconds = None,
    memory: Size = None,
    slice: Annotated[tuple[str, ...], Parameter(name="--slice", negative=(), show_default=False)] = (),  # noqa: A002
    full: Flag = False,
    smt2: Path | None = None,
    json: Flag = False,
    trace: Path | None = None,
    witness: Path | None = None,
    html: Path | None = None,
    sarif: Path | None = None,
    github: Flag = False,
    all: Flag = False,  # noqa: A002 - the name of the option
    quiet: Quiet = False,
) -> int:
    """Check a program up to a depth (the help text is in `plait.cli.main`).

    Parameters
    ----------
    target
        A C file (program.c, program.i), Python code with threads or tasks (bank.py:main), a .plait file, a Python file
        with a program (counter.py:program), or a program of the zoo.
    parameters
        Replace a constant of the program, for example -p n=7. For C, define a macro, as gcc -D does.
    depth
        Check runs of at most this number of steps. Default: increase the depth until all runs are covered.
    properties
        Check only this property. Repeat the option for several properties.
    projection
        on: check only runs in which every step can influence the property. off: check all runs.
        auto: like on, but the encoding steps uses only the static analysis.
    encoding
        auto: enumerate all states; if this takes long, solvers join, and the first answer counts. explicit: all states,
        no solver. steps: a formula with a copy of the state after each step. clock: a formula with reads-from and clocks.
    order
        Fix the order of neighbouring independent steps, by process (only for the encoding steps).
    width
        Integers have this number of bits and wrap around. Default: mathematical integers.
    induction
        Try to prove the property for runs of any length by k-induction.
    races
        Look for data races too: two accesses to the same variable, not ordered, at least one of them a write.
    overflow
        C: an overflow of a signed number is a violation. By default, numbers wrap around.
    leaks
        C: a thread that is neither joined nor detached when main returns is a violation.
    shortest
        Show a shortest counterexample, even if a solver found another one. Enumeration always finds a shortest one.
    spurious
        C: pthread_cond_wait may return without a signal. A thread that waits is then never a deadlock.
    atomic
        Every statement of a .plait file is one step. This is your claim: Plait does not check it.
    unwind
        The maximal depth of recursion. Default: 8. If a run exceeds a limit, the verdict is inconclusive.
    objects
        The maximal number of objects that one allocation in the source makes. Default: 8.
    threads
        The maximal number of threads that one place in the source starts, if their number is not known. Default: 4.
    solver
        The solver. bitwuzla and cvc5 are optional packages.
    timeout
        Stop after this number of seconds. 2m and 1h are possible too.
    memory
        The memory limit of the solver, for example 500M or 4G.
    slice
        List the projections on this variable; check nothing. Repeat the option for several variables.
    full
        Show the whole run instead of its projection, with further steps of the other processes.
    smt2
        Write the formula of the first property at the given depth to this file.
    json
        Print exactly one JSON object on stdout.
    trace
        Save the counterexample to this file (ITF, JSON). Default: a file in .plait/.
    witness
        Write a violation witness in the GraphML format of SV-COMP to this file.
    html
        Write an HTML report to this file.
    sarif
        Write what does not hold to this file as SARIF, for code scanning.
    github
        Print what does not hold as annotations of GitHub Actions.
    all
        Print every step of a long counterexample. By default, a terminal shows the first and the last steps.
    quiet
        Print no progress, and only one line of the verdict.
    """
    for path, option in (
        (trace, "--trace"),
        (html, "--html"),
        (smt2, "--smt2"),
        (sarif, "--sarif"),
        (witness, "--witness"),
    ):
        writable(path, option)
    from plait.bmc.load import Reading, load

    given = split(parameters)
    usual = Reading()
    reading = Reading(
        unwind or usual.unwind, objects or usual.objects, threads or usual.threads, overflow, leaks, atomic, spurious
    )
    clock = Deadline(timeout)
    program = built(lambda: load(target, given, reading), clock, target, "bmc", json=json, quiet=quiet)
    if isinstance(program, int):
        return program
    constants = {
        name: value if (known := program.constants.get(name)) is None else known for name, value in given.items()
    } | reading.changed()
    if not quiet and not json:
        for text in program.notes:
            note(text)
    if slice:
        return _slices(program, list(slice), depth, width, json)
    from plait.bmc.api import check
    from plait.cli.progress import ProgressLine

    if smt2 is not None:
        _write_formula(program, smt2, depth, properties, projection, encoding, order, width)
    with nullcontext() if quiet else ProgressLine() as shown:
        verdict = check(
            program,
            depth=depth,
            encoding=encoding,
            projection=projection,
            order=order,
            properties=list(properties) or None,
            width=width,
            induction=induction,
            races=races,
            shortest=shortest,
            solver=solver,
            timeout=clock.left,
            memory=memory,
            full=full,
            target=target,
            parameters=constants,
            progress=(lambda _: None) if shown is None else shown.say,
        )
    if witness is not None:
        _write_witness(program, verdict, witness)
    file, _, function = target.rpartition(":") if ".py:" in target else (target, "", "")
    return conclude(
        verdict,
        f"{Path(file).stem}-{function}" if function else Path(file).stem,
        constants,
        json=json,
        quiet=quiet,
        trace=trace,
        html=html,
        annotations=Annotations(*_places(program, target), sarif=sarif, github=github),
        every_step=all,
    )


def _places(program: Program, target: str) -> tuple[dict[str, SourceLine], SourceLine | None]:
    """The lines of the properties that the program states, if it is a file."""
    from plait.report.annotations import SourceLine

    file = next((name for name in (target, target.rpartition(":")[0]) if Path(name).is_file()), None)
    if file is None:
        return {}, None
    first = program.source.first_line
    known = {
        p.name: SourceLine(file, p.place.line) for p in program.properties if p.place.text and p.place.line >= first
    }
    return known, SourceLine(file, first)


def _write_witness(program: Program, verdict: Verdict, file: Path) -> None:
    from plait.bmc.execution.violation_witness import witness

    if verdict.status != "violated" or verdict.trace is None:
        note("no witness: nothing is violated")
        return
    _write("--witness", file, witness(program, verdict.trace))
    note(f"witness: {file}")


def _write(option: str, file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{option}: {file} cannot be written: {error.strerror}", hint="choose another file") from None


def _write_formula(
    program: Program,
    file: Path,
    depth: int | None,
    properties: tuple[str, ...],
    projection: Literal["auto", "on", "off"],
    encoding: Literal["auto", "steps", "clock", "explicit"],
    order: bool,
    width: int | None,
) -> None:
    from plait.bmc.api import formula

    if depth is None or encoding == "explicit":
        raise UsageError(
            "--smt2 needs a depth and an encoding with a formula",
            hint="give --depth 20, and --encoding steps or clock",
        )
    text = formula(program, depth, properties[0] if properties else None, encoding, projection, order, width)
    _write("--smt2", file, text)
    note(f"formula: {file}")


def _slices(program: Program, names: list[str], depth: int | None, width: int | None, json: bool) -> int:
    from plait.bmc.analysis.slices import slices

    found = slices(program, names, depth, width)
    if json:
        emit_json(found.to_json())
        return 0
    runs = f"{found.runs:,} run{'s' if found.runs != 1 else ''}"
    limit = f" of at most {depth} steps" if depth is not None else ""
    count = len(found.projections)
    lines = [f"{count:,} projection{'s' if count != 1 else ''} on {', '.join(names)} of {runs}{limit}"]
    digits = len(str(count))
    for number, (steps, values) in enumerate(found.projections, 1):
        lines.append(f"{number:>{digits + 2}}. {', '.join(f'{n} = {v}' for n, v in values.items())}")
        lines += [f"{'':>{digits + 6}}{process}  {label}" for process, label in steps] or [f"{'':>{digits + 6}}no step"]
    emit("\n".join(lines))
    return 0
