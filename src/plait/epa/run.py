"""`plait epa run`: run a program that records itself, with or without a fault (Saissi 2019, section 5.4.1, step 2)."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

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
) -> Run:
    """Run a program. Its trace, output and result go to a folder. `most` limits the bytes that a thread records."""
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
    timed_out = False
    started = time.monotonic()
    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
        try:
            process = subprocess.Popen(
                [str(program.resolve()), *arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment
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
    done = Run(str(program), list(arguments), code, round(time.monotonic() - started, 6), timed_out, fault, yields)
    if not (folder / "table.json").exists():
        raise UsageError(f"{program} recorded nothing", hint="build the program with plait epa build")
    (folder / RUN_FILE).write_bytes(msgspec.json.encode(done))
    return done


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
