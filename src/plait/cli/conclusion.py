"""The end of a check: save the counterexamples, write the reports, print the verdict. All commands with a verdict use it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from plait.cli.output import colored, default_trace_path, emit, emit_json, note, ready, tell, width
from plait.kernel.deadline import Deadline, OutOfTimeError
from plait.kernel.errors import TraceError

if TYPE_CHECKING:
    from plait.cli.annotations import Annotations
    from plait.kernel.trace import Trace
    from plait.kernel.verdict import Verdict

T = TypeVar("T")


def built(build: Callable[[], T], clock: Deadline, target: str, search: str, *, json: bool, quiet: bool) -> T | int:
    """The model; if the time is over before it is built, print the verdict and return its exit code."""
    from plait.kernel.verdict import Verdict

    try:
        with clock.enforced():
            return build()
    except OutOfTimeError:
        verdict = Verdict.unfinished(
            target, "timeout", "while the model was built", search=search, seconds=clock.elapsed, properties=[]
        )
    show(verdict, json=json, quiet=quiet)
    return verdict.exit_code


def conclude(
    verdict: Verdict,
    name: str,
    parameters: Mapping[str, Any],
    *,
    json: bool,
    quiet: bool,
    trace: Path | None,
    html: Path | None,
    annotations: Annotations,
    every_step: bool,
) -> int:
    """Save what was found, then print it: whatever happens to stdout, the counterexample is not lost."""
    lines = save_traces(verdict, name, trace, parameters)
    if html is not None and write_report(verdict, html):
        lines.append(f"report: {html}")
    lines += annotations.write(verdict)
    show(verdict, json=json, quiet=quiet, every_step=every_step)
    for line in lines:
        tell(line, json=json)
    return verdict.exit_code


def show(verdict: Verdict, *, json: bool, quiet: bool, every_step: bool = False) -> None:
    """Print the verdict. A terminal gets an abridged text of a long run, unless all of it is wanted."""
    if json:
        emit_json(verdict.to_json())
    elif quiet:
        from plait.report.wording import headline

        emit(" ".join(headline(verdict)))
    else:
        from plait.report.text import verdict_text

        abridged = sys.stdout.isatty() and not every_step
        emit(verdict_text(verdict, color=colored(sys.stdout), width=width(), abridged=abridged))


def write_report(verdict: Verdict, file: Path) -> bool:
    """Write the HTML report. If this fails, the verdict is still valid."""
    from plait.report.html import report

    try:
        file.write_text(report(verdict), encoding="utf-8")
    except OSError as error:
        note(f"warning: the report is not written: --html: {file}: {error.strerror}\nhint: choose another file")
        return False
    return True


def save_traces(verdict: Verdict, model: str, chosen: Path | None, parameters: Mapping[str, Any]) -> list[str]:
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
        path = chosen if chosen is not None and number == 0 else default_trace_path(model, name, parameters)
        try:
            save_trace(counterexample, ready(path))
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
