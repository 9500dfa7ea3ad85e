"""`plait check --watch`: checks again whenever the model is saved.

Each check runs in a process of its own. So it sees the files as they are now, and a mistake in the model ends only that
check. The process reports the files whose code it runs, each with its stamp. A file whose stamp differs from the reported
one was saved. Then a check that is still running is ended, and the next one begins.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from plait.cli.output import complain, note
from plait.kernel.errors import UsageError
from plait.kernel.verdict import EXIT_CODES
from plait.model.loading.files import INTERVAL, Files, report_files

_CLEAR = "\x1b[H\x1b[2J"
_BAD_MODEL = 2
_INCONCLUSIVE = EXIT_CODES["inconclusive"]


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


def main() -> int:
    """The process of one check: `python -m plait.cli.watch REPORT check TARGET …`."""
    import _plait_main

    report = sys.argv.pop(1)
    sys.dont_write_bytecode = True  # Python takes a compiled file of the same second and size for current
    report_files(report)
    return _plait_main.main()


if __name__ == "__main__":
    sys.exit(main())
