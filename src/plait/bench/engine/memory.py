"""100 million states within 4 GiB, with the parents that counterexamples need.

The check runs in its own process, so that its peak memory can be read.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from plait.bench.engine.common import MEASURED, MILLION, expected_states
from plait.bench.errors import SkippedError
from plait.bench.options import Options
from plait.bench.table import Cell, Table

LIMIT = 4 * 2**30
STATES = 100 * MILLION
SIZES = (3, 4, 1)
"""The model has 362 million states, too many for 4 GiB. At 100 million, the frontier is near its maximum."""

PROGRAM = """
import json, resource, sys
from plait import check
from plait.protocols.paxos import paxos
p, a, l, states, memory = map(int, sys.argv[1:])
verdict = check(paxos(p, a, l, quorum=False), max_states=states, memory=memory)
s = verdict.statistics
print(json.dumps({
    "verdict": verdict.status, "bound": verdict.bound, "states": s.states, "transitions": s.transitions,
    "seconds": s.seconds, "workers": s.workers, "table_bytes": s.table_bytes, "memory_bytes": s.memory_bytes,
    "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
}))
"""


def measure(options: Options) -> Table:
    """Measure the peak resident memory, and the part of the visited set."""
    table = Table("memory", "Memory: 100 million states within 4 GiB", MEASURED, "what")
    with table.measuring():
        if options.quick:
            raise SkippedError("this benchmark needs minutes and 4 GiB; run it without --quick")
        options.tell(f"Paxos {SIZES}: {STATES:,} states")
        arguments = [str(n) for n in (*SIZES, STATES, LIMIT)]
        done = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SkippedError(f"the check failed (exit code {done.returncode}): {done.stderr.strip()[-400:]}")
        _fill(table, json.loads(done.stdout))
    return table


def _fill(table: Table, found: dict[str, Any]) -> None:
    table.raw["paxos"] = found
    states, peak = found["states"], found["peak_rss_bytes"]
    whole = expected_states(*SIZES)
    name = f"Paxos {SIZES}, {states:,} of {whole:,} states ({found['workers']} workers, {found['seconds']:.0f} s)"
    table.add(
        name,
        "peak resident memory",
        measured=Cell(peak, "B"),
        ratio=Cell(peak / states, "B/state"),
        target="100 M states within 4 GiB",
        met=states >= STATES and peak <= LIMIT,
    )
    per_state = found["table_bytes"] / states
    table.add(
        name,
        "visited set with parents",
        measured=Cell(found["table_bytes"], "B"),
        ratio=Cell(per_state, "B/state"),
        target="≤ 24 B/state",
        met=per_state <= 24,
    )
    table.add(name, "frontier and tables at the end", measured=Cell(found["memory_bytes"] - found["table_bytes"], "B"))
    table.summary.append(
        f"The verdict is {found['verdict']} by design ({found['bound']}): this benchmark measures memory."
    )
