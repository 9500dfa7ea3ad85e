"""100 million states within 4 GiB, counterexamples still reconstructible: in a process of its own, to read its peak."""

from __future__ import annotations

import json
import subprocess
import sys

from plait.bench.engine.common import MILLION, Section, Settings, SkippedError, expected_states

LIMIT = 4 * 2**30
STATES = 100 * MILLION
SIZES = (3, 4, 1)
"""Its 362 million states do not fit: it is stopped at 100 million, where the frontier is about at its widest."""

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


def run(settings: Settings) -> Section:
    if settings.quick:
        raise SkippedError("takes minutes and 4 GiB; leave out --quick")
    section = Section("Memory: 100 million states within 4 GiB")
    arguments = [str(n) for n in (*SIZES, STATES, LIMIT)]
    done = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SkippedError(f"the check failed (exit code {done.returncode}): {done.stderr.strip()[-400:]}")
    found = json.loads(done.stdout)
    section.raw["paxos"] = found
    states, peak = found["states"], found["peak_rss_bytes"]
    whole = expected_states(*SIZES)
    section.add(
        f"{SIZES}, {states:,} of {whole:,} states ({found['workers']} workers, {found['seconds']:.0f} s)",
        f"peak RSS {peak / 2**30:.2f} GiB",
        ratio=f"{peak / states:.1f} B/state",
        target="100 M states within 4 GiB",
        met=states >= STATES and peak <= LIMIT,
    )
    per_state = found["table_bytes"] / states
    section.add(
        "  visited set with parents",
        f"{found['table_bytes'] / 2**30:.2f} GiB",
        ratio=f"{per_state:.1f} B/state",
        target="≤ 24 B/state",
        met=per_state <= 24,
    )
    section.add("  frontier and tables at the end", f"{(found['memory_bytes'] - found['table_bytes']) / 2**30:.2f} GiB")
    section.notes.append(f"The verdict is {found['verdict']} by design ({found['bound']}): this is about memory.")
    return section
