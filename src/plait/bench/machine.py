"""The machine that a benchmark runs on: processor, memory, load, versions."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path

import msgspec

_BUSY = 0.5
_TOOLS = {"rustc": "--version", "spin": "-V", "gcc": "--version"}


class Machine(msgspec.Struct, frozen=True):
    """A machine at the start of a benchmark."""

    cpu: str
    cores: int
    memory_gib: float
    load: float
    """The load average of the last minute."""
    system: str
    python: str
    tools: dict[str, str]
    """Versions of the compilers and checkers that are installed."""

    def __str__(self) -> str:
        return f"{self.cpu}, {self.cores} cores, load {self.load:.1f}; Python {self.python}"

    @property
    def busy(self) -> bool:
        """Whether other programs disturb the measurements."""
        return self.load > _BUSY


def this_machine() -> Machine:
    """The machine that this process runs on."""
    cpus = Path("/proc/cpuinfo")
    models = [line for line in cpus.read_text().splitlines() if line.startswith("model name")] if cpus.exists() else []
    return Machine(
        cpu=models[0].split(":", 1)[1].strip() if models else platform.processor() or platform.machine(),
        cores=os.cpu_count() or 1,
        memory_gib=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        load=os.getloadavg()[0],
        system=platform.platform(),
        python=platform.python_version(),
        tools={name: said for name, option in _TOOLS.items() if (said := _version(name, option))},
    )


def _version(*command: str) -> str | None:
    if shutil.which(command[0]) is None:
        return None
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return next(iter((done.stdout or done.stderr).splitlines()), None)
