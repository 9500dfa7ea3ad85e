"""Temporal properties on 10 million states. Target: 3 times the time of the safety check of the same model, and 8 GiB.

Paxos has no cycles, so only terminal states matter. In the model of wheels, all states are on cycles, and each state
has a transition of each wheel. This is the worst case for the search for cycles, and the best case for the safety
check. Each check runs in its own process, so that its peak memory can be read.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from plait.bench.engine.common import median, same_count, times
from plait.bench.errors import SkippedError
from plait.bench.options import Options
from plait.bench.table import Cell, Column, Table

LIMIT = 8 * 2**30
MOST = 3.0
KINDS = ("safety", "eventually", "leads_to", "always_eventually", "persists")

PROGRAM = '''
import json, resource, sys
from plait import F, G, Process, System, action, always, always_eventually, check, eventually, leads_to, ltl, predicate, weak
from plait.protocols.paxos import Acceptor, AnyLearner, AnyProposer, Phase, paxos

class Wheel(Process):
    """Turns."""
    x: int = 0
    @action
    def turn(self):
        self.x = (self.x + 1) % 10

@always
def within(s):
    """The position stays on the wheel."""
    return s[Wheel][0].x < 10

def wheels(number):
    return System([Wheel() for _ in range(number)], properties=[within])

model, size, kind = sys.argv[1], int(sys.argv[2]), sys.argv[3]
if model == "paxos":
    system, fair = paxos(3, size, 1), [weak(AnyProposer), weak(Acceptor), weak(AnyLearner)]
    p = predicate(lambda s: s[AnyProposer][0].phase is not Phase.IDLE)
    q = predicate(lambda s: s[Acceptor][0].promised > 0)
else:
    system, fair = wheels(size), [weak(Wheel)]
    p = predicate(lambda s: s[Wheel][0].x == 5)
    q = predicate(lambda s: s[Wheel][1].x == 7)
kinds = {
    "safety": [],
    "eventually": [eventually(p, name="it", fairness=fair)],
    "leads_to": [leads_to(p, q, name="it", fairness=fair)],
    "always_eventually": [always_eventually(p, name="it", fairness=fair)],
    "persists": [ltl(F(G(p)), name="it", fairness=fair)],
}
system.properties = [*system.properties, *kinds[kind]]
verdict = check(system)
s = verdict.statistics
print(json.dumps({
    "verdict": verdict.status, "states": s.states, "transitions": s.transitions, "seconds": s.seconds, "workers": s.workers,
    "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
}))
'''


def measure(options: Options) -> Table:
    """Compare each kind of property with the safety check, on each model."""
    table = Table(
        "liveness",
        "Temporal properties, compared with the safety check of the same model",
        [Column("time"), Column("memory", "peak memory"), Column("ratio", "time / safety"), Column("verdict")],
        "property",
    )
    small = {"paxos": (3, 804_357), "wheels": (6, 10**6)}
    models = small if options.quick else {"paxos": (4, 9_129_329), "wheels": (7, 10**7)}
    with table.measuring():
        for model, (size, states) in models.items():
            options.tell(f"{model}, {states:,} states")
            _add(table, model, size, states, options.times)
    return table


def _add(table: Table, model: str, size: int, states: int, repeats: int) -> None:
    runs = [{kind: _check(model, size, kind) for kind in KINDS} for _ in range(repeats)]
    table.raw[model] = runs
    same_count(model, runs[0]["safety"]["states"], states)
    base = median([run["safety"]["seconds"] for run in runs])
    for kind in KINDS:
        taken = median([run[kind]["seconds"] for run in runs])
        peak = max(run[kind]["peak_rss_bytes"] for run in runs)
        table.add(
            f"{model}, {states:,} states",
            kind,
            time=Cell(taken, "s"),
            memory=Cell(peak, "B"),
            ratio=None if kind == "safety" else times(taken / base),
            verdict=Cell(runs[0][kind]["verdict"]),
            target="" if kind == "safety" else f"≤ {MOST:.0f} x, 8 GiB",
            met=taken / base <= MOST and peak <= LIMIT,
        )


def _check(model: str, size: int, kind: str) -> dict[str, Any]:
    arguments = [model, str(size), kind]
    done = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SkippedError(f"the check failed (exit code {done.returncode}): {done.stderr.strip()[-400:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found
