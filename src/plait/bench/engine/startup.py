"""Start-up time: `plait --help`, a whole check of a model with about a thousand states, `plait bmc` on a small program."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from plait.bench.engine.common import interleaved, median
from plait.bench.errors import DifferenceError, SkippedError
from plait.bench.options import Options
from plait.bench.table import Cell, Column, Table

PLAIT = Path(sys.executable).with_name("plait")
SIZES = ("proposers=2", "acceptors=2", "learners=2", "quorum=false")
HELP = [str(PLAIT), "--help"]
CHECK = [str(PLAIT), "check", "paxos", *(word for size in SIZES for word in ("-p", size)), "--json"]
STATES = 1_156
BMC = [str(PLAIT), "bmc", "peterson", "--json"]
HELP_SECONDS, CHECK_SECONDS, BMC_SECONDS = 0.3, 0.6, 0.3


def measure(options: Options) -> Table:
    """Measure the median of several starts."""
    table = Table(
        "startup", "Start-up: wall time of a command", [Column("median"), Column("best")], "command"
    )  # fmt: skip
    with table.measuring():
        if not PLAIT.exists():
            raise SkippedError(f"{PLAIT} does not exist; run make setup")
        options.tell("plait --help, plait check paxos, plait bmc peterson")
        repeats = options.repeats or (3 if options.quick else 10)
        runs = interleaved(
            repeats,
            help=lambda: _seconds(HELP),
            check=lambda: _seconds(CHECK, f'"states":{STATES}'),
            bmc=lambda: _seconds(BMC, '"verdict":"holds"'),
        )
        table.raw |= runs
        for name, what, target in (
            ("help", "plait --help", HELP_SECONDS),
            ("check", f"plait check paxos, {STATES:,} states", CHECK_SECONDS),
            ("bmc", "plait bmc peterson", BMC_SECONDS),
        ):
            middle = median(runs[name])
            table.add(
                "wall time",
                what,
                median=Cell(middle, "s"),
                best=Cell(min(runs[name]), "s"),
                target=f"< {target} s",
                met=middle < target,
            )
    return table


def _seconds(command: list[str], says: str = "") -> float:
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    wall = time.perf_counter() - start
    if says not in done.stdout.replace(" ", ""):
        raise DifferenceError(f"`{' '.join(command)}` did not print {says}")
    return wall
