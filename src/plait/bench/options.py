"""The options of all benchmarks; `registry.py` says which benchmark takes which."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

GYRO_FIGURES = ("latency", "lan", "load", "share", "classes", "parallel", "cost")


def _silent(_: str) -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to measure, and how. The options of the command line have the same names."""

    quick: bool = False
    """Measure the smallest settings only."""
    workers: int = 1
    """Threads of each search."""
    repeats: int | None = None
    """Repetitions of each measurement; by default 3, or 1 if `quick`."""
    timeout: float = 60.0
    """Seconds after which a run is stopped."""
    quorum: bool = False
    """Use quorum transitions instead of single messages."""
    figure: tuple[str, ...] = ("latency",)
    """Which of `GYRO_FIGURES` to measure."""
    runs: int | None = None
    """Runs without a fault of each program and setting, twice the number of injections; by default 100, or 4 if `quick`."""
    jobs: int = 1
    """Runs at the same time."""
    faults: int = 0
    """Make this many randomised runs with faults, instead of the figures."""
    seed: int = 0
    """The seed of the first run with faults."""
    examples: Path = Path("examples")
    """The folder of the example programs, which are not part of the package."""
    tla2tools: Path | None = None
    """The jar of the TLA+ tools."""
    peer: str | None = None
    """Compare with this checker instead: cbmc."""
    files: Path | None = None
    """The folder of C programs for the comparison; by default, programs that ship with Plait."""
    tell: Callable[[str], None] = _silent
    """Called before each measurement, with a text that names it."""

    @property
    def times(self) -> int:
        """How often to repeat a measurement."""
        return self.repeats or (1 if self.quick else 3)
