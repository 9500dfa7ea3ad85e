"""The files of a model, and whether one of them was saved since the model was loaded.

A process that loads a model reports the files whose code it runs, each with its stamp (`report_files`). Another process
reads the report (`Files`). A file whose stamp differs from the reported one was saved.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from plait.model.loading.loader import is_users, named_file

INTERVAL = 0.2
"""Seconds between two looks at the files."""
_NAMED = 3
"""The most files that are named. Of more files, the number is given."""

Stamp = tuple[int, int] | None
"""When a file was written, and its size. None: there is no such file."""


class Files:
    """The files of a model and their stamps when the check read them. New modules beside them count as saved, too."""

    def __init__(self, target: str, report: Path) -> None:
        self.report = report
        """The file in which a check reports what it runs."""
        self.stamps: dict[str, Stamp] = {}
        self._modules: dict[str, set[str]] = {}
        self._reported: dict[str, Stamp] = {}
        named = named_file(target)
        if named.is_file():
            self.stamps[str(named.resolve())] = None
        self._named = list(self.stamps)

    def __str__(self) -> str:
        names = sorted(os.path.relpath(file) for file in self.stamps)
        return (
            ", ".join(names)
            if len(names) <= _NAMED
            else f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more files"
        )

    def begin(self) -> None:
        """Before a check: forget what the one before it reported."""
        self.report.write_bytes(b"")
        self._reported = {}
        self.stamps = {file: stamp(file) for file in self.stamps}
        self._modules = {folder: _modules(folder) for folder in self._folders()}

    def end(self, *, complete: bool) -> None:
        """After a check. If it was complete, the files that it did not run are no part of the model any more."""
        self._learn()
        if complete:
            self.stamps = {file: seen for file, seen in self.stamps.items() if file in (*self._reported, *self._named)}

    def saved(self) -> bool:
        """Whether a file differs from what the check has read."""
        self._learn()
        return self._now() != self.stamps or any(_modules(f) - known for f, known in self._modules.items())

    def settle(self) -> None:
        """Wait while files are being written: an editor may write them in several steps."""
        before: dict[str, Stamp] = {}
        while before != (now := self._now()):
            before = now
            time.sleep(INTERVAL)

    def _now(self) -> dict[str, Stamp]:
        return {file: stamp(file) for file in self.stamps}

    def _learn(self) -> None:
        """Read what the check has reported so far."""
        for line in self.report.read_bytes().splitlines(keepends=True):
            if line.endswith(b"\n"):
                file, written, size = json.loads(line)
                self._reported.setdefault(file, (written, size))
        self.stamps |= self._reported
        for folder in self._folders() - self._modules.keys():
            self._modules[folder] = _modules(folder)

    def _folders(self) -> set[str]:
        return {os.path.dirname(file) for file in self.stamps}  # noqa: PTH120 - five times a second


def stamp(file: str) -> Stamp:
    """The stamp of a file as it is now."""
    try:
        found = os.stat(file)  # noqa: PTH116
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _modules(folder: str) -> set[str]:
    """The modules that files of a folder can be imported as. Files that editors make for themselves are none."""
    with suppress(OSError):
        return {name for name in os.listdir(folder) if name.endswith(".py") and name[:-3].isidentifier()}  # noqa: PTH208
    return set()


def report_files(report: str) -> None:
    """Append each file of the user that is compiled or executed from now on to a file."""
    out, known = os.open(report, os.O_WRONLY | os.O_APPEND), set()

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in ("compile", "exec"):
            return
        file = arguments[1] if event == "compile" else arguments[0].co_filename
        if isinstance(file, str) and file not in known:
            known.add(file)
            seen = stamp(file) if is_users(file) else None
            if seen is not None:
                os.write(out, json.dumps([str(Path(file).resolve()), *seen]).encode() + b"\n")

    sys.addaudithook(hook)
