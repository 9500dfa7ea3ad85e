"""`plait epa run`: run a program that records itself, with or without a fault (Saissi 2019, section 5.4.1, step 2)."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from plait.epa import files
from plait.epa.faults import Fault
from plait.kernel.errors import UsageError

RUN_FILE = "run.json"


class Run(msgspec.Struct, frozen=True):
    """The result of a run. It is saved in the folder of the trace."""

    program: str
    arguments: list[str]
    code: int
    """The exit code; negative for a signal."""
    seconds: float
    timed_out: bool = False
    fault: Fault | None = None
    yields: int | None = None
    files: dict[str, str | None] = {}
    """The files that the program wrote, and their copies in the folder of the trace; None for a removed file."""
    input: str | None = None
    """A digest of the standard input; None if it was empty, or a terminal."""
    replay: str | None = None
    """A digest of the order and the results that the run replayed; None if it ran freely."""

    @property
    def ending(self) -> str:
        """The end of the run, in words.

        >>> Run("a", [], -11, 0.1).ending, Run("a", [], 3, 0.1).ending
        ('killed by SIGSEGV', 'exit code 3')
        """
        if self.timed_out:
            return f"stopped after {self.seconds:.1f} s"
        if self.code < 0:
            try:
                return f"killed by {signal.Signals(-self.code).name}"
            except ValueError:
                return f"killed by signal {-self.code}"
        return f"exit code {self.code}"


def run(
    program: Path,
    arguments: Sequence[str],
    folder: Path,
    *,
    fault: Fault | None = None,
    yields: int | None = None,
    timeout: float | None = None,
    most: int | None = None,
    stdin: Path | Literal["terminal"] | None = None,
    base: Path | None = None,
    order: Path | None = None,
) -> Run:
    """Run a program in the folder `base`. Its trace, its input, output and written files go to a folder.

    `most` limits the bytes that a thread records. Without `stdin`, the standard input is empty. `order` is a file of
    `replay.py`: the run is replayed.
    """
    if not program.is_file() or not os.access(program, os.X_OK):
        raise UsageError(f"{program} is not a program", hint="build it: plait epa build prog.c -o prog.epa")
    prepare(folder)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("EPA_")}
    environment["EPA_TRACE"] = str(folder.resolve())
    if fault is not None:
        environment["EPA_FAULT"] = fault.plan
    if yields is not None:
        environment["EPA_YIELD"] = str(yields)
    if most is not None:
        environment["EPA_MOST"] = str(most)
    if order is not None:
        environment["EPA_REPLAY"] = str(order.resolve())
    if isinstance(stdin, Path):
        # A file, even if the input came through a pipe: how much a read returns must not depend on time.
        shutil.copyfile(stdin, folder / "stdin")
    timed_out = False
    started = time.monotonic()
    with (
        (folder / "stdin" if isinstance(stdin, Path) else Path(os.devnull)).open("rb") as source,
        (folder / "stdout").open("wb") as out,
        (folder / "stderr").open("wb") as err,
    ):
        try:
            process = subprocess.Popen(
                [str(program.resolve()), *arguments],
                stdin=None if stdin == "terminal" else source,
                stdout=out,
                stderr=err,
                env=environment,
                cwd=base,
            )
        except OSError as error:
            raise UsageError(
                f"{program} cannot be run: {error.strerror}", hint="build the program on this machine"
            ) from None
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
            process.kill()
            code = process.wait()
        except BaseException:
            process.kill()
            process.wait()
            raise
    seconds = round(time.monotonic() - started, 6)
    kept = files.keep(folder, (base or Path.cwd()).resolve())
    digest = _digest(folder / "stdin") if isinstance(stdin, Path) else None
    replayed = order_digest(order.read_bytes()) if order is not None else None
    done = Run(str(program), list(arguments), code, seconds, timed_out, fault, yields, kept, digest, replayed)
    if not (folder / "table.json").exists():
        raise UsageError(f"{program} recorded nothing", hint="build the program with plait epa build")
    (folder / RUN_FILE).write_bytes(msgspec.json.encode(done))
    return done


def order_digest(content: bytes) -> str:
    """The identity of what a run replays: a digest of a file of `replay.py`, without its time limit."""
    return hashlib.sha256(content[16:]).hexdigest()[:16]


def _digest(file: Path) -> str | None:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16] if file.stat().st_size else None


def prepare(folder: Path) -> None:
    """Make an empty folder for a trace. An old trace is replaced; other folders stay as they are."""
    if folder.exists():
        names = {p.name for p in folder.iterdir()} if folder.is_dir() else None
        if names is None or (names and not names & {RUN_FILE, "table.json", "layout.txt"}):
            raise UsageError(f"{folder} exists and is not a trace", hint="choose another folder")
        shutil.rmtree(folder)
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise UsageError(f"{folder} cannot be created: {error.strerror}", hint="choose another folder") from None


def scratch() -> str | None:
    """A folder in memory for temporary traces, if the system has one; else the default."""
    memory = Path("/dev/shm")
    return str(memory) if memory.is_dir() and os.access(memory, os.W_OK) else None
