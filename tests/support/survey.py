"""How much the reductions save on the random systems: `python -m tests.support.survey 500`."""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from plait.model.system import System
from tests.oracle import independent_systems, random_systems, symmetric_systems
from tests.oracle.explorer import Exploration
from tests.support.configurations import Way, run

SOURCES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "random": (random_systems.explored_systems(limit=300), ("por",)),
    "independent": (independent_systems.explored_systems(limit=300), ("por",)),
    "symmetric": (symmetric_systems.explored_systems(limit=150), ("por", "symmetry", "por,symmetry")),
}


def survey(name: str, count: int) -> str:
    strategy, reductions = SOURCES[name]
    ratios: dict[str, list[float]] = {reduce: [] for reduce in reductions}
    sizes: list[int] = []

    def look(pair: tuple[System, Exploration]) -> None:
        system, truth = pair
        sizes.append(truth.states)
        for reduce in reductions:
            ratios[reduce].append(run(system, Way(), reduce).statistics.states / truth.states)

    began = time.perf_counter()
    phases, quiet = [Phase.generate], list(HealthCheck)
    few = settings(max_examples=50, database=None, phases=phases, suppress_health_check=quiet, deadline=None)
    for number in range(count // 50):
        seed(number)(few(given(strategy)(look)))()  # type: ignore[no-untyped-call]
    size, seconds = statistics.mean(sizes), time.perf_counter() - began
    lines = [f"{name}: {len(sizes)} systems of {size:.0f} states on average, {seconds:.0f} s"]
    for reduce, found in ratios.items():
        share = sum(ratio < 1 for ratio in found) / len(found)
        lines.append(
            f"  {reduce}: {share:.0%} are reduced; {statistics.mean(found):.0%} of their states remain on average"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for source in SOURCES:
        sys.stdout.write(survey(source, int(sys.argv[1]) if len(sys.argv) > 1 else 500))
