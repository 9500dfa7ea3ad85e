"""`plait conform`: whether logs of an implementation are runs of a model."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from plait.cli.options import AtLeastOne, Flag, Parameters, Quiet, Seconds, Target, split
from plait.cli.output import colored, emit, emit_json, note, width, writable
from plait.kernel.errors import UsageError

if TYPE_CHECKING:
    from plait.conform.log import Log
    from plait.kernel.verdict import Conformance

Format = Literal["auto", "plait", "otel"]
_PAUSE = 0.2
"""Seconds between two looks at files that are followed."""


def conform(
    target: Target,
    logs: Annotated[tuple[Path, ...], Parameter(negative="")],
    /,
    *,
    parameters: Parameters = (),
    complete: Annotated[tuple[str, ...], Parameter(negative="", show_default=False)] = (),
    open: Flag = False,  # noqa: A002 - the name of the option
    merge: Flag = False,
    map: Path | None = None,  # noqa: A002 - the name of the option
    format: Format = "auto",  # noqa: A002 - the name of the option
    follow: Flag = False,
    max_states: AtLeastOne = None,
    timeout: Seconds = None,
    coverage: Flag = False,
    html: Path | None = None,
    json: Flag = False,
    quiet: Quiet = False,
) -> int:
    """Compare logs with a model (the help text is in `plait.cli.main`).

    Parameters
    ----------
    target
        A name of the zoo, a Python file (models/token.py or models/token.py:ring), or package.module:function.
    logs
        Files of events. Each is the log of one run. A folder has the logs (.jsonl) of one run.
    parameters
        Set a parameter of the model, as in -p acceptors=3. plait show TARGET lists the parameters.
    complete
        What the logs leave out nowhere: steps, sends, receives, or a handler; of a role with @Role. Repeat it for several.
    open
        The logs may end early: what a process does after its last event is not known.
    merge
        All files are logs of one run, for example one file per process.
    map
        A Python file with a function that is marked @conforms: it turns lines into events. By default, that of the model.
    format
        The format of the files: plait, otel (spans of OpenTelemetry as JSON), or auto.
    follow
        Check again whenever lines are added, until the logs deviate. Ctrl-C ends it.
    max_states
        Stop a search after this many states; by default 2 million. Then the result is inconclusive.
    timeout
        Stop a search after this many seconds; 2m and 1h are understood.
    coverage
        Say which branches of the model the runs take, and which messages they use.
    html
        Write the log and the run side by side to this HTML file.
    json
        Print exactly one JSON object on stdout.
    quiet
        Print only one line for each log.
    """
    from plait.conform.mapping import mapping_in, mapping_of
    from plait.conform.search import MOST_STATES
    from plait.conform.search import conform as search
    from plait.model.loading.loader import load

    writable(html, "--html")
    system = load(target, split(parameters))
    function = mapping_in(map) if map is not None else mapping_of(system)

    def checked(log: Log, left: float | None = timeout) -> Conformance:
        return search(
            system,
            log,
            complete=complete,
            open=open or follow,
            max_states=max_states or MOST_STATES,
            timeout=left,
            coverage=coverage,
            traced=html is not None or json,
        )

    if follow:
        if json or html is not None:
            raise UsageError("--follow cannot be combined with --json or --html", hint="leave one of them out")
        return _followed(_files(logs), lambda one, lines: _read(one, lines, format, function), checked, quiet)
    runs = [_files(logs)] if merge else [_files([one]) for one in logs]
    found = []
    for files in runs:
        found.append(checked(_merged([_read(str(file), _lines(file), format, function) for file in files])))
        if not json:
            _show(found[-1], quiet)
    if html is not None:
        _write(found, html)
    code = _code(found)
    if json:
        from plait.report.conformance import conformance_json

        emit_json({"exit_code": code, "logs": [conformance_json(one) for one in found]})
    elif len(found) > 1:
        emit(f"{sum(one.exit_code == 0 for one in found)} of {len(found)} logs conform")
    return code


def _code(found: Sequence[Conformance]) -> int:
    """1 if a log does not conform, else 3 if one is inconclusive."""
    codes = {one.exit_code for one in found}
    return 1 if 1 in codes else max(codes, default=0)


def _files(logs: Sequence[Path]) -> list[Path]:
    """The files of one run."""
    found: list[Path] = []
    for one in logs:
        inside = sorted(one.glob("*.jsonl")) if one.is_dir() else [one]
        if not inside:
            raise UsageError(f"{one} has no logs", hint="the logs of a folder end in .jsonl")
        found += inside
    return found


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"{file} cannot be read: {why}", hint="give a file with one JSON object per line") from None


def _read(name: str, lines: Iterable[str], format_: Format, function: Callable[..., object] | None) -> Log:
    from plait.conform.log import read_lines
    from plait.conform.mapping import mapped
    from plait.conform.opentelemetry import read_spans

    if format_ == "plait" or (format_ == "auto" and function is None and not name.endswith(".otlp.json")):
        return read_lines(name, lines)
    if format_ == "otel" or function is None:
        return read_spans(name, [f"{line}\n" for line in lines])
    return mapped(name, lines, function)


def _merged(logs: Sequence[Log]) -> Log:
    from plait.conform.log import merged

    return merged(logs)


def _show(found: Conformance, quiet: bool) -> None:
    from plait.report.conformance import conformance_text, headline

    if quiet:
        emit(" ".join(headline(found)))
    else:
        emit(conformance_text(found, color=colored(sys.stdout), width=width()))


def _write(found: Sequence[Conformance], file: Path) -> None:
    """The page of the first log that does not conform, or of the first log."""
    from plait.report.conformance import conformance_page

    shown = next((one for one in found if one.exit_code), found[0])
    try:
        file.write_text(conformance_page(shown), encoding="utf-8")
    except OSError as error:
        note(f"warning: the report is not written: --html: {file}: {error.strerror}\nhint: choose another file")
    else:
        note(f"report: {file}  ({shown.log})")


class _Tail:
    """A file that is written, or a pipe."""

    def __init__(self, file: Path) -> None:
        try:
            self._stream = file.open(encoding="utf-8", errors="replace")
        except OSError as error:
            raise UsageError(f"{file} cannot be read: {error.strerror}", hint="the file must exist already") from None
        self.is_pipe = not stat.S_ISREG(os.fstat(self._stream.fileno()).st_mode)
        self.ended = False
        self.text = ""

    def read(self) -> None:
        """Read what is there: of a pipe, the next line."""
        if not self.is_pipe:
            self.text += self._stream.read()
        elif not self.ended:
            line = self._stream.readline()
            self.ended = not line
            self.text += line


def _followed(
    files: Sequence[Path],
    read: Callable[[str, Iterable[str]], Log],
    checked: Callable[[Log], Conformance],
    quiet: bool,
) -> int:
    """Check what the files have, again and again. The end of all pipes ends it, as Ctrl-C does."""
    tails = [_Tail(file) for file in files]
    known: list[str] = []
    """What the last check has seen."""
    found: Conformance | None = None
    begun = took = 0.0
    with suppress(KeyboardInterrupt):
        while True:
            for tail in tails:
                tail.read()
            done = all(tail.ended for tail in tails)
            whole = [tail.text if done else tail.text[: tail.text.rfind("\n") + 1] for tail in tails]
            # A check begins anew, so that it pauses for as long as it takes.
            if whole != known and any(whole) and (done or time.monotonic() - begun >= took):
                begun, known = time.monotonic(), whole
                log = _merged([read(str(f), text.splitlines()) for f, text in zip(files, whole, strict=True)])
                last, found = found, checked(log)
                took = 2 * (time.monotonic() - begun)
                if found.exit_code == 1:
                    _show(found, quiet)
                    return 1
                if not quiet and (last is None or last.explained != found.explained):
                    emit(f"{found.status} so far: {found.explained:,} of {found.events:,} events")
            if done:
                break
            if not any(tail.is_pipe for tail in tails):
                time.sleep(_PAUSE)
    return 0 if found is None else found.exit_code
