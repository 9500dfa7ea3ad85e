"""Output of commands: data goes to stdout, errors and notes go to stderr. A closed pipe does not end a command."""

from __future__ import annotations

import os
import re
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from plait.kernel.errors import UsageError

FOLDER = Path(".plait")
"""The folder for traces, if no file is given."""

_PLAIN_WIDTH = 120
_CONTROL = re.compile(r"[^\w.+=,-]+")


def emit(text: str) -> None:
    """Print data. If the reader closes the pipe (`plait … | head`), the rest is dropped; the exit code stays."""
    try:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _discard(sys.stdout)


def note(text: str) -> None:
    """Print a text for the user that is not data."""
    with suppress(BrokenPipeError):
        print(text, file=sys.stderr, flush=True)  # noqa: T201


def complain(message: str, hint: str | None = None) -> None:
    """Print `error: …` and `hint: …`."""
    error, label = ("\x1b[1;31merror:\x1b[0m", "\x1b[1;36mhint:\x1b[0m") if colored(sys.stderr) else ("error:", "hint:")
    note(f"{error} {message}" + (f"\n{label} {hint}" if hint else ""))


def close() -> None:
    """Flush the streams, so that Python does not print a traceback at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (BrokenPipeError, ValueError):
            _discard(stream)


def _discard(stream: TextIO) -> None:
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def colored(stream: TextIO) -> bool:
    """Whether to use colours: on a terminal, or if FORCE_COLOR is set; never if NO_COLOR is set."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")


def width() -> int:
    """The number of columns of text on stdout."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _PLAIN_WIDTH


def file_name(*parts: str) -> str:
    """A file name, made of names of models and properties.

    >>> file_name("test_paxos[3]", "agreement")
    'test_paxos-3-agreement'
    """
    return "-".join(p for part in parts if (p := _CONTROL.sub("-", part).strip("-."))) or "trace"


def default_trace_path(model: str, violated: str) -> Path:
    """The file for the counterexample of a property, if no file is given."""
    return FOLDER / f"{file_name(model, violated)}.itf.json"


def writable(path: Path | None, option: str) -> None:
    """Refuse a file that cannot be written. Call this before a long search."""
    if path is None:
        return
    if path.is_dir() or not path.parent.is_dir():
        what = "is a folder" if path.is_dir() else f"cannot be written: there is no folder {path.parent}"
        raise UsageError(f"{option}: {path} {what}", hint="give the name of a file in a folder that exists")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"{option}: {path} cannot be written", hint="check its permissions, or choose another file")
