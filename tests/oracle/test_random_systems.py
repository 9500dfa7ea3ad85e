"""The random systems: reproducible from their data, and within their bound."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from plait.model.system import System
from tests.oracle import independent_systems as independent
from tests.oracle import random_systems as systems
from tests.oracle import symmetric_systems as symmetric
from tests.oracle.explorer import Exploration, explore
from tests.oracle.random_systems import explored_systems


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(systems.specs() | independent.specs() | symmetric.specs() | symmetric.specs(symmetric.ODDITIES))
def test_a_system_is_built_from_its_data_alone(
    spec: systems.Spec | independent.Spec | symmetric.Spec,
) -> None:
    def build(spec: Any) -> System:
        return sys.modules[type(spec).__module__].build(spec)  # type: ignore[no-any-return]

    first, second = (explore(build(spec), limit=50) for _ in range(2))
    assert list(map(repr, first.seen)) == list(map(repr, second.seen))
    assert (first.transitions, first.terminal, first.properties) == (
        second.transitions,
        second.terminal,
        second.properties,
    )
    assert build(spec).name == repr(spec)


@pytest.mark.slow
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(explored_systems(200))
def test_systems_are_explored_to_the_end(pair: tuple[System, Exploration]) -> None:
    system, found = pair
    assert found.complete
    assert 1 <= found.states <= 200
    assert found.properties.keys() == {"assertions", *(p.name for p in system.properties)}
