"""`plait bmc`: check a program of processes over shared variables, up to a depth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from plait.cli.check import save_traces, show, write_report
from plait.cli.options import AtLeastOne, Count, Flag, Parameters, Quiet, Seconds, Size, split
from plait.cli.output import emit, note, writable
from plait.kernel.errors import UsageError

if TYPE_CHECKING:
    from plait.bmc.language.program import Program


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
    solver: Literal["z3", "bitwuzla", "cvc5"] = "z3",
    timeout: Seconds = None,
    memory: Size = None,
    slice: tuple[str, ...] = (),  # noqa: A002
    full: Flag = False,
    smt2: Path | None = None,
    json: Flag = False,
    trace: Path | None = None,
    html: Path | None = None,
    quiet: Quiet = False,
) -> int:
    """Check a program up to a depth (the help text is in `plait.cli.main`).

    Parameters
    ----------
    target
        A .plait file, or a Python file with a program (counter.py or counter.py:program).
    parameters
        Replace a constant of the program, as in -p n=7.
    depth
        Look at runs of at most so many steps. By default longer and longer ones, until every run is covered.
    properties
        Check this property only. Give it once per property.
    projection
        on: look only at runs whose every step can influence the property. auto: the same, but by steps only as far as it
        is known before solving.
    encoding
        steps: a state after each step. clock: reads-from and clocks. explicit: no solver, all states.
    order
        Of neighbouring steps that are independent, the one of the first process comes first (steps only).
    width
        Make integers bit-vectors of so many bits that wrap around; by default they are mathematical.
    induction
        Try to prove the property for runs of any length, by k-induction.
    solver
        The solver; bitwuzla and cvc5 must be installed.
    timeout
        Stop after so many seconds; 2m and 1h are understood.
    memory
        The most memory that the solver may use: 500M, 4G.
    slice
        List the projections on this variable instead of checking anything. Give it once per variable.
    full
        Show the whole run that was found instead of its projection, and let it go on with what others can do besides.
    smt2
        Write the formula of the (first) property to this file, for the depth that was given.
    json
        Print exactly one JSON object on stdout.
    trace
        Save the counterexample in this file instead of in .plait/, as ITF (JSON).
    html
        Write a report to this file, to be opened in a browser.
    quiet
        Print no progress, and of the verdict one line.
    """
    for path, option in ((trace, "--trace"), (html, "--html"), (smt2, "--smt2")):
        writable(path, option)
    from plait.bmc import load

    given = split(parameters)
    program = load(target, given)
    constants = {
        name: value if (known := program.constants.get(name)) is None else known for name, value in given.items()
    }
    if slice:
        return _slices(program, list(slice), depth, width, json)
    from plait.bmc.api import check

    if smt2 is not None:
        _write_formula(program, smt2, depth, properties, projection, encoding, order, width)
    verdict = check(
        program,
        depth=depth,
        encoding=encoding,
        projection=projection,
        order=order,
        properties=list(properties) or None,
        width=width,
        induction=induction,
        solver=solver,
        timeout=timeout,
        memory=memory,
        full=full,
        target=target,
        parameters=constants,
        progress=(lambda _: None) if quiet else note,
    )
    show(verdict, json=json, quiet=quiet)
    say = note if json else emit
    for line in save_traces(verdict, Path(target).stem, trace):
        say(line)
    if html is not None:
        write_report(verdict, html)
        say(f"report: {html}")
    return verdict.exit_code


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
        raise UsageError("--smt2 needs a depth and an encoding that has a formula", hint="give --depth K")
    text = formula(program, depth, properties[0] if properties else None, encoding, projection, order, width)
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--smt2: {file} cannot be written: {error.strerror}", hint="choose another file") from None
    note(f"formula: {file}")


def _slices(program: Program, names: list[str], depth: int | None, width: int | None, json: bool) -> int:
    from plait.bmc.analysis.slices import slices

    found = slices(program, names, depth, width)
    if json:
        import msgspec

        emit(msgspec.json.encode(found.to_json()).decode())
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
