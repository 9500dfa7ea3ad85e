"""Output of commands: data goes to stdout, errors and notes go to stderr. A bad stream does not change a verdict.

Inside `safe_streams`, both streams are a `Stream`, which never raises. If stdout is closed or full, one line on stderr
says so; the exit code stays. A stream that is not UTF-8 gets ASCII art instead of the characters that it does not have.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from plait.kernel.errors import UsageError

FOLDER = Path(".plait")
"""The folder for traces, if no file is given."""

_PLAIN_WIDTH = 120
_LONGEST_NAME = 100
_CONTROL = re.compile(r"[^\w.+=,-]+")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


class Stream(io.TextIOBase):
    """A text stream that never raises: what cannot be written is dropped."""

    def __init__(self, stream: TextIO | None, name: str) -> None:
        self._stream = stream
        self._name = name
        self.broken: str | None = "it is closed" if stream is None else None
        """Why output is lost, or None."""
        self.failed = False
        """Whether output was lost that a reader still wanted."""
        self._told = False
        self.objects = 0
        """The number of JSON objects that were written."""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return getattr(self._stream, "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        with suppress(ValueError):
            return self._stream is not None and self.broken is None and self._stream.isatty()
        return False

    def fileno(self) -> int:
        if self._stream is None:
            raise io.UnsupportedOperation("fileno")
        return self._stream.fileno()

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        if self.broken is None and self._stream is not None:
            try:
                self._stream.write(self._fitted(text))
            except (OSError, ValueError) as error:
                self._lose(error)
        if self.broken is not None and text:
            self._tell()
        return len(text)

    def flush(self) -> None:
        if self.broken is None and self._stream is not None:
            try:
                self._stream.flush()
            except (OSError, ValueError) as error:
                self._lose(error)
                self._tell()

    def __del__(self) -> None:
        """Do not flush: the stream below is not ours, and may be closed when this one is collected."""

    @property
    def buffer(self) -> Any:
        """The bytes below, for code of the user's that wants them."""
        return getattr(self._stream, "buffer", io.BytesIO())

    def _fitted(self, text: str) -> str:
        try:
            text.encode(self.encoding)
        except UnicodeEncodeError:
            from plait.report.ascii_art import fitted

            return fitted(text, self.encoding)
        return text

    def _lose(self, error: OSError | ValueError) -> None:
        self.broken = getattr(error, "strerror", None) or str(error)
        gone = isinstance(error, BrokenPipeError)  # `plait … | head`: nobody wants the rest
        self._told, self.failed = gone, not gone
        if self._stream is not None:
            # What is buffered goes to the null device. Otherwise Python complains at exit.
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())

    def _tell(self) -> None:
        if not self._told and self._name == "stdout":
            self._told = True
            note(f"warning: stdout cannot be written: {self.broken}; the output is lost")


_data: Stream | None = None
"""Where data goes, inside `safe_streams`."""


@contextmanager
def safe_streams(*, only_data: bool = False) -> Iterator[Stream]:
    """Make stdout and stderr safe. With `only_data`, only `emit` writes to stdout: what else is printed goes to stderr."""
    global _data
    before, outer = (sys.stdout, sys.stderr), _data
    out, err = Stream(sys.stdout, "stdout"), Stream(sys.stderr, "stderr")
    _data, sys.stdout, sys.stderr = out, err if only_data else out, err
    try:
        yield out
    finally:
        out.flush()
        err.flush()
        _data, (sys.stdout, sys.stderr) = outer, before


def emit(text: str) -> None:
    """Print data."""
    stream = _data or sys.stdout
    stream.write(text if text.endswith("\n") else text + "\n")
    stream.flush()


def emit_json(data: Any) -> None:
    """Print one JSON object, which may have any values that msgspec encodes."""
    import msgspec

    _emit_object(msgspec.json.encode(data).decode())


def emit_error(kind: str, message: str, hint: str | None, code: int) -> None:
    """Print the JSON object of an error, unless an object was printed before."""
    if _data is None or not _data.objects:
        said = {"kind": kind, "message": message, "hint": hint, "exit_code": code}
        _emit_object(json.dumps({"error": said}, separators=(",", ":")))


def _emit_object(text: str) -> None:
    if _data is not None:
        _data.objects += 1
        if _data.encoding.lower().replace("-", "") != "utf8":
            text = _NOT_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text)
    emit(text)


def tell(text: str, *, json: bool = False) -> None:
    """Print a line for the user: on stdout, or on stderr if stdout is lost or for JSON."""
    (note if json or (_data is not None and _data.broken) else emit)(text)


def note(text: str) -> None:
    """Print a text for the user that is not data."""
    with suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)  # noqa: T201


def complain(message: str, hint: str | None = None) -> None:
    """Print `error: …` and `hint: …`."""
    error, label = ("\x1b[1;31merror:\x1b[0m", "\x1b[1;36mhint:\x1b[0m") if colored(sys.stderr) else ("error:", "hint:")
    note(f"{error} {message}" + (f"\n{label} {hint}" if hint else ""))


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


def default_trace_path(model: str, violated: str, parameters: Mapping[str, Any] | None = None) -> Path:
    """The file for the counterexample of a property, if no file is given. Other parameters give another file.

    >>> str(default_trace_path("paxos", "agreement", {"faulty": "acceptor", "acceptors": 5}))
    '.plait/paxos-agreement-acceptors=5-faulty=acceptor.itf.json'
    >>> str(default_trace_path("paxos", "agreement", {"names": ["a b", "a-b"]}))
    '.plait/paxos-agreement-b9c5ca43.itf.json'
    """
    given = dict(sorted((parameters or {}).items()))
    parts = [f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in given.items()]
    name = file_name(model, violated, *parts)
    if len(name) > _LONGEST_NAME or any(_CONTROL.search(part) for part in parts):
        import hashlib

        digest = hashlib.sha256(json.dumps(given, default=str, sort_keys=True).encode()).hexdigest()[:8]
        name = f"{file_name(model, violated)[:_LONGEST_NAME]}-{digest}"
    return FOLDER / f"{name}.itf.json"


def ready(file: Path) -> Path:
    """Make the folder of a file. A folder of Plait's own tells Git to ignore it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    for folder in file.parents:
        if folder.name == FOLDER.name and not (folder / ".gitignore").exists():
            (folder / ".gitignore").write_text("*\n", encoding="ascii")
    return file


def writable(path: Path | None, option: str) -> None:
    """Refuse a file that cannot be written. Call this before a long search."""
    if path is None:
        return
    if path.is_dir() or not path.parent.is_dir():
        what = "is a folder" if path.is_dir() else f"cannot be written: there is no folder {path.parent}"
        raise UsageError(f"{option}: {path} {what}", hint="give the name of a file in a folder that exists")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"{option}: {path} cannot be written", hint="check its permissions, or choose another file")
