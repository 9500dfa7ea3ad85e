"""Compares distinct states per second with Spin, on the same single-message Paxos without reduction."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

from plait.bench.engine import unrolled
from plait.bench.engine.common import (
    MEASURED,
    Sizes,
    checked,
    expected_states,
    interleaved,
    median,
    rate,
    same_count,
    single_message_paxos,
    times,
)
from plait.bench.options import Options
from plait.bench.peers.checker import Case, Run
from plait.bench.peers.process import run
from plait.bench.peers.spin import FLAGS, Spin, number, promela
from plait.bench.report.cells import times as ratio_text
from plait.bench.table import Plot, Table

RATIO = 8


def measure(options: Options) -> Table:
    """Run Plait and two versions of the Promela model, on one core each."""
    table = Table(
        "spin",
        f"Spin (-O3 {' '.join(FLAGS)}): the same Paxos, one core each",
        MEASURED,
        "checker",
        plot=Plot("measured", "states per second"),
    )
    cases: list[Sizes] = [(2, 3, 2)] if options.quick else [(2, 3, 2), (3, 3, 1)]
    with table.measuring():
        checker = Spin()
        version = checker.version()
        with tempfile.TemporaryDirectory(prefix="plait-spin-") as folder:
            for sizes in cases:
                options.tell(f"{version}: Paxos {sizes}")
                _add(table, checker, Path(folder), sizes, options.times)
        table.summary.append(
            "Spin's time is the one that pan reports. Plait's is the whole call of check(), which fills empty tables."
        )
    return table


def _add(table: Table, checker: Spin, folder: Path, sizes: Sizes, repeats: int) -> None:
    expected = expected_states(*sizes)

    @functools.cache
    def verifier(style: str) -> Run:
        plain = promela(Case("paxos", sizes, expected))
        return checker.verifier(plain if style == "plain" else unrolled.promela(*sizes), expected, folder)

    def spin(style: str) -> dict[str, Any]:
        prepared = verifier(style)
        measured = run(prepared.command, cwd=prepared.cwd)
        vector = int(number(r"^State-vector (\d+) byte", measured.output))
        counts = checker.read(measured.output, measured.code)
        return counts._asdict() | {"cpu": measured.cpu_seconds, "vector_bytes": vector}

    runs = interleaved(
        repeats,
        plain=lambda: spin("plain"),
        unrolled=lambda: spin("unrolled"),
        plait=lambda: checked(single_message_paxos(sizes), workers=1),
    )
    table.raw[str(sizes)] = runs
    states, transitions = runs["plait"][0]["states"], runs["plait"][0]["transitions"]
    for name in ("plain", "unrolled"):
        same_count(f"states of Spin's {name} model {sizes} against Plait's", runs[name][0]["states"], states)
        found = runs[name][0]["transitions"]
        same_count(f"transitions of Spin's {name} model {sizes} against Plait's", found, transitions)
    plait = median([states / r["wall"] for r in runs["plait"]])
    cpu = {name: median([r["cpu"] for r in results]) for name, results in runs.items()}
    setting = f"Paxos {sizes}, {states:,} states"
    table.add(setting, "Plait, one worker", measured=rate(plait))
    for name, what in {"plain": "Spin, a process per role", "unrolled": "Spin, unrolled by hand"}.items():
        theirs = median([states / max(r["seconds"], 0.005) for r in runs[name]])
        ratio = plait / theirs
        table.add(
            setting,
            f"{what} ({runs[name][0]['vector_bytes']} B per state)",
            measured=rate(theirs),
            ratio=times(ratio),
            target=f"≥ {RATIO} x" if name == "plain" else "",
            met=ratio >= RATIO,
        )
    faster = [ratio_text(cpu[name] / cpu["plait"]) for name in ("plain", "unrolled")]
    table.summary.append(
        f"{sizes}, ratios by processor time, which a busy machine affects less: {faster[0]} x and {faster[1]} x."
    )
