"""Runs a checker in its own process, and measures its time and its peak memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from plait.bench.errors import FailedError, StoppedError


class Measured(NamedTuple):
    """Output and costs of a command."""

    output: str
    code: int
    seconds: float
    """Wall time."""
    cpu_seconds: float
    """Processor time of all its threads."""
    memory_bytes: int
    """Its peak resident memory."""


def run(command: Sequence[str], *, cwd: Path | None = None, timeout: float | None = None) -> Measured:
    """Run a command, and measure its time and memory.

    >>> measured = run([sys.executable, "-c", "print(6 * 7); exit(3)"])
    >>> measured.output, measured.code, measured.memory_bytes > 2**20
    ('42\\n', 3, True)
    """
    watch = Path(__file__).with_name("watch.py")
    with tempfile.TemporaryDirectory(prefix="plait-") as folder:
        used = Path(folder) / "used"
        started = [sys.executable, "-I", "-S", str(watch), str(used), *command]
        output, _ = _call(started, cwd, timeout)
        if not used.exists():
            raise FailedError(f"{command[0]} could not be run: {_last(output)}")
        code, seconds, cpu, memory = used.read_text(encoding="ascii").split()
    return Measured(output, int(code), float(seconds), float(cpu), int(memory))


def build(command: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> None:
    """Run a command that prepares the measurement. Raises `FailedError` if it fails."""
    output, code = _call(command, cwd, None, env)
    if code:
        raise FailedError(f"`{' '.join(map(str, command))}` failed: {_last(output)}")


def _call(
    command: Sequence[str], cwd: Path | None, timeout: float | None, env: Mapping[str, str] | None = None
) -> tuple[str, int]:
    """Output and exit code. If a timeout or an interrupt ends the call, the command and its children are killed."""
    try:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=None if env is None else {**os.environ, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise FailedError(f"{command[0]} could not be run: {error.strerror}") from None
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        _end(process)
        raise StoppedError(f"stopped after {timeout:g} s") from None
    except BaseException:
        _end(process)
        raise
    return output, process.returncode


def _end(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _last(output: str, lines: int = 3) -> str:
    said = [line.strip() for line in output.splitlines() if line.strip()]
    return " / ".join(said[-lines:]) or "no output"
