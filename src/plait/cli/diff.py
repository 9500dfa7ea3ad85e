"""`plait diff`: two traces side by side, and how they differ."""

from __future__ import annotations

import sys
from pathlib import Path

from plait.cli.options import Flag, Parameters, Quiet, Target, split
from plait.cli.output import colored, emit, emit_json, note, width, writable
from plait.kernel.errors import TraceError, UsageError
from plait.kernel.trace import Trace


def diff(
    first: Path,
    second: Target,
    /,
    *,
    parameters: Parameters = (),
    json: Flag = False,
    html: Path | None = None,
    quiet: Quiet = False,
) -> int:
    """Compare two traces (the help text is in `plait.cli.main`).

    Parameters
    ----------
    first
        A saved trace, the output of plait check --json, or a folder that plait epa run recorded.
    second
        Another trace. Or a model: the first trace is replayed on it as far as possible.
    parameters
        Set a parameter of this model, as in -p faulty=none.
    json
        Print exactly one JSON object on stdout.
    html
        Write a page with both diagrams to this file.
    quiet
        Print one line.
    """
    import msgspec

    from plait.kernel.alignment import align
    from plait.kernel.renaming import by_position, renamed
    from plait.report import diff as words

    writable(html, "--html")
    one = load(first)
    other, unfair = _other(one, second, split(parameters))
    as_named = by_position([lane.name for lane in other.lanes], [lane.name for lane in one.lanes])
    other = renamed(other, as_named)
    found = msgspec.structs.replace(align(one, other), unfair=unfair)
    names = (str(first), second if _is_trace(second) else f"the steps of A on {second}")
    if json:
        summary = {"same": found.same, "headline": words.headline(one, other, found), "renamed": as_named}
        emit_json(summary | msgspec.to_builtins(found))
    elif quiet:
        emit(words.headline(one, other, found))
    else:
        emit(words.diff_text(one, other, found, names, as_named, width=width(), color=colored(sys.stdout)))
    if html is not None:
        from plait.report.diff_html import diff_page

        try:
            html.write_text(diff_page(one, other, found, names, as_named), encoding="utf-8")
        except OSError as error:
            raise UsageError(
                f"--html: {html} cannot be written: {error.strerror}", hint="choose another file"
            ) from None
        note(f"report: {html}")
    return 0 if found.same else 1


def _other(one: Trace, second: str, parameters: dict[str, str]) -> tuple[Trace, str | None]:
    """The second trace; or the first one replayed on a model, with the fairness assumption that its loop breaks."""
    if _is_trace(second):
        if parameters:
            raise UsageError(f"-p sets parameters of a model, but {second} is a trace", hint="leave -p out")
        return load(Path(second)), None
    if second.endswith(".json"):
        raise TraceError(f"{second}: cannot be read: there is no such file", hint="give a trace that plait check saved")
    from plait.check.explain.execute import retraced, unfairness
    from plait.model.loading.loader import load as model

    system = model(second, parameters)
    other = retraced(system, one)
    return other, None if other.loop is None else unfairness(system, one)


def _is_trace(given: str) -> bool:
    """Whether a file or folder is a trace, not a model."""
    path = Path(given)
    return path.is_dir() or (path.is_file() and path.suffix not in (".py", ".distal", ".p"))


def load(path: Path) -> Trace:
    """The trace in a file or folder. It reads all formats that Plait writes."""
    from plait.report.itf import load_trace

    if path.is_dir():
        from plait.epa.lanes import sync_trace
        from plait.epa.recording import Recording

        return sync_trace(Recording(path))
    verdict = _verdict(path)
    if verdict is None:
        return load_trace(path)
    import msgspec

    if verdict.get("trace") is None:
        raise TraceError(
            f"{path}: this verdict ({verdict['verdict']}) has no trace",
            hint="give a verdict with a violated property: only such a verdict has a trace",
        )
    try:
        return msgspec.convert(verdict["trace"], Trace)
    except msgspec.ValidationError as error:
        raise TraceError(f"{path}: the trace is not as expected: {error}", hint="run plait check again") from None


def _verdict(path: Path) -> dict[str, object] | None:
    """The output of `plait check --json`. None for other files."""
    import msgspec

    try:
        raw = msgspec.json.decode(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return raw if isinstance(raw, dict) and "verdict" in raw and "trace" in raw else None
