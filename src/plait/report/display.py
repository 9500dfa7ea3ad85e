"""The renderer of values of the kernel, for `str(verdict)`, notebooks and `verdict.save` (`plait.kernel.rendering`)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from plait.kernel.classification import Classification
from plait.kernel.errors import UsageError
from plait.kernel.trace import Trace
from plait.kernel.verdict import Verdict
from plait.report.classification.text import classification_text
from plait.report.html import report, trace_page
from plait.report.itf import save_trace
from plait.report.notebook import trace_fragment, verdict_fragment
from plait.report.space_time.svg import space_time
from plait.report.text import trace_text, verdict_text

if TYPE_CHECKING:
    from plait.report.widget import ViewerWidget

T = TypeVar("T")

_FILE_WIDTH = 120
"""Columns of text in a file."""


def _json(verdict: Verdict) -> str:
    return msgspec.json.format(msgspec.json.encode(verdict.to_json()), indent=1).decode() + "\n"


_VERDICT_FORMATS: dict[str, Callable[[Verdict], str]] = {
    ".html": report,
    ".json": _json,
    ".txt": lambda verdict: verdict_text(verdict, width=_FILE_WIDTH) + "\n",
}
_TRACE_FORMATS: dict[str, Callable[[Trace], str]] = {
    ".svg": space_time,
    ".html": trace_page,
    ".txt": lambda trace: trace_text(trace, width=_FILE_WIDTH) + "\n",
}
"""By suffix: the content of the file. ITF, which is JSON, has a writer of its own."""


class Display:
    """Renders verdicts, traces and classifications."""

    def text(self, value: object) -> str:
        """The value for a terminal."""
        match value:
            case Verdict():
                return verdict_text(value)
            case Trace():
                return trace_text(value)
            case Classification():
                return classification_text(value)
        raise TypeError(f"{type(value).__name__} has no text form")

    def html(self, value: object) -> str:
        """The value for a notebook."""
        match value:
            case Verdict():
                return verdict_fragment(value)
            case Trace():
                return trace_fragment(value)
        raise TypeError(f"{type(value).__name__} has no HTML form")

    def widget(self, value: object) -> ViewerWidget:
        """The value as a widget, to step through its runs inside a notebook."""
        from plait.report.widget import run_widget

        match value:
            case Verdict() | Trace():
                return run_widget(value)
        raise TypeError(f"{type(value).__name__} has no widget")

    def save(self, value: object, path: str | os.PathLike[str]) -> None:
        """Write a verdict or a trace to a file, in the format of its suffix."""
        file = Path(path)
        name = file.name.lower()
        match value:
            case Trace() if name.endswith(".json"):
                save_trace(value, file)
                return
            case Trace():
                content = _written(file, "trace", value, _TRACE_FORMATS, [".itf.json", ".json", *_TRACE_FORMATS])
            case Verdict() if name.endswith((".itf.json", ".svg")):
                raise UsageError(
                    f"{file}: a trace is saved like this, not a verdict",
                    hint="save the counterexample: verdict.trace.save(…)",
                )
            case Verdict():
                content = _written(file, "verdict", value, _VERDICT_FORMATS, list(_VERDICT_FORMATS))
            case _:
                raise TypeError(f"{type(value).__name__} cannot be saved")
        try:
            file.write_text(content, encoding="utf-8")
        except OSError as error:
            raise UsageError(
                f"{file}: cannot be written: {error.strerror}",
                hint="give a path in a folder that exists and is writable",
            ) from None


def _written(file: Path, what: str, value: T, formats: dict[str, Callable[[T], str]], known: list[str]) -> str:
    """The content of a file, in the format of its suffix."""
    if (write := formats.get(file.suffix.lower())) is None:
        given = f"the suffix {file.suffix}" if file.suffix else "no suffix"
        raise UsageError(
            f"{file} has {given}: expected one of {', '.join(known)}",
            hint=f"for example {what}.save({f'run{known[0]}'!r})",
        )
    return write(value)
