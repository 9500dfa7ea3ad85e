"""A long comparison with CPython: `python -m tests.bmc.python.survey 1000` takes random programs, half of them with tasks.

An outcome of CPython that the checker calls impossible is an error.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from plait.bmc import check
from plait.bmc.load import load
from tests.bmc.python.random_programs import random_program, with_assertion
from tests.bmc.python.schedules import tasks_outcome, threads_outcome

IMPORTS = "import asyncio, queue, threading\n"


def possible(text: str, outcome: Any, folder: Path) -> bool | None:
    """Whether the checker finds an outcome. None: it reached a limit."""
    file = folder / "program.py"
    file.write_text(IMPORTS + (with_assertion(text, outcome) if isinstance(outcome, tuple) else text))
    verdict = check(load(f"{file}:main"), encoding="explicit")
    violated = {p.name for p in verdict.properties if p.status == "violated"}
    wanted = {"assertions"} if isinstance(outcome, tuple) else {"deadlock"} if outcome == "deadlock" else None
    if violated & (wanted or {"assertions", "bounds", "division", "locks"}):
        return True
    return None if any(p.status == "inconclusive" for p in verdict.properties) else False


def compare(seed: int, folder: Path, schedules: int = 20, *, tasks: bool = False) -> Counter[str]:
    """Compare one random program; the kinds of its outcomes."""
    text = random_program(seed, tasks=tasks)
    run = tasks_outcome if tasks else threads_outcome
    outcomes = {run(text, seed * 1000 + n) for n in range(schedules)}
    found: Counter[str] = Counter()
    for outcome in sorted(outcomes, key=str)[:6]:
        answer = possible(text, outcome, folder)
        assert answer is not False, f"seed {seed}: CPython gives {outcome}, which the checker calls impossible:\n{text}"
        found["limit" if answer is None else outcome if isinstance(outcome, str) else "result"] += 1
    found["several outcomes"] += len(outcomes) > 1
    return found


def main() -> None:
    """Compare as many programs as the command line says."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    total: Counter[str] = Counter()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + count):
            total += compare(seed, Path(folder), tasks=seed % 2 == 1)
    sys.stdout.write(f"{count} programs, {time.monotonic() - start:.0f} s: {dict(total)}\n")


if __name__ == "__main__":
    main()
