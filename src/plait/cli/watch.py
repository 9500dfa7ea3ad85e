"""`plait check --watch`: checks again whenever the model is saved.

Each check runs in a process of its own. So it sees the files as they are now, and a mistake in the model ends only that
check. The process reports the files whose code it runs, each with its stamp. A file whose stamp differs from the reported
one was saved. Then a check that is still running is ended, and the next one begins.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from plait.cli.output import complain, note
from plait.kernel.errors import UsageError
from plait.kernel.verdict import EXIT_CODES
from plait.model.loading.loader import is_users, named_file

INTERVAL = 0.2
"""Seconds between two looks at the files."""
_CLEAR = "\x1b[H\x1b[2J"
_NAMED = 3
"""The most files that are named. Of more files, the number is given."""
_BAD_MODEL = 2
_INCONCLUSIVE = EXIT_CODES["inconclusive"]

Stamp = tuple[int, int] | None
"""When a file was written, and its size. None: there is no such file."""


def watch(target: str, tokens: Sequence[str]) -> int:
    """Run a command now and after each save, until Ctrl-C. Return the exit code of the last check."""
    command = [token for token in tokens if token.partition("=")[0] != "--watch"]
    code, process = _INCONCLUSIVE, None
    with tempfile.TemporaryDirectory(prefix="plait-") as folder:
        files = Files(target, Path(folder) / "files")
        try:
            while True:
                files.begin()
                _clear()
                process = _started(files.report, command)
                while not files.saved():
                    if process is None:
                        time.sleep(INTERVAL)
                    elif _waited(process):
                        code, process = _exit_code(process), None
                        files.end(complete=code != _BAD_MODEL)
                        if not files.stamps:
                            return _nothing_to_watch(target, code)
                        note(f"watching {files}: Ctrl-C ends")
                if process is not None:
                    _stop(process)
                    process = None
                files.settle()
        except KeyboardInterrupt:
            return code if process is None else _stop(process)


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


def _clear() -> None:
    if sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        sys.stdout.write(_CLEAR)
        sys.stdout.flush()


def _nothing_to_watch(target: str, code: int) -> int:
    if code == _BAD_MODEL:
        return code  # its error has been shown
    raise UsageError(
        f"--watch: {target} is in an installed package: no file of yours can be saved",
        hint="copy the model into a file of yours, and check that file",
    )


# -- the process of a check -------------------------------------------------------------------------------------------


def _started(report: Path, command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a check. It is in a session of its own: Ctrl-C reaches it once, from `_stop`."""
    paths = os.pathsep.join(str(Path(path).absolute()) for path in sys.path)
    return subprocess.Popen(
        [sys.executable, "-P", "-m", __name__, str(report), *command],
        env={**os.environ, "PYTHONPATH": paths},
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )


def _waited(process: subprocess.Popen[bytes]) -> bool:
    """Wait a moment. Return whether the process has ended."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(INTERVAL)
    return process.returncode is not None


def _stop(process: subprocess.Popen[bytes]) -> int:
    """End a check as Ctrl-C does, with what it has found so far. A second Ctrl-C ends it at once."""
    process.terminate()
    try:
        process.wait()
    except KeyboardInterrupt:
        process.kill()
        process.wait()
    return process.returncode if process.returncode >= 0 else _INCONCLUSIVE


def _exit_code(process: subprocess.Popen[bytes]) -> int:
    if process.returncode < 0:
        complain(f"the check was ended by signal {-process.returncode}", "limit its memory: --memory 1G")
        return _INCONCLUSIVE
    return process.returncode


def _report_files(report: str) -> None:
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


def main() -> int:
    """The process of one check: `python -m plait.cli.watch REPORT check TARGET …`."""
    import _plait_main

    report = sys.argv.pop(1)
    sys.dont_write_bytecode = True  # Python takes a compiled file of the same second and size for current
    _report_files(report)
    return _plait_main.main()


if __name__ == "__main__":
    sys.exit(main())
