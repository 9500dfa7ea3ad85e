"""Shared state, guards over sets, clocks, library values, initial states, bounds and capacities in one system."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from plait import System
from plait.kernel.errors import ModelError
from tests.oracle import bounded_systems, combined_systems
from tests.oracle.explorer import Exploration
from tests.oracle.orbits import orbits
from tests.support import agreement, natively
from tests.support.agreement import check_traces
from tests.support.configurations import Way, run, violated, ways

RANDOM: Any = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@pytest.mark.slow
@settings(max_examples=15, **RANDOM)
@given(combined_systems.explored_systems(limit=150))
def test_searches(pair: tuple[System, Exploration]) -> None:
    agreement.compare(*pair)


@pytest.mark.slow
@settings(max_examples=10, **RANDOM)
@given(combined_systems.specs())
def test_native_execution(spec: combined_systems.Spec) -> None:
    if bounded_systems.measured(combined_systems.build(spec), 150) is not None:
        natively.compare(lambda: combined_systems.build(spec), keep_going=True, explore=True)


@pytest.mark.slow
@settings(max_examples=10, **RANDOM)
@given(combined_systems.explored_systems(limit=150, symmetric=True), ways())
def test_symmetry(pair: tuple[System, Exploration], way: Way) -> None:
    system, truth = pair
    there = orbits(system, truth)
    if not there.impartial:
        with pytest.raises(ModelError, match=r"not symmetric|differently"):
            run(system, way, "symmetry")
        return
    verdict = run(system, way, "symmetry")
    assert violated(verdict) == truth.violated
    assert (verdict.statistics.states, verdict.statistics.terminal_states) == (there.states, there.terminal)
    check_traces(system, verdict, truth, shortest=False)
