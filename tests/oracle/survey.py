"""What the random systems exercise: `python -m tests.oracle.survey 500`."""

from __future__ import annotations

import statistics
import sys
import time
from collections import Counter

from hypothesis import HealthCheck, Phase, given, seed, settings

from plait.model.system import System
from tests.oracle.explorer import explore
from tests.oracle.random_systems import Spec, build, specs
from tests.oracle.relation import State, Transition, successors


def features(system: System, limit: int) -> tuple[set[str], int]:
    """What happens in some reachable state of a system, and how many states it has (0: too many)."""
    found: set[str] = {system.network.kind}
    first_spare = len(system.processes)

    def visit(state: State, moves: list[Transition]) -> None:
        for t in moves:
            note(t.kind, True)
            note("self-loop", t.state == state)
            note("choice", bool(t.choices))
            note("choice in a recovery", t.kind == "recover" and bool(t.choices))
            note(f"failure: {t.violates}", t.state is None)
            note("quorum of one", t.label.startswith("gather") and len(t.consumed) == 1)
            note("quorum of two or more", len(t.consumed) > 1)
        for index, slot in enumerate(state.slots):
            senders = Counter(sender for sender, _ in slot.inbox)
            note("spawn", index >= first_spare and slot.status == "up")
            note("crash of a spawned process", index >= first_spare and slot.status in ("crashed", "down"))
            note("mail for the unborn", slot.status == "unborn" and bool(slot.inbox))
            note("mail for the down", slot.status == "down" and bool(slot.inbox))
            note("equal messages", len(set(slot.inbox)) < len(slot.inbox))
            note("queue of two", system.network.kind == "fifo" and max(senders.values(), default=0) > 1)

    def note(name: str, seen: bool) -> None:
        if seen:
            found.add(name)

    result = explore(system, limit=limit)
    for state in result.seen:
        visit(state, list(successors(system, state)))
    for name, r in result.properties.items():
        note(f"{r.kind} {'violated' if r.violated else 'holds'}", name not in ("assertions", "no_exceptions"))
    note("any violation", bool(result.violated))
    note("no violation", not result.violated)
    note("terminal state", result.terminal > 0)
    note("no terminal state", result.terminal == 0)
    note("monitor changes", len({s.monitors for s in result.seen}) > 1)
    return found, result.states if result.complete else 0


def survey(count: int, limit: int = 2000) -> str:
    tally: Counter[str] = Counter()
    sizes: list[int] = []

    def look(spec: Spec) -> None:
        found, states = features(build(spec), limit)
        sizes.append(states)
        if states:
            tally.update(found)

    began = time.perf_counter()
    quiet = settings(
        max_examples=20,
        phases=[Phase.generate],
        database=None,
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )
    for number in range(count // 20):  # few of each seed: Hypothesis varies what it has drawn, so one seed is no sample
        seed(number)(quiet(given(specs())(look)))()
    kept = [size for size in sizes if size]
    quarters = statistics.quantiles(kept, n=10)
    lines = [
        f"{len(sizes)} systems, {len(sizes) - len(kept)} too large, {time.perf_counter() - began:.0f} s",
        f"states: deciles {' '.join(f'{q:.0f}' for q in quarters)}, most {max(kept)}",
        *(f"{100 * n / len(kept):5.1f} %  {name}" for name, n in tally.most_common()),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(survey(int(sys.argv[1]) if len(sys.argv) > 1 else 500))
