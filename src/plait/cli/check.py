"""`plait check`: search a model's states, and print the verdict."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from plait.check.options import Options
from plait.cli.options import AtLeastOne, Flag, Parameters, Quiet, Target, flags
from plait.cli.options import split as assignments
from plait.cli.output import colored, default_trace_path, emit, note, width, writable
from plait.kernel.errors import TraceError, UsageError

if TYPE_CHECKING:
    from plait.kernel.trace import Trace
    from plait.kernel.verdict import Verdict

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
    phases: AtLeastOne = None,
    json: Flag = False,
    trace: Path | None = None,
    html: Path | None = None,
    all: Flag = False,  # noqa: A002 - the name of the option
    quiet: Quiet = False,
) -> int:
    """Search a model's states (the help text is in `plait.cli.main`).

    Parameters
    ----------
    target
        A zoo name, a Python file (models/token.py or models/token.py:ring), a Distal file, or package.module:function.
    parameters
        Set a parameter of the model, as in -p acceptors=3. Repeat -p for several parameters. plait show TARGET lists all.
    rounds
        Check the sequential program of a round-based protocol (plait rounds --help). Violations are shown on the protocol.
    assume
        What the network delivers, with --rounds: none, reliable, n-f (n-1, …), majority, common, kernel, module:predicate.
    phases
        Search this many phases, with --rounds; by default 3.
    json
        Print exactly one JSON object on stdout.
    trace
        Save the counterexample in this file instead of in .plait/, as ITF (JSON).
    html
        Write a report to this HTML file.
    all
        Print every step of a long counterexample. By default, a terminal shows the first and the last steps.
    quiet
        Print no progress, and only one line of the verdict.
    """
    from contextlib import nullcontext

    from plait.check import api
    from plait.cli.progress import ProgressLine
    from plait.model.loader import load

    writable(trace, "--trace")
    writable(html, "--html")
    run: Callable[..., Verdict] = api.check
    if rounds:
        run = _rounds(phases, assume, options)
    elif assume is not None or phases is not None:
        given = "--assume" if assume is not None else "--phases"
        raise UsageError(f"{given} needs --rounds", hint=f"add --rounds: plait check {target} --rounds {given} …")
    system = load(target, assignments(parameters))
    with nullcontext() if quiet else ProgressLine() as progress:
        verdict = run(system, options, progress=progress)
    show(verdict, json=json, quiet=quiet, every_step=all)
    say = note if json else emit
    for line in save_traces(verdict, system.name, trace):
        say(line)
    if html is not None:
        write_report(verdict, html)
        say(f"report: {html}")
    return verdict.exit_code


def _rounds(phases: int | None, assume: str | None, options: Options) -> Callable[..., Verdict]:
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
    return partial(check_rounds, phases=phases or PHASES, assume="none" if assume is None else assume)


def show(verdict: Verdict, *, json: bool, quiet: bool, every_step: bool = False) -> None:
    """Print the verdict. A terminal gets an abridged text of a long run, unless all of it is wanted."""
    if json:
        import msgspec

        emit(msgspec.json.encode(verdict.to_json()).decode())
    elif quiet:
        from plait.report.wording import headline

        emit(" ".join(headline(verdict)))
    else:
        from plait.report.text import verdict_text

        abridged = sys.stdout.isatty() and not every_step
        emit(verdict_text(verdict, color=colored(sys.stdout), width=width(), abridged=abridged))


def write_report(verdict: Verdict, file: Path) -> None:
    """Write the HTML report."""
    from plait.report.html import report

    try:
        file.write_text(report(verdict), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--html: {file} cannot be written: {error.strerror}", hint="choose another file") from None


def save_traces(verdict: Verdict, model: str, chosen: Path | None) -> list[str]:
    """Save every counterexample, the first one to the chosen file. Return the lines that say how to replay them."""
    found: list[tuple[str, Trace]] = []
    if verdict.status == "violated" and verdict.trace is not None:
        found.append((verdict.property or "counterexample", verdict.trace))
    for result in verdict.properties:
        if result.status == "violated" and result.trace is not None and result.name != verdict.property:
            found.append((result.name, result.trace))
    if not found:
        if chosen is not None:
            note(f"note: {chosen} is not written: there is no counterexample")
        return []

    from plait.report.itf import save_trace

    lines = []
    for number, (name, counterexample) in enumerate(found):
        path = chosen if chosen is not None and number == 0 else default_trace_path(model, name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            save_trace(counterexample, path)
        except (OSError, TraceError) as error:
            # The verdict is valid; only its replay is lost.
            note(f"warning: the counterexample is not saved: {error}\nhint: give --trace FILE")
        else:
            lines.append(replay_line(path))
    return lines


def replay_line(path: Path) -> str:
    """The command that replays a saved trace."""
    import shlex

    return f"replay: plait replay {shlex.quote(str(path))}"
