"""The benchmarks: what must be fast (and small), against its targets, as ratios taken in one run.

    .venv/bin/python -m plait.bench.engine.run                       everything; takes some minutes and 4 GiB
    .venv/bin/python -m plait.bench.engine.run --quick               small sizes, one repetition
    .venv/bin/python -m plait.bench.engine.run --only spin startup   these sections
    .venv/bin/python -m plait.bench.engine.run --json FILE           write all raw figures, too

A missed target is reported, not an error: machines differ. Counts that differ between two checkers are one (exit code 1).
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from plait.bench.engine import liveness, memory, reductions, searches, spin, startup, stateright, throughput
from plait.bench.engine.common import CountsDifferError, Section, Settings, SkippedError
from plait.bench.tables import epa

SECTIONS: dict[str, Callable[[Settings], Section]] = {
    "throughput": throughput.run,
    "memory": memory.run,
    "spin": spin.run,
    "stateright": stateright.run,
    "startup": startup.run,
    "searches": searches.run,
    "reductions": reductions.run,
    "liveness": liveness.run,
    "epa": epa.run,
}
MET = {True: "[green]ok[/]", False: "[red]missed[/]", None: ""}


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    cpus = Path("/proc/cpuinfo")
    models = [line for line in cpus.read_text().splitlines() if line.startswith("model name")] if cpus.exists() else []
    return {
        "cpu": models[0].split(":", 1)[1].strip() if models else platform.processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "load": os.getloadavg()[0],
        "system": platform.platform(),
        "python": platform.python_version(),
        "rustc": version("rustc", "--version"),
        "spin": version("spin", "-V"),
        "gcc": version("gcc", "--version"),
    }


def version(*command: str) -> str | None:
    if shutil.which(command[0]) is None:
        return None
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return next(iter((done.stdout or done.stderr).splitlines()), None)


def table(section: Section) -> Table:
    result = Table(title=section.title, title_justify="left", title_style="bold")
    for heading in ("", "measured", "ratio", "target", ""):
        result.add_column(heading, justify="right" if heading in ("measured", "ratio") else "left")
    for row in section.rows:
        result.add_row(row.what, row.measured, row.ratio, row.target, MET[row.met])
    return result


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Plait's benchmarks.")
    parser.add_argument("--quick", action="store_true", help="small sizes, one repetition, without the memory section")
    parser.add_argument("--repeats", type=int, help="repetitions of each measurement (default 3; 1 with --quick)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all raw figures to FILE")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, metavar="NAME", help=f"of: {', '.join(SECTIONS)}")
    args = parser.parse_args()
    settings = Settings(quick=args.quick, repeats=max(1, args.repeats or (1 if args.quick else 3)))
    console = Console(width=None if sys.stdout.isatty() else 140)
    about = machine()
    console.print(
        f"{about['cpu']}, {about['cores']} cores; Python {about['python']}; {about['rustc']}", highlight=False
    )
    if about["load"] > 0.5:
        console.print(f"[yellow]The machine is busy (load {about['load']:.1f}): look at the ratios only.[/]")
    raw: dict[str, Any] = {"machine": about, "settings": dataclasses.asdict(settings), "sections": {}}
    code = 0
    for name in args.only or SECTIONS:
        start = time.perf_counter()
        try:
            section = SECTIONS[name](settings)
        except SkippedError as reason:
            console.print(f"\n[yellow]{name} is skipped:[/] {reason}", highlight=False)
            raw["sections"][name] = {"skipped": str(reason)}
            continue
        except CountsDifferError as error:
            console.print(f"\n[red]{name}: counts differ:[/] {error}", highlight=False)
            raw["sections"][name] = {"counts_differ": str(error)}
            code = 1
            continue
        console.print()
        console.print(table(section))
        for note in section.notes:
            console.print(f"  {note}", highlight=False)
        raw["sections"][name] = {
            "seconds": time.perf_counter() - start,
            "rows": [dataclasses.asdict(row) for row in section.rows],
            "raw": section.raw,
        }
    if args.json:
        args.json.write_text(json.dumps(raw, indent=1) + "\n", encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main())
