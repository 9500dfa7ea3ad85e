"""What a user waits for: `plait --help`, and a whole check of a model of about a thousand states."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from plait.bench.engine.common import CountsDifferError, Section, Settings, SkippedError, interleaved, median

PLAIT = Path(sys.executable).with_name("plait")
SIZES = ("proposers=2", "acceptors=2", "learners=2", "quorum=false")
HELP = [str(PLAIT), "--help"]
CHECK = [str(PLAIT), "check", "paxos", *(word for size in SIZES for word in ("-p", size)), "--json"]
STATES = 1_156
HELP_SECONDS, CHECK_SECONDS = 0.3, 0.6


def run(settings: Settings) -> Section:
    if not PLAIT.exists():
        raise SkippedError(f"there is no {PLAIT}: run `make setup`")
    section = Section("Start-up: wall time of a command")
    repeats = 3 if settings.quick else 10
    runs = interleaved(repeats, help=lambda: seconds(HELP), check=lambda: seconds(CHECK, f'"states":{STATES}'))
    section.raw |= runs
    for name, what, target in (
        ("help", "plait --help", HELP_SECONDS),
        ("check", f"plait check paxos, {STATES:,} states", CHECK_SECONDS),
    ):
        middle = median(runs[name])
        measured = f"median {middle:.3f} s, best {min(runs[name]):.3f} s"
        section.add(what, measured, target=f"< {target} s", met=middle < target)
    return section


def seconds(command: list[str], says: str = "") -> float:
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    wall = time.perf_counter() - start
    if says not in done.stdout.replace(" ", ""):
        raise CountsDifferError(f"`{' '.join(command)}` does not say {says}")
    return wall
