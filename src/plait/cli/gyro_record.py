"""`plait gyro record`: run the tests of a web application, and write the statements of its endpoints."""

from __future__ import annotations

from pathlib import Path

from plait.cli.options import after_dashes
from plait.cli.output import note
from plait.kernel.errors import UsageError
from plait.kernel.extras import require
from plait.report.wording import plural


def record(recording: Path, /) -> int:
    """Record a web application (the help text is in `plait.cli.main`).

    Parameters
    ----------
    recording
        The file to write, with the suffix .yaml.
    """
    require("gyro")
    from plait.gyro.web.recording import record as run

    command = after_dashes()
    if not command:
        raise UsageError(
            "no command that runs the tests", hint=f"give it after --: plait gyro record {recording} -- pytest"
        )
    if recording.suffix not in (".yaml", ".yml"):
        raise UsageError(f"{recording}: expected the suffix .yaml", hint=f"{recording.stem}.yaml, for example")
    code, found = run(command)
    if code != 0:
        raise UsageError(
            f"{command[0]} ended with exit code {code}: nothing is recorded",
            hint="the recording must come from tests that pass",
        )
    if found is None:
        raise UsageError(
            "no request executed SQL",
            hint="the tests must call an application of Flask, FastAPI or Django in a Python process, with SQLite",
        )
    try:
        recording.write_text(found.text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{recording} cannot be written: {error.strerror}", hint="choose another file") from None
    for warning in found.warnings:
        note(f"warning: {warning}")
    note(
        f"{recording}: {plural(found.requests, 'request')} of {plural(found.endpoints, 'endpoint')}, "
        f"{plural(found.statements, 'statement')}"
    )
    return 0
